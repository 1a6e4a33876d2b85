package podfiles

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestHeldPods: a pod that is not supervised is neither changed nor deleted. When a client has deleted it, its file defines it again.
func TestHeldPods(t *testing.T) {
	t.Parallel()
	for _, reason := range []lifecycle.Reason{lifecycle.ReasonQuarantined, lifecycle.ReasonSuspected, lifecycle.ReasonNewerState} {
		t.Run(string(reason), func(t *testing.T) {
			b := newBench(t)
			b.write("web.toml", podText("a"))
			b.write("db.toml", podText("a"))
			b.write("log.toml", podText("a"))
			b.run()
			b.untilPods(map[string]string{"web": "a", "db": "a", "log": "a"})
			b.fakePods.set(func(f *fakePods) {
				for _, name := range []string{"web", "db"} {
					next := *f.pods[name]
					next.Status = lifecycle.Status{Reason: reason, Message: supervisor.NotSupervised + "the daemon crashed"}
					f.pods[name] = &next
				}
			})
			b.write("web.toml", podText("b"))
			b.remove("db.toml")
			b.remove("log.toml")
			b.untilPods(map[string]string{"web": "a", "db": "a"})
			b.until("the file shows why", func() bool {
				return statesOf(b.set.Files()) == "web : the pod is not supervised: the daemon crashed"
			})
			b.looks(2)
			b.untilPods(map[string]string{"web": "a", "db": "a"})
			if history := b.history(); slices.Contains(history, "stop web delete=true") || slices.Contains(history, "stop db delete=true") {
				t.Errorf("a pod was stopped: %v", history)
			}
			b.must(b.Stop(t.Context(), "web", supervisor.StopOptions{Delete: true}))
			b.untilPods(map[string]string{"web": "b", "db": "a"})
		})
	}
}

// TestLostState: a pod whose state file was lost, and with it its owner, follows the file that defines its name.
func TestLostState(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.compare = effectOfImage
	for name, image := range map[string]string{"same": "a", "changed": "a"} {
		_, err := b.AddStaged(accept("/"+name+".toml", []byte(podText(image))).pod, state.Owner{}, supervisor.Staged{})
		b.must(err)
	}
	b.write("same.toml", podText("a"))
	b.write("changed.toml", podText("b"))
	b.run()
	b.untilPods(map[string]string{"same": "a", "changed": "b"})
	b.until("owned", func() bool {
		return !slices.ContainsFunc(b.Pods(),
			func(p supervisor.Snapshot) bool { return p.Owner.File != filepath.Join(b.dir, p.Pod.Name+".toml") })
	})
	if n := b.count(api.EventFileRejected); n > 0 {
		t.Errorf("a file was rejected: %d events", n)
	}
	b.remove("same.toml")
	b.untilPods(map[string]string{"changed": "b"})
}

// orphan adds a pod of which only the containers were found, with a definition from a directory.
func (b *bench) orphan(name, dir string) {
	b.Helper()
	_, err := b.AddStaged(accept(filepath.Join(dir, name+".toml"), []byte(podText("x"))).pod, state.Owner{Orphan: true},
		supervisor.Staged{})
	b.must(err)
}

// TestOrphans: pods without a state file end only after the directory was read, and did not change for a while. Those that a file defines
// are kept.
func TestOrphans(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(os.Remove(b.dir))
	for _, name := range []string{"a", "b", "c"} {
		b.orphan(name, b.dir)
	}
	b.run()
	b.untilLost("does not exist", map[string]string{"a": "x", "b": "x", "c": "x"})
	b.must(os.Mkdir(b.dir, 0o755))
	b.passes(2 * b.times.settle)
	b.untilPods(map[string]string{"a": "x", "b": "x", "c": "x"})
	b.write("a.toml", podText("x"))
	b.untilPods(map[string]string{"a": "x"})
	for _, p := range b.Pods() {
		if p.Owner.Orphan || p.Owner.File != filepath.Join(b.dir, "a.toml") {
			t.Errorf("owner %+v", p.Owner)
		}
	}
	if slices.Contains(b.history(), "stop a delete=true") {
		t.Errorf("the pod that a file defines was stopped: %v", b.history())
	}
}

// TestOrphansWithoutDirectory: where there is no directory, and nothing came from it, there is nothing to wait for. One that cannot be
// read is waited for.
func TestOrphansWithoutDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(os.Remove(b.dir))
	b.must(os.WriteFile(b.dir, nil, 0o600)) // instead of a directory
	b.orphan("a", "/srv")
	b.run()
	b.passes(2 * b.times.settle)
	b.untilPods(map[string]string{"a": "x"})
	b.must(os.Remove(b.dir))
	b.untilPods(map[string]string{})
}
