package podfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// slow is a delay of removals within which a few system calls end, even on a loaded host.
const slow = 2 * time.Second

// three writes three pod files, and waits for the pods if the set runs.
func (b *bench) three() map[string]string {
	b.Helper()
	want := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		b.write(name+".toml", podText("x"))
		want[name] = "x"
	}
	return want
}

// untilLost waits for the event of a loss, and checks that no pod is stopped and that no second event follows.
func (b *bench) untilLost(cause string, pods map[string]string) {
	b.Helper()
	e := b.untilEvent(api.EventPodsDirLost, cause)
	if e.Fields["pods"] != "a, b, c" {
		b.Errorf("the event names the pods %q", e.Fields["pods"])
	}
	b.passes(300 * time.Millisecond)
	b.untilPods(pods)
	if n := b.count(api.EventPodsDirLost); n != 1 {
		b.Errorf("%d events for one loss", n)
	}
	for _, change := range b.history() {
		if strings.HasPrefix(change, "stop") {
			b.Errorf("a pod was stopped: %v", b.history())
		}
	}
}

func TestLostDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		lose  func(b *bench)
		cause string
	}{
		"moved":    {func(b *bench) { b.must(os.Rename(b.dir, b.dir+".old")) }, "does not exist"},
		"deleted":  {func(b *bench) { b.must(os.RemoveAll(b.dir)) }, "does not exist"},
		"a file":   {func(b *bench) { b.must(os.RemoveAll(b.dir)); b.must(os.WriteFile(b.dir, nil, 0o600)) }, "cannot be read"},
		"replaced": {func(b *bench) { b.must(os.Rename(b.dir, b.dir+".old")); b.must(os.Mkdir(b.dir, 0o755)) }, "has no pod files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.times.removal = slow
			want := b.three()
			b.run()
			b.untilPods(want)
			test.lose(b)
			b.untilLost(test.cause, want)
			b.must(os.RemoveAll(b.dir))
			b.must(os.Mkdir(b.dir, 0o755))
			b.write("a.toml", podText("x"))
			b.untilEvent(api.EventPodsDirFound, b.dir)
			b.write("b.toml", podText("y"))
			b.untilPods(map[string]string{"a": "x", "b": "y"})
		})
	}
}

func TestEmptyAtBoot(t *testing.T) {
	t.Parallel()
	for _, missing := range []bool{false, true} {
		t.Run(fmt.Sprintf("missing %v", missing), func(t *testing.T) {
			b := newBench(t)
			want := b.three()
			b.run()
			b.untilPods(want)
			b.end()
			b.must(os.RemoveAll(b.dir))
			cause := "does not exist"
			if !missing {
				b.must(os.Mkdir(b.dir, 0o755))
				cause = "has no pod files"
			}
			b.run()
			b.untilLost(cause, want)
			for name := range want { // what apply --prune does
				if path, err := b.set.Remove(t.Context(), name); err != nil || path != "" {
					t.Errorf("Remove returns %q, %v", path, err)
				}
			}
			b.untilPods(map[string]string{})
		})
	}
}

// TestRestoredFileByFile: while files return one after the other, the pods of the others keep running.
func TestRestoredFileByFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.removal, b.times.settle = time.Nanosecond, time.Hour
	want := b.three()
	b.run()
	b.untilPods(want)
	b.must(os.Rename(b.dir, b.dir+".old"))
	b.untilLost("does not exist", want)
	b.must(os.Mkdir(b.dir, 0o755))
	for name := range want {
		b.write(name+".toml", podText("x"))
		b.looks(2)
	}
	b.looks(2)
	b.untilPods(want)
	if len(b.history()) != 3 {
		t.Errorf("pods have changed: %v", b.history())
	}
}

// TestPartlyFilledAtBoot: pods whose files are missing in the first listing keep running while the directory changes. Some tool may be
// copying it.
func TestPartlyFilledAtBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.three()
	b.run()
	b.untilPods(want)
	b.end()
	b.remove("a.toml")
	b.remove("b.toml")
	b.times.removal, b.times.settle = time.Nanosecond, time.Hour
	b.run()
	b.looks(3)
	b.write("b.toml", podText("x"))
	b.looks(3)
	b.write("a.toml", podText("x"))
	b.looks(3)
	b.end()
	if len(b.history()) != 3 {
		t.Errorf("pods have changed: %v", b.history())
	}
	b.remove("a.toml")
	b.times.settle = time.Nanosecond
	b.run()
	b.untilPods(map[string]string{"b": "x", "c": "x"})
}

