package podfiles

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
)

// confirmLoss confirms the loss of files, and checks which ones are lost.
func (b *bench) confirmLoss(want map[string]string, keep ...string) {
	b.Helper()
	for _, dryRun := range []bool{true, false} {
		got, err := b.set.ConfirmLoss(b.Context(), keep, dryRun)
		if err != nil || !maps.Equal(got, want) {
			b.Errorf("lost files %v, %v; want %v", got, err, want)
		}
	}
}

// TestConfirmLoss: pods of a lost directory are deleted, apart from those whose files have returned.
func TestConfirmLoss(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.times.removal = slow // of the directory, which removes one file after the other
	want := b.three()
	b.run()
	b.untilPods(want)
	b.must(os.RemoveAll(b.dir))
	b.untilLost("does not exist", want)
	b.confirmLoss(map[string]string{"b": filepath.Join(b.dir, "b.toml")}, "a", "c")
	b.untilPods(map[string]string{"a": "x", "c": "x"})
	b.must(os.Mkdir(b.dir, 0o755))
	b.write("other.toml", named("a", "x")) // restored with another name
	b.until("the loss of one file", func() bool {
		lost, err := b.set.ConfirmLoss(b.Context(), nil, true)
		return err == nil && len(lost) == 1 && lost["c"] != ""
	})
	b.confirmLoss(map[string]string{"c": filepath.Join(b.dir, "c.toml")})
	b.untilPods(map[string]string{"a": "x"})
	if got := b.entries(); !strings.HasPrefix(got, "other.toml ") {
		t.Errorf("files %q, want other.toml", got)
	}
}

// TestConfirmLossOfOtherDirectory: after a change of the directory in the configuration, only pods whose files do not exist are lost.
func TestConfirmLossOfOtherDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before := t.TempDir()
	for _, name := range []string{"kept", "lost"} {
		pod := accept(filepath.Join(before, name+".toml"), []byte(podText("a"))).pod
		_, err := b.AddStaged(pod, state.Owner{File: filepath.Join(before, name+".toml")}, supervisor.Staged{})
		b.must(err)
	}
	b.must(os.WriteFile(filepath.Join(before, "kept.toml"), []byte(podText("a")), 0o600))
	b.run()
	b.confirmLoss(map[string]string{"lost": filepath.Join(before, "lost.toml")})
	b.untilPods(map[string]string{"kept": "a"})
}

// TestConfirmLossOfRenamedFile: a pod whose renamed file waits for an image is not lost, and its file is kept.
func TestConfirmLossOfRenamedFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.stage = func(context.Context) error { return errors.New("no route to host") }
	b.write("web.toml", podText("a"))
	b.run()
	b.untilPods(map[string]string{"web": "a"})
	b.write("site.toml", named("web", "b"))
	b.untilEvent(api.EventFileRejected, "is defined by")
	b.remove("web.toml")
	b.untilEvent(api.EventUpdateWaiting, "no route to host")
	b.confirmLoss(map[string]string{})
	b.looks(2)
	b.untilPods(map[string]string{"web": "a"})
	if _, err := os.Stat(filepath.Join(b.dir, "site.toml")); err != nil {
		t.Error(err)
	}
}
