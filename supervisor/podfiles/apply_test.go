package podfiles

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/podfiles/watch"
	"github.com/podstead/podstead/supervisor/state"
)

// apply applies a text as the API does.
func (b *bench) apply(name, extension, text string, dryRun bool) (Plan, error) {
	b.Helper()
	file := acceptedFile(b.T, "/home/"+name+extension, text)
	if file.Pod == nil {
		b.Fatal(file.Problems)
	}
	return b.set.Apply(b.Context(), file, ApplyOptions{DryRun: dryRun, By: "a test"})
}

// acceptedFile is a pod file as the API passes it on.
func acceptedFile(t *testing.T, path, text string) *spec.Accepted {
	t.Helper()
	file, _, err := spec.AcceptRelocated(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &file
}

// entries returns the files of the directory with their modes and contents.
func (b *bench) entries() string {
	b.Helper()
	list, err := os.ReadDir(b.dir)
	b.must(err)
	var lines []string
	for _, e := range list {
		info, err := e.Info()
		b.must(err)
		lines = append(lines, e.Name()+" "+info.Mode().String())
	}
	return strings.Join(lines, "\n")
}

func TestApply(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(os.Remove(b.dir)) // Apply creates it
	b.run()
	steps := []struct {
		name, extension, text string
		dryRun                bool
		outcome               api.Outcome
		entries               string
	}{
		{"web", ".toml", named("web", "a"), true, api.PodCreated, ""},
		{"web", ".toml", named("web", "a"), false, api.PodCreated, "web.toml -rw-------"},
		{"web", ".toml", named("web", "a"), true, api.PodUnchanged, "web.toml -rw-------"},
		{"web", ".toml", named("web", "a"), false, api.PodUnchanged, "web.toml -rw-------"},
		{"web", ".toml", named("web", "b"), true, api.PodConfigured, "web.toml -rw-------"},
		{"web", ".toml", named("web", "b"), false, api.PodConfigured, "web.toml -rw-------"},
		{
			"web", ".toml", named("web", "b") + "[[secrets]]\nname = \"s\"\ndata = { k = \"v\" }\n", false, api.PodConfigured,
			"web.toml -rw-------",
		},
		{
			"web", ".yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: c}]}\n", false,
			api.PodConfigured,
			"web.yaml -rw-------",
		},
	}
	for i, step := range steps {
		plan, err := b.apply(step.name, step.extension, step.text, step.dryRun)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if plan.Outcome != step.outcome || plan.Pod != "web" || plan.File != filepath.Join(b.dir, "web"+step.extension) {
			t.Errorf("step %d: plan %+v, want %s", i, plan, step.outcome)
		}
		var replaced []string
		if i == len(steps)-1 { // the extension differs
			replaced = []string{filepath.Join(b.dir, "web.toml")}
		}
		if !slices.Equal(plan.Replaced, replaced) {
			t.Errorf("step %d: replaced %v, want %v", i, plan.Replaced, replaced)
		}
		if (len(plan.Changes) > 0) != (step.outcome == api.PodConfigured) {
			t.Errorf("step %d: changes %v", i, plan.Changes)
		}
		if i == 0 {
			continue // the directory does not exist
		}
		if i == 2 { // as a person may do; the next step restores the mode
			step.entries = "web.toml -rw-r--r--"
			b.must(os.Chmod(plan.File, 0o644))
		}
		if got := b.entries(); got != step.entries {
			t.Errorf("step %d: files %q, want %q", i, got, step.entries)
		}
		b.until("carried out", func() bool {
			files := b.set.Files()
			return len(b.Pods()) == 1 && len(files) == 1 && statesOf(files) == "" && b.idle()
		})
	}
	b.untilPods(map[string]string{"web": "c"})
	path, err := b.set.Remove(t.Context(), "web")
	if err != nil || path != filepath.Join(b.dir, "web.yaml") {
		t.Errorf("Remove returns %q, %v", path, err)
	}
	b.untilPods(map[string]string{})
	if path, err = b.set.Remove(t.Context(), "web"); err != nil || path != "" {
		t.Errorf("the second Remove returns %q, %v", path, err)
	}
}

// TestAcceptedOnce: a file is read, converted and validated once. A file that is applied has the definition that the API has accepted.
func TestAcceptedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.quiet = 0 // otherwise a new file may be half-written
	var mu sync.Mutex
	accepted := map[string]int{}
	b.accept = func(path string, text []byte) *content {
		mu.Lock()
		defer mu.Unlock()
		accepted[filepath.Base(path)]++
		return accept(path, text)
	}
	b.write("db.toml", podText("a"))
	b.run()
	if _, err := b.apply("web", ".toml", podText("b"), false); err != nil {
		t.Fatal(err)
	}
	b.untilPods(map[string]string{"db": "a", "web": "b"})
	b.looks(3) // the files are read again, because a later change could have the same time
	mu.Lock()
	defer mu.Unlock()
	if len(accepted) != 1 || accepted["db.toml"] != 1 {
		t.Errorf("accepted %v, want db.toml once", accepted)
	}
}

