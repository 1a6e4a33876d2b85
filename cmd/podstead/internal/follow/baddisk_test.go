package follow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/runtime/fakeruntime"
)

// TestRunReturnsOnFailedDisk stops a run while neither states can be saved nor sandboxes removed. It must return with the error of the
// removal, whatever the exit code of the containers.
func TestRunReturnsOnFailedDisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code string
		keep bool
		want error // besides the error of the removal
	}{
		"succeeded":    {code: "0"},
		"failed":       {code: "3"},
		"kept":         {code: "0", keep: true},
		"kept, failed": {code: "3", keep: true, want: ErrStopped},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			h, s := newHost(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
				if broken.Load() && (c.Method == "RemoveSandbox" || c.Method == "RemovePod") {
					return errors.New("read-only file system")
				}
				return nil
			}}), newRecorder()
			stops := make(chan struct{})
			result := h.start(Options{Printer: s, Stops: stops, Keep: tt.keep},
				file("a", "trap 'exit "+tt.code+"' TERM; echo up; sleep 1000"))
			s.await(t, "the start", func() bool { return len(s.lines) > 0 })
			broken.Store(true)
			pods := filepath.Join(h.dir, "pods")
			if err := os.Rename(pods, pods+".away"); err != nil { // states cannot be saved
				t.Fatal(err)
			}
			stops <- struct{}{}
			err := await(t, result)
			remains, is := errors.AsType[*wait.RemainsError](err)
			if is == tt.keep || is && (remains.Pod != "a" || !strings.Contains(remains.Remains, "read-only file system")) {
				t.Errorf("error %v, of the removal: %v", err, is)
			}
			if errors.Is(err, ErrStopped) != (tt.want != nil) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if !s.hasEvent(api.EventStateNotDurable)() || len(s.terminated) != 1 {
				t.Errorf("%d pods terminated, events %+v", len(s.terminated), s.events)
			}
			broken.Store(false)
			if err := os.Rename(pods+".away", pods); err != nil {
				t.Fatal(err)
			}
		})
	}
}
