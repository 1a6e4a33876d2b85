//go:build e2e

package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/spec/change/changetest"
)

// batch is the number of pods that change at the same time.
const batch = 32

// planned is a pair of pod files, as the definitions of a pod of its own.
type planned struct {
	changetest.Pair

	pod, path string
	after     string
	was, is   api.Pod
	plan      api.Applied
	events    []api.Event // since the second definition was applied
}

// TestPlanIsApplied: for every field of a pod file, apply does what plan has said, and nothing else. What it has done is taken from
// the events, the UIDs, and the IDs of sandboxes and containers.
func TestPlanIsApplied(t *testing.T) {
	f := newFixture(t)
	var pairs []*planned
	for i, p := range changetest.Pairs() {
		if p.Runs && p.Field != "name" { // another name is another pod
			pairs = append(pairs, f.planned(i, p))
		}
	}
	pairs = append(pairs, f.moved(len(changetest.Pairs())))
	t.Cleanup(func() { // before the check for leftovers
		if _, err := f.Podstead(f.Ctx(), "delete", "--all", "--force"); err != nil {
			t.Error(err)
		}
	})
	for some := range slices.Chunk(pairs, batch) {
		f.applyPairs(some)
		for _, p := range some {
			t.Run(p.pod+" "+p.Field, p.check)
		}
		f.MustRun("delete", "--all", "--force")
	}
}