// TestCreate: a pod that exists, or that a file defines, is not changed by a request to create it.
func TestCreate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("site.toml", named("web", "a"))
	b.write("db.toml", named("db", "a"))
	b.run()
	b.untilPods(map[string]string{"web": "a", "db": "a"})
	create := func(name string) error {
		_, err := b.set.Apply(t.Context(), acceptedFile(t, "/home/"+name+".toml", named(name, "b")), ApplyOptions{Create: true})
		return err
	}
	for _, name := range []string{"web", "db"} {
		e, ok := errors.AsType[*ConflictError](create(name))
		if !ok || e.Message != `pod "`+name+`" already exists` || e.Hint != "update it with podstead apply FILE" {
			t.Errorf("create %s: %v", name, e)
		}
	}
	b.must(create("new"))
	b.untilPods(map[string]string{"web": "a", "db": "a", "new": "b"})
}

// idle reports whether no step is in progress or due.
func (b *bench) idle() bool {
	b.set.turn.Lock()
	defer b.set.turn.Unlock()
	_ = b.set.look(b.Context(), true, nil)
	return len(b.set.workers) == 0 && len(b.set.facts.plan().steps) == 0
}

// TestHashOfUnchangedPod: an unchanged pod keeps its definition, unless it follows another file from then on.
func TestHashOfUnchangedPod(t *testing.T) {
	const inYAML = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: a}]}\n"
	for path, text := range map[string]string{"/home/web.toml": podText("a"), "/home/web.yaml": inYAML} {
		f := factsOf(map[string]string{"web.toml": podText("a")}, watched("a", lifecycle.OutcomeComplete))
		f.between = func(*pod, *content) []change.Change { return nil }
		present := f.pods["web"].definition
		present.Hash = "of the pod"
		next, replaced, err := f.place(acceptedFile(t, path, text))
		if err != nil {
			t.Fatal(err)
		}
		want := next.pod.Hash
		if len(replaced) == 0 {
			want = present.Hash
		}
		a, err := f.apply(next, replaced, nil, lifecycle.Instant{}, false)
		if err != nil || a.plan.Outcome != api.PodUnchanged || a.plan.SpecHash != want {
			t.Errorf("%s: %+v, %v; want unchanged with hash %s", path, a.plan, err, want)
		}
	}
}

// TestApplyReplacesFile: the file of the pod is replaced, whatever its name, if the text means the same in it.
func TestApplyReplacesFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("site.toml", named("web", "a"))
	b.write("db.toml", "broken = ")
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	if plan, err := b.apply("web", ".toml", named("web", "b"), false); err != nil || filepath.Base(plan.File) != "site.toml" {
		t.Errorf("plan %+v, %v; want site.toml", plan, err)
	}
	b.untilPods(map[string]string{"web": "b"})
	if plan, err := b.apply("web", ".toml", podText("c"), false); err != nil || filepath.Base(plan.File) != "web.toml" {
		t.Errorf("plan %+v, %v; want web.toml, because the name is that of the file", plan, err)
	}
	b.untilPods(map[string]string{"web": "c"})
	if plan, err := b.apply("db", ".toml", podText("x"), false); err != nil || filepath.Base(plan.File) != "db.toml" ||
		plan.Outcome != api.PodCreated {
		t.Errorf("plan %+v, %v; want db.toml repaired", plan, err)
	}
	b.untilPods(map[string]string{"web": "c", "db": "x"})
	if got := b.entries(); got != "db.toml -rw-------\nweb.toml -rw-------" {
		t.Errorf("files %q", got)
	}
}

func TestApplyErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.quiet = 0 // both files that define the pod are taken in the first listing
	_, err := b.AddStaged(accept("/run.toml", []byte(named("run", "run"))).pod, state.Owner{By: "podstead run, pid 4711, uid 0"},
		supervisor.Staged{})
	b.must(err)
	b.write("one.toml", named("two", "a"))
	b.write("web.toml", podText("a"))
	b.write("site.toml", named("web", "a"))
	b.run()
	b.until("rejected", func() bool {
		return b.images()["two"] == "a" && strings.Count(statesOf(b.set.Files()), "web Rejected") == 2
	})
	for name, want := range map[string]string{
		"run": `pod "run" already exists: podstead run, pid 4711, uid 0`,
		"one": `file ` + b.dir + `/one.toml defines pod "two"`,
		"web": "it is defined by " + b.dir + "/site.toml and " + b.dir + "/web.toml",
	} {
		_, err := b.apply(name, ".toml", named(name, "x"), false)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "created by ", ""), want) {
			t.Errorf("apply %s: %v, want %s", name, err, want)
		}
		if _, ok := errors.AsType[*ConflictError](err); !ok && name != "run" {
			t.Errorf("apply %s: %T, want a ConflictError", name, err)
		}
	}
	if _, err := b.set.Apply(t.Context(), acceptedFile(t, "/x.toml", "x = 1"), ApplyOptions{}); !isProblems(err) {
		t.Errorf("apply an invalid text: %v, want its problems", err)
	}
}

func isProblems(err error) bool {
	_, ok := errors.AsType[spec.Problems](err)
	return ok
}

// TestRemoveInvalidFile: the file of a refused pod is removed by the name of the file.
func TestRemoveInvalidFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.toml", named("site", "a"))
	b.write("bad.toml", "x = 1")
	b.run()
	b.untilPods(map[string]string{"site": "a"})
	b.write("web.toml", "x = 1")
	b.until("invalid", func() bool { return strings.Count(statesOf(b.set.Files()), string(api.ReasonInvalidFile)) == 2 })
	for pod, file := range map[string]string{"bad": "bad.toml", "site": "web.toml"} {
		if path, err := b.set.Remove(t.Context(), pod); err != nil || filepath.Base(path) != file {
			t.Errorf("remove %s: %q, %v", pod, path, err)
		}
	}
	b.untilPods(map[string]string{})
}

// TestTooManyFiles: the files beyond the limit are refused, and pods that follow them keep running.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("zz.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"zz": "a"})
	b.end()
	for i := range watch.MaxFiles {
		b.write(strings.Repeat("a", 1+i%50)+strings.Repeat("b", i/50)+".toml", "x")
	}
	b.run()
	b.until("refused", func() bool {
		files := b.set.Files()
		i := slices.IndexFunc(files, func(f File) bool { return f.Pod == "zz" })
		return i >= 0 && strings.Contains(text(files[i].Refused), "more than 1024 pod files")
	})
	b.untilPods(map[string]string{"zz": "a"})
}