// TestRemovedOneByOne: a directory that is emptied by rm of each file deletes the pods.
func TestRemovedOneByOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.removal = slow
	want := b.three()
	b.run()
	b.untilPods(want)
	for name := range want {
		b.remove(name + ".toml")
	}
	b.untilPods(map[string]string{})
	if n := b.count(api.EventPodsDirLost); n > 0 {
		t.Error("the directory was reported as lost")
	}
}

// TestBriefMove: a directory that is moved away and back is not lost.
func TestBriefMove(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.removal = time.Hour
	want := b.three()
	b.run()
	b.untilPods(want)
	b.must(os.Rename(b.dir, b.dir+".old"))
	b.must(os.Rename(b.dir+".old", b.dir))
	b.looks(3)
	b.untilPods(want)
	b.write("a.toml", podText("y")) // noticed in the directory that returned
	want["a"] = "y"
	b.untilPods(want)
	if len(b.history()) != 5 || b.count(api.EventPodsDirLost) > 0 {
		t.Errorf("pods have changed: %v", b.history())
	}
}

// TestSwappedLink: swapping a link to the directory is one change.
func TestSwappedLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, next, empty := b.dir+".1", b.dir+".2", b.dir+".3"
	b.must(os.Rename(b.dir, old))
	for _, dir := range []string{next, empty} {
		b.must(os.Mkdir(dir, 0o755))
	}
	swap := func(to string) {
		b.must(os.Symlink(to, b.dir+".new"))
		b.must(os.Rename(b.dir+".new", b.dir))
	}
	swap(old)
	b.three()
	b.must(os.WriteFile(filepath.Join(next, "b.toml"), []byte(podText("x")), 0o600))
	b.must(os.WriteFile(filepath.Join(next, "c.toml"), []byte(podText("y")), 0o600))
	b.must(os.WriteFile(filepath.Join(next, "d.toml"), []byte(podText("x")), 0o600))
	b.run()
	b.untilPods(map[string]string{"a": "x", "b": "x", "c": "x"})
	swap(next)
	want := map[string]string{"b": "x", "c": "y", "d": "x"}
	b.untilPods(want)
	if slices.Contains(b.history(), "stop b delete=true") {
		t.Errorf("the unchanged pod was stopped: %v", b.history())
	}
	swap(empty)
	b.untilEvent(api.EventPodsDirLost, "has no pod files")
	b.untilPods(want)
	swap(old)
	b.untilPods(map[string]string{"a": "x", "b": "x", "c": "x"})
}

// TestLinksAsFiles: files may be links, as in a mounted ConfigMap of Kubernetes or with GNU stow.
func TestLinksAsFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for version, image := range map[string]string{"..1": "x", "..2": "y"} {
		b.must(os.Mkdir(filepath.Join(b.dir, version), 0o755))
		b.write(version+"/web.toml", podText(image))
	}
	b.must(os.Symlink("..1", filepath.Join(b.dir, "..data")))
	b.must(os.Symlink("..data/web.toml", filepath.Join(b.dir, "web.toml")))
	stow := filepath.Join(t.TempDir(), "db.toml")
	b.must(os.WriteFile(stow, []byte(podText("x")), 0o600))
	b.must(os.Symlink(stow, filepath.Join(b.dir, "db.toml")))
	b.must(os.Symlink("nowhere", filepath.Join(b.dir, "dangling.toml")))
	b.run()
	b.untilPods(map[string]string{"web": "x", "db": "x"})
	b.untilEvent(api.EventFileInvalid, "no pod is started: read "+filepath.Join(b.dir, "dangling.toml")+": no such file")
	b.must(os.Symlink("..2", filepath.Join(b.dir, "..tmp")))
	b.rename("..tmp", "..data")
	b.untilPods(map[string]string{"web": "y", "db": "x"})
	b.must(os.WriteFile(stow, []byte(podText("z")), 0o600))
	b.untilPods(map[string]string{"web": "y", "db": "z"}) // by listing at intervals
}
