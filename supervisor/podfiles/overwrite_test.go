package podfiles

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
)

// TestApplyKeepsNewFile: a file that was saved a moment ago, and is not listed yet, is not overwritten if it defines another pod.
func TestApplyKeepsNewFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.quiet, b.times.burst = time.Hour, time.Hour
	b.write("site.toml", named("site", "a"))
	long := time.Now().Add(-24 * time.Hour)
	b.must(os.Chtimes(filepath.Join(b.dir, "site.toml"), long, long))
	b.run()
	b.looks(1)
	b.write("web.toml", named("db", "a"))
	b.write("shop.yaml", "half-written: [")
	for _, dryRun := range []bool{true, false} {
		var conflict *ConflictError
		if _, err := b.apply("web", ".toml", podText("b"), dryRun); !errors.As(err, &conflict) ||
			!strings.Contains(err.Error(), `web.toml defines pod "db"`) {
			t.Errorf("dry run %v: error %v, want a conflict", dryRun, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.dir, "web.toml")); err != nil || string(text) != named("db", "a") {
		t.Errorf("the file was overwritten: %s, %v", text, err)
	}
	if _, err := b.apply("shop", ".yaml",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: shop}\nspec: {containers: [{name: app, image: c}]}\n", false); err != nil {
		t.Errorf("an invalid file of the same name: %v", err)
	}
}

// TestApplyKeepsLink: a symbolic link is neither replaced nor removed, unless it points to the text that is applied.
func TestApplyKeepsLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	target := filepath.Join(t.TempDir(), "web.toml")
	b.must(os.WriteFile(target, []byte(podText("a")), 0o644))
	link := filepath.Join(b.dir, "web.toml")
	b.must(os.Symlink(target, link))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	if plan, err := b.apply("web", ".toml", podText("a"), false); err != nil || plan.Outcome != api.PodUnchanged {
		t.Errorf("the same text: %+v, %v", plan, err)
	}
	yaml := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: c}]}\n"
	for extension, text := range map[string]string{".toml": podText("b"), ".yaml": yaml} {
		for _, dryRun := range []bool{true, false} {
			_, err := b.apply("web", extension, text, dryRun)
			conflict, is := errors.AsType[*ConflictError](err)
			if !is || !strings.Contains(err.Error(), "file "+link+" is a symbolic link to "+target) || conflict.Hint == "" {
				t.Errorf("%s, dry run %v: error %v, want a conflict with a hint", extension, dryRun, err)
			}
		}
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link points to %q, %v", to, err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != podText("a") {
		t.Errorf("the file was overwritten: %s, %v", text, err)
	}
	b.untilPods(map[string]string{"web": "a"})
}

// TestHungEnvFile: a pod file whose env file does not respond is invalid, and keeps no other.
func TestHungEnvFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.three()
	b.run()
	b.untilPods(want)
	// The disk of the file is busy, as if a first access had timed out.
	b.set.turn.Lock()
	busy := b.set.referenced(filepath.Join(b.dir, "b.toml"))
	b.set.turn.Unlock()
	release := onceHung(busy)
	b.write("b.toml", podText("new"))
	b.write("c.toml", podText("new"))
	want["c"] = "new"
	b.untilPods(want)
	b.until("b.toml is invalid", func() bool { return strings.Contains(statesOf(b.set.Files()), "b InvalidFile") })
	if _, err := b.apply("d", ".toml", podText("x"), false); err != nil {
		t.Errorf("another pod: %v", err)
	}
	if _, err := b.apply("b", ".toml", podText("y"), false); !errors.Is(err, disk.UnresponsiveError{}) {
		t.Errorf("the pod of the file: %v, want a timeout", err)
	}
	want["d"] = "x"
	b.untilPods(want)
	b.set.turn.Lock()
	lost := b.set.facts.directory.lost
	b.set.turn.Unlock()
	if lost != nil {
		t.Errorf("the directory is lost: %v", lost)
	}
	release()
	want["b"] = "new"
	b.until("b runs the new definition", func() bool { b.set.wake(); return maps.Equal(b.images(), want) })
}
