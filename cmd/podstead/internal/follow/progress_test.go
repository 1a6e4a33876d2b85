package follow

import (
	"context"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRunShowsProgress restarts the daemon while an archive is being imported, and expects the event and the progress of the import, until
// it is done.
func TestRunShowsProgress(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	h := newHost(t, fakeruntime.Options{Fetch: func(ctx context.Context, _ *spec.Pod, _ string, progress func(lifecycle.Progress)) error {
		for {
			progress(lifecycle.Progress{Archive: "/shop.tar", Done: 1, Total: 2})
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}})
	s := newRecorder()
	want := api.Progress{Archive: "/shop.tar", Done: 1, Total: 2}
	var shown, lost, again bool // guarded by the mutex of s
	progress := func(p *api.Pod) {
		s.add(func() {
			lost = lost || p == nil
			shown = p != nil && p.Status.Pulling["c"] == want
			again = again || lost && shown
		})
	}
	result := h.start(Options{Printer: s, Progress: progress}, file("a", "exit 0"))
	s.await(t, "the event", s.hasEvent(api.EventImageImporting))
	s.await(t, "the progress", func() bool { return shown })
	h.stop()
	s.await(t, "the progress after a restart", func() bool { return again })
	close(done)
	if err := await(t, result); err != nil {
		t.Error(err)
	}
	if shown {
		t.Error("the progress is shown after the run")
	}
}