// TestInvalidFileOfOtherPod: the invalid file of a pod is not taken for the file of the pod that has the name of the file.
func TestInvalidFileOfOtherPod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.yaml", podOf("api", "a"))
	b.run()
	b.untilPods(map[string]string{"api": "a"})
	b.write("web.yaml", "kind: [")
	b.untilEvent(api.EventFileInvalid, "the pod keeps running")
	if files := b.set.Files(); len(files) != 1 || files[0].Pod != "api" {
		t.Errorf("files %+v, want one of pod api", files)
	}
	if path, err := b.set.Remove(t.Context(), "web"); err != nil || path != "" {
		t.Errorf("remove web: %q, %v; want no file", path, err)
	}
	if _, err := b.apply("web", ".yaml", podOf("web", "x"), false); err == nil ||
		!strings.Contains(err.Error(), `web.yaml is the file of pod "api"`) {
		t.Errorf("apply web.yaml: %v, want an error that names the pod api", err)
	}
	if plan, err := b.apply("web", ".toml", podText("x"), false); err != nil || filepath.Base(plan.File) != "web.toml" {
		t.Errorf("apply web.toml: %+v, %v", plan, err)
	}
	b.untilPods(map[string]string{"api": "a", "web": "x"})
	if plan, err := b.apply("api", ".yaml", podOf("api", "b"), false); err != nil || filepath.Base(plan.File) != "web.yaml" {
		t.Errorf("apply api: %+v, %v; want web.yaml repaired", plan, err)
	}
	b.untilPods(map[string]string{"api": "b", "web": "x"})
}

// podOf is a pod file in YAML.
func podOf(name, image string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: app, image: " + image + "}]}\n"
}

// TestRemoveKeepsFileOfOtherPod: a rejected file whose earlier content still runs is not removed with the pod that it defines now.
func TestRemoveKeepsFileOfOtherPod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("api.toml", podText("a"))
	b.write("web.toml", podText("x"))
	b.run()
	want := map[string]string{"api": "a", "web": "x"}
	b.untilPods(want)
	b.write("api.toml", named("web", "y"))
	b.untilEvent(api.EventFileRejected, "is defined by")
	if path, err := b.set.Remove(t.Context(), "web"); err == nil || !strings.Contains(err.Error(), `api.toml is the file of pod "api"`) {
		t.Errorf("remove web: %q, %v; want an error that names the pod api", path, err)
	}
	b.looks(2)
	b.untilPods(want)
}

// TestApplyDuringDeletion: a file that is applied while its pod is being deleted creates a pod.
func TestApplyDuringDeletion(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]string{"pod of a file": "web.toml", "pod of podstead run": ""} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.slow["web"] = true
			if owner != "" {
				owner = filepath.Join(b.dir, owner)
			}
			_, err := b.AddStaged(accept("/web.toml", []byte(podText("a"))).pod, state.Owner{File: owner}, supervisor.Staged{})
			b.must(err)
			b.must(b.Stop(t.Context(), "web", supervisor.StopOptions{Delete: true}))
			b.run()
			if plan, err := b.apply("web", ".toml", podText("a"), false); err != nil || plan.Outcome != api.PodCreated {
				t.Errorf("plan %+v, %v; want %s", plan, err, api.PodCreated)
			}
			b.looks(1)
			if got := statesOf(b.set.Files()); got != "" {
				t.Errorf("the file is %s", got)
			}
			b.deleted("web")
			b.until("a new pod", func() bool { return slices.Contains(b.history(), "add web a") && len(b.history()) == 4 })
		})
	}
}

// TestApplyPublishes: when Apply returns, the earlier error of a file is no longer shown.
func TestApplyPublishes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write("web.yaml", "kind: [")
	b.admit = func(pod *spec.Pod) error {
		if pod.Containers[0].Image == "bad" {
			return errors.New("no")
		}
		return nil
	}
	b.run()
	b.until("invalid", func() bool { return strings.HasPrefix(statesOf(b.set.Files()), "web InvalidFile") })
	for i, image := range []string{"a", "bad", "c"} {
		if _, err := b.apply("web", ".toml", podText(image), false); err != nil {
			t.Fatal(err)
		}
		if files := b.set.Files(); image != "bad" && (len(files) != 1 || statesOf(files) != "") {
			t.Errorf("step %d: files %+v, want one without an error", i, files)
		}
		if image == "bad" {
			// the replacement deletes the pod first, unless this is faster
			if err := b.Stop(t.Context(), "web", supervisor.StopOptions{Delete: true}); !errors.Is(err, supervisor.ErrNotFound) {
				b.must(err)
			}
			b.until("rejected", func() bool { return strings.HasPrefix(statesOf(b.set.Files()), "web Rejected") })
		} else {
			b.untilPods(map[string]string{"web": image})
		}
	}
}
