package podfiles

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/disk"
)

// TestHungDirectory: while the file system of the directory does not respond, pods keep running, requests fail, and Run returns.
func TestHungDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := b.three()
	b.run()
	b.untilPods(want)
	hung := onceHung(b.set.disk)
	b.set.wake()
	b.untilLost("cannot be read: the file system did not respond", want)
	for name, request := range map[string]func() error{
		"apply":  func() error { _, err := b.apply("d", ".toml", podText("x"), false); return err },
		"remove": func() error { _, err := b.set.Remove(t.Context(), "a"); return err },
		"prune":  func() error { _, err := b.set.ConfirmLoss(t.Context(), nil, false); return err },
	} {
		if err := request(); err == nil || !strings.Contains(err.Error(), "did not respond") {
			t.Errorf("%s: %v, want a timeout", name, err)
		}
	}
	b.looks(1)
	b.untilPods(want)
	hung()
	b.untilEvent(api.EventPodsDirFound, b.dir)
	defer onceHung(b.set.disk)()
	b.end()
	b.untilPods(want)
}

// onceHung makes calls fail as if one hung, when the current one has returned. The function that it returns ends that.
func onceHung(d *disk.Caller) (end func()) {
	release := make(chan struct{})
	for hangs := false; !hangs; {
		ctx, cancel := context.WithCancel(context.Background())
		_, _ = disk.Call(ctx, d, func() (struct{}, error) {
			hangs = true
			cancel()
			<-release
			return struct{}{}, nil
		})
		cancel()
	}
	return func() {
		close(release)
		for {
			if _, err := disk.Call(context.Background(), d, func() (struct{}, error) { return struct{}{}, nil }); err == nil {
				return
			}
		}
	}
}

// TestLockContext: a request does not wait for the lock after the end of its context.
func TestLockContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.set = New(b.dir, b.fakePods, Options{})
	b.set.turn.Lock()
	defer b.set.turn.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.set.Remove(ctx, "web"); !errors.Is(err, context.Canceled) {
		t.Errorf("remove: %v, want %v", err, context.Canceled)
	}
	file := acceptedFile(t, "/web.toml", podText("a"))
	if _, err := b.set.Apply(ctx, file, ApplyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("apply: %v, want %v", err, context.Canceled)
	}
}