// planned writes the files of a pair. Its pod has a name, a Job and host ports that no other pair has.
func (f *fixture) planned(i int, pair changetest.Pair) *planned {
	f.Helper()
	p := &planned{Pair: pair, pod: fmt.Sprintf("pair-%03d", i)}
	own := strings.NewReplacer(
		"name = \"pair\"\n", f.PodText(p.pod, ""), `"sum"`, strconv.Quote("sum-"+p.pod), `"max"`, strconv.Quote("max-"+p.pod),
		"31820", fmt.Sprint(31000+2*i), "31821", fmt.Sprint(31001+2*i),
	)
	dir := filepath.Join(f.Dir, "pairs", p.pod)
	f.Check(os.MkdirAll(dir, 0o755))
	for name, text := range pair.Files {
		f.Check(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p.path, p.after = filepath.Join(dir, p.pod+".toml"), own.Replace(pair.After)
	f.Check(os.WriteFile(p.path, []byte(own.Replace(pair.Before)), 0o600))
	return p
}

// moved is a pair for imageArchives: an archive is renamed. The others have the archive of the fixture.
func (f *fixture) moved(i int) *planned {
	f.Helper()
	p := f.planned(i, changetest.Pair{Field: "imageArchives", Effect: change.InPlace})
	archive, renamed := f.Archive("busybox"), filepath.Join(filepath.Dir(p.path), "renamed.tar")
	content, err := os.ReadFile(archive)
	f.Check(err)
	f.Check(os.WriteFile(renamed, content, 0o600))
	const containers = "terminationGracePeriodSeconds = 1\n[[containers]]\nname = \"app\"\nimage = \"" + changetest.Image +
		"\"\ncommand = [\"sleep\", \"3600\"]\n"
	p.Before = f.PodText(p.pod, containers)
	p.After = strings.Replace(p.Before, strconv.Quote(archive), strconv.Quote(renamed), 1)
	p.after = p.After
	f.Check(os.WriteFile(p.path, []byte(p.Before), 0o600))
	return p
}

// applyPairs applies the first files of pairs, plans the second ones, applies them, and waits until that is done.
func (f *fixture) applyPairs(pairs []*planned) {
	f.Helper()
	var paths []string
	for _, p := range pairs {
		paths = append(paths, p.path)
	}
	f.MustRun(append([]string{"apply"}, paths...)...)
	for _, p := range pairs {
		p.was = f.Until(p.pod, "running", allRun)
		f.Saw(p.was.Metadata.UID)
		f.Check(os.WriteFile(p.path, []byte(p.after), 0o600))
	}
	var plan api.AppliedList
	f.Check(json.Unmarshal([]byte(f.MustRun(append([]string{"plan", "-o", "json"}, paths...)...)), &plan))
	if len(plan.Items) != len(pairs) {
		f.Fatalf("plan has %d pods, want %d", len(plan.Items), len(pairs))
	}
	last := f.lastEvent()
	applied := f.MustRun(append([]string{"apply"}, paths...)...)
	for i, p := range pairs {
		p.plan = plan.Items[i]
		if line := fmt.Sprintf("pod/%s %s\n", p.pod, p.plan.Outcome); !strings.Contains(applied, line) {
			f.Errorf("apply did not print %q", line)
		}
		f.Await(func() error { return f.settled(p, last) })
	}
	for _, p := range pairs { // also those that were settled early, before their restart had begun
		f.Await(func() error { return f.settled(p, last) })
	}
}

// settled returns what a pod still has to do for its new definition, and records what it has done.
func (f *fixture) settled(p *planned, after uint64) (err error) {
	if p.is, err = f.Client().Pod(f.Ctx(), p.pod); err != nil {
		return err
	}
	f.Saw(p.is.Metadata.UID)
	if p.is.Spec.Hash != p.plan.SpecHash || !allRun(&p.is) {
		return fmt.Errorf("pod %s does not run its new definition: %+v", p.pod, p.is.Status)
	}
	p.events = nil
	stopping := map[string]bool{}
	for e, err := range f.Client().Events(f.Ctx(), &client.EventQuery{Pod: p.pod}) {
		if err != nil {
			return err
		}
		if e.Seq <= after {
			continue
		}
		p.events = append(p.events, e)
		if slices.Contains([]api.EventKind{api.EventContainerChanged, api.EventContainerDropped}, e.Kind) {
			stopping[e.Container] = true
		}
		if slices.Contains([]api.EventKind{api.EventContainerSucceeded, api.EventContainerFailed}, e.Kind) {
			delete(stopping, e.Container)
		}
	}
	if len(stopping) > 0 {
		return fmt.Errorf("containers of pod %s are stopping: %v", p.pod, stopping)
	}
	return nil
}

// lastEvent returns the sequence number of the newest event.
func (f *fixture) lastEvent() (last uint64) {
	f.Helper()
	for e, err := range f.Client().Events(f.Ctx(), &client.EventQuery{}) {
		f.Check(err)
		last = e.Seq
	}
	return last
}

// allRun reports whether all containers of a pod run that are not init containers, and no init container is still to run.
func allRun(p *api.Pod) bool {
	notRunning := func(c api.ContainerStatus) bool { return c.State.Running == nil }
	waits := func(c api.ContainerStatus) bool { return c.State.Waiting != nil }
	return p.Metadata.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) == len(p.Spec.Containers) &&
		!slices.ContainsFunc(p.Status.ContainerStatuses, notRunning) && !slices.ContainsFunc(p.Status.InitContainerStatuses, waits)
}

// definitionChanges converts the changes of the API to those that package change compares.
func definitionChanges(t *testing.T, changes []api.Change) []change.Change {
	t.Helper()
	list := make([]change.Change, len(changes))
	for i, c := range changes {
		list[i] = change.Change{Path: c.Path, Container: c.Container, Old: c.Old, New: c.New}
		if err := list[i].Effect.UnmarshalText([]byte(c.Effect)); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// check compares what was planned with what has happened.
func (p *planned) check(t *testing.T) {
	if p.plan.Outcome != api.PodConfigured || len(p.plan.Changes) == 0 {
		t.Fatalf("plan: %+v", p.plan)
	}
	changes := definitionChanges(t, p.plan.Changes)
	if got := change.Largest(changes); got != p.Effect {
		t.Errorf("largest effect %v, want %v", got, p.Effect)
	}
	planned := changetest.EffectsOf(changes)
	happened, fields := p.happened()
	if diff := cmp.Diff(planned, happened); diff != "" {
		t.Errorf("what plan said and what happened (-plan +events):\n%s%v", diff, p.plan.Changes)
	}
	if want := p.fields(); !planned.Replaced && fields != want {
		t.Errorf("fields that plan said: %s\nfields that changed: %s", want, fields)
	}
	if diff := cmp.Diff(planned, p.found()); diff != "" {
		t.Errorf("what plan said and what is different (-plan +IDs):\n%s%v", diff, p.plan.Changes)
	}
	if t.Failed() {
		t.Logf("--- before\n%s--- after\n%s", p.Before, p.After)
		for _, e := range p.events {
			t.Logf("%s %s %s %s", e.Kind, e.UID, e.Container, e.Message)
		}
	}
}

// fields are the fields of the plan, as the event lists them.
func (p *planned) fields() string {
	paths := make([]string, len(p.plan.Changes))
	for i := range p.plan.Changes {
		paths[i] = p.plan.Changes[i].Path
	}
	return strings.Join(paths, ", ")
}

// happened is what the events say, and the fields that they list.
func (p *planned) happened() (e changetest.Effects, fields string) {
	e.Containers = map[string]string{}
	for i := range p.events {
		switch x := &p.events[i]; {
		case x.Kind == api.EventPodRemoved:
			e.Replaced = true
		case slices.Contains([]api.EventKind{api.EventSandboxChanged, api.EventSandboxReady}, x.Kind):
			e.Restarted = true
		case x.Kind == api.EventDefinitionChanged:
			fields = x.Fields["changes"]
		case x.Kind == api.EventContainerDropped:
			e.Containers[x.Container] = "stopped"
		case x.Kind == api.EventContainerChanged:
			e.Containers[x.Container] = "restarted"
		case x.Kind == api.EventContainerStarted && e.Containers[x.Container] == "":
			e.Containers[x.Container] = "started"
		}
	}
	if e.Replaced {
		e.Restarted = false
	}
	if e.Replaced || e.Restarted {
		e.Containers = nil
	}
	return e, fields
}

// found is what the UIDs and the IDs of containers show.
func (p *planned) found() changetest.Effects {
	if p.was.Metadata.UID != p.is.Metadata.UID {
		return changetest.Effects{Replaced: true}
	}
	e := changetest.Effects{Containers: map[string]string{}}
	before, now := ids(&p.was), ids(&p.is)
	if slices.ContainsFunc(p.events, func(e api.Event) bool { return e.Kind == api.EventSandboxReady }) {
		e = changetest.Effects{Restarted: true}
		for name, id := range now {
			if before[name] == id {
				return changetest.Effects{} // it did not restart
			}
		}
		return e
	}
	for name, id := range now {
		switch old, existed := before[name]; {
		case !existed && id != "":
			e.Containers[name] = "started"
		case existed && old != id:
			e.Containers[name] = "restarted"
		}
	}
	for name := range maps.Keys(before) {
		if _, exists := now[name]; !exists && !isCompleted(&p.was, name) {
			e.Containers[name] = "stopped"
		}
	}
	return e
}

// ids returns the IDs of the newest runs of containers.
func ids(p *api.Pod) map[string]string {
	found := map[string]string{}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		found[c.Name] = c.ContainerID
	}
	return found
}

// isCompleted reports whether a container has completed.
func isCompleted(p *api.Pod, container string) bool {
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c api.ContainerStatus) bool {
		return c.Name == container && c.State.Terminated != nil
	})
}
