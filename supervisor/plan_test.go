package supervisor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/spec/change/changetest"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestRandomPairs checks that a change of a definition does what the comparison of the definitions says, and nothing else: each pair is the
// first definition of a field and the second one of another field, so that several fields change at once.
func TestRandomPairs(t *testing.T) {
	pairs := slices.DeleteFunc(changetest.Pairs(), func(p changetest.Pair) bool { return !p.Runs || p.Field == "name" })
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	definition := func(text string, files map[string]string) *spec.Pod {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pod, problems := spec.Accept(filepath.Join(dir, "pair.toml"), []byte(text))
		if pod == nil {
			t.Fatalf("%v\n%s", problems, text)
		}
		return pod
	}
	for _, from := range slices.Repeat(pairs, 2) {
		to := pairs[random.IntN(len(pairs))]
		a, b := definition(from.Before, from.Files), definition(to.After, to.Files)
		t.Run(from.Field+" "+to.Field, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkPair(t, a, b) })
			if t.Failed() {
				t.Logf("--- from\n%s--- to\n%s", from.Before, to.After)
			}
		})
	}
}

// checkPair changes a pod that runs the definition a to b, and compares what happens with what the comparison says.
func checkPair(t *testing.T, a, b *spec.Pod) {
	m := newMachine(t, fakeruntime.Options{})
	m.dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
	m.start()
	m.CompareWith(change.Between)
	m.host.set("path", true)
	m.add(a)
	m.until(a.Name, "running", allRunning)
	time.Sleep(time.Minute) // the hooks have run
	before, _ := m.Pod(a.Name)
	planned := change.Between(a, b)
	done, err := m.Redefine(t.Context(), "", b, m.stage(b), state.Owner{By: "test"})
	if must, ok := errors.AsType[*supervisor.ReplaceError](err); ok {
		done = must.Changes
		planned = slices.DeleteFunc(planned, func(c change.Change) bool { return c.Effect != change.ReplacePod })
	} else if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(planned, done); diff != "" {
		t.Errorf("planned and done (-planned +done):\n%s", diff)
	}
	time.Sleep(10 * time.Minute)
	after, _ := m.Pod(a.Name)
	want := changetest.EffectsOf(planned)
	if want.Replaced {
		want = changetest.Effects{Containers: map[string]string{}} // nothing, until the pod is replaced
	} else if after.Pod.Hash != b.Hash {
		t.Error("the pod has another definition")
	}
	got := changetest.Effects{
		Containers: map[string]string{}, Replaced: before.Facts.UID != after.Facts.UID,
		Restarted: before.Facts.Sandbox.N != after.Facts.Sandbox.N,
	}
	was, is := newestRuns(&before), newestRuns(&after)
	if got.Restarted { // with all containers
		was, is = nil, nil
		got.Containers = nil
	}
	for name, id := range is {
		switch old, existed := was[name]; {
		case id != "" && !existed:
			got.Containers[name] = "started"
		case existed && old != id:
			got.Containers[name] = "restarted"
		}
	}
	for name := range was {
		if _, exists := is[name]; !exists && runs(&before, name) {
			got.Containers[name] = "stopped"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || !allRunning(after) {
		t.Errorf("what was planned and what happened (-planned +happened):\n%s%v\n%+v", diff, planned, after.Status)
	}
}

// newestRuns returns the IDs of the newest runs of all containers.
func newestRuns(s *supervisor.Snapshot) map[string]string {
	list := map[string]string{}
	for _, c := range slices.Concat(s.Status.InitContainerStatuses, s.Status.ContainerStatuses) {
		list[c.Name] = c.ContainerID
	}
	return list
}

// runs reports whether a container runs.
func runs(s *supervisor.Snapshot, name string) bool {
	return slices.ContainsFunc(slices.Concat(s.Status.InitContainerStatuses, s.Status.ContainerStatuses),
		func(c lifecycle.ContainerStatus) bool {
			return c.Name == name && c.State.Running != nil
		})
}
