package podfiles

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/supervisor/event"
)

// TestOnDisk: a function that hangs is abandoned after the timeout, and no other one is called until it returns.
func TestOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(slog.New(slog.DiscardHandler))
		hangs := func() (int, error) { time.Sleep(time.Hour); return 1, nil }
		works := func() (int, error) { return 2, nil }
		started := time.Now()
		if _, err := onDisk(t.Context(), d, hangs); !errors.Is(err, UnresponsiveError{}) {
			t.Errorf("error %v, want a timeout", err)
		}
		if took := time.Since(started); took != diskTimeout+diskCleanup {
			t.Errorf("took %v", took)
		}
		if _, err := onDisk(t.Context(), d, works); !errors.Is(err, UnresponsiveError{}) || time.Since(started) != diskTimeout+diskCleanup {
			t.Errorf("while another call hangs: %v after %v", err, time.Since(started))
		}
		time.Sleep(time.Hour)
		if n, err := onDisk(t.Context(), d, works); n != 2 || err != nil {
			t.Errorf("later: %d, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		started = time.Now()
		if _, err := onDisk(ctx, d, hangs); !errors.Is(err, context.Canceled) || time.Since(started) > diskCleanup {
			t.Errorf("after the end of the context: %v after %v", err, time.Since(started))
		}
		time.Sleep(time.Hour)
	})
}

// TestHungDirectory: while the file system of the directory does not respond, pods keep running, requests fail, and Run returns.
func TestHungDirectory(t *testing.T) {
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
	b.untilEvent(event.PodsDirFound, b.dir)
	defer onceHung(b.set.disk)()
	b.end()
	b.untilPods(want)
}

// onceHung makes calls fail as if one hung, when the current one has returned. The function that it returns ends that.
func onceHung(d *disk) (end func()) {
	d.busy <- struct{}{}
	return func() { <-d.busy }
}

// TestLockContext: a request does not wait for the lock after the end of its context.
func TestLockContext(t *testing.T) {
	b := newBench(t)
	b.set = New(b.dir, b.fakePods, Options{})
	b.set.turn.Lock()
	defer b.set.turn.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.set.Remove(ctx, "web"); !errors.Is(err, context.Canceled) {
		t.Errorf("remove: %v, want %v", err, context.Canceled)
	}
	if _, err := b.set.Apply(ctx, accept("/web.toml", []byte(podText("a"))).pod, ".toml", []byte(podText("a")), ApplyOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("apply: %v, want %v", err, context.Canceled)
	}
}
