package exec

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStartThatHangs: the OCI runtime of a command is killed if it is stopped when the timeout of the command expires, and when the call is
// cancelled. The error of the start is the cause.
func TestStartThatHangs(t *testing.T) {
	cancelled := errors.New("cancelled by the test")
	for name, test := range map[string]struct {
		stop bool
		want error
	}{
		"stopped":   {true, context.DeadlineExceeded},
		"cancelled": {false, cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Config{})
			m := r.marks.next(probe)
			runtime := exec.Command("sh", "-c", "sleep 1000", "exec", "--pid-file", "/bundle/"+m.String()+".pid")
			if err := runtime.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = runtime.Process.Kill() })
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			timeout := time.Hour
			if test.stop {
				timeout = time.Millisecond
				if err := runtime.Process.Signal(unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			} else {
				cancel(cancelled)
			}
			start := r.watchStart(ctx, m, timeout)
			failed := runtime.Wait() // as the shim does
			if failed == nil || failed.Error() != "signal: killed" {
				t.Errorf("the OCI runtime exited with %v, want signal: killed", failed)
			}
			if err := start.end(failed); !errors.Is(err, test.want) || !errors.Is(err, failed) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

// TestStartInTime: a start that succeeds has no error, whatever is cancelled later.
func TestStartInTime(t *testing.T) {
	r := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	start := r.watchStart(ctx, r.marks.next(hook), 0)
	err := start.end(nil)
	cancel()
	if err != nil {
		t.Error(err)
	}
}
