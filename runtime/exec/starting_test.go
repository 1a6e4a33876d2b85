package exec

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// pods are the cgroups of pods with these processes.
type pods []int

func (pods) ProcessDir(string, string) string { return "" }
func (p pods) InPod(pid int) bool             { return slices.Contains(p, pid) }

// startRuntime starts a process with the arguments of an OCI runtime that starts a command, and kills it at the end of the test.
func startRuntime(t *testing.T, pidFile string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read line", "exec", "--pid-file", pidFile) // starts no process that would be left
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// TestOtherProcesses: processes of containers, and of commands in other containers, are not taken for the OCI runtime of a command,
// whatever their arguments are.
func TestOtherProcesses(t *testing.T) {
	r := New(Config{Bundles: "/bundles"})
	m, earlier := r.marks.next(probe), mark{"0123abcd", 1, probe}
	runtime := startRuntime(t, "/bundles/c1/"+m.String()+".pid")
	others := []*exec.Cmd{
		startRuntime(t, "/bundles/c1/"+m.String()+".pid"), startRuntime(t, "/bundles/c2/"+m.String()+".pid"),
		startRuntime(t, "/tmp/c1/"+m.String()+".pid"), startRuntime(t, "/tmp/c1/"+earlier.String()+".pid"),
		startRuntime(t, "/bundles/c1/"+earlier.String()+".pid"),
	}
	r.config.Cgroups = pods{others[0].Process.Pid, others[4].Process.Pid}
	r.starter("c1", m).Kill()
	if err := runtime.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the OCI runtime ended with %v, want signal: killed", err)
	}
	if runs, _ := r.starter("c1", m).State(); runs {
		t.Error("another process is taken for the OCI runtime")
	}
	left := startRuntime(t, "/bundles/c1/"+earlier.String()+".pid")
	r.killStarts()
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the OCI runtime of an earlier daemon ended with %v, want signal: killed", err)
	}
	for i, other := range others {
		if err := other.Process.Signal(unix.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := other.Wait(); err == nil || err.Error() != "signal: terminated" {
			t.Errorf("process %d ended with %v, want signal: terminated", i, err)
		}
	}
}

// TestStartThatHangs: the OCI runtime of a command is killed if it runs when the timeout of the command expires, stopped or slow, and when
// the call is cancelled. The result of the timeout is known before. The error of the start is the cause.
func TestStartThatHangs(t *testing.T) {
	cancelled := errors.New("cancelled by the test")
	for name, test := range map[string]struct {
		stop, cancel bool
		want         error
	}{
		"stopped":   {true, false, context.DeadlineExceeded},
		"slow":      {false, false, context.DeadlineExceeded},
		"cancelled": {false, true, cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Config{Bundles: "/bundles", Cgroups: pods{}})
			m := r.marks.next(probe)
			runtime := startRuntime(t, "/bundles/c1/"+m.String()+".pid")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			expired := make(chan struct{})
			l := limit{time.Millisecond, func() { close(expired) }}
			if test.stop {
				if err := runtime.Process.Signal(unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			if test.cancel {
				l.timeout = time.Hour
				cancel(cancelled)
			}
			start := r.watchStart(ctx, "c1", m, l)
			failed := runtime.Wait() // as the shim does
			select {
			case <-expired:
			default:
				if !test.cancel {
					t.Error("the OCI runtime was killed before the result was known")
				}
			}
			if failed == nil || failed.Error() != "signal: killed" {
				t.Errorf("the OCI runtime exited with %v, want signal: killed", failed)
			}
			if err := start.end(failed); !errors.Is(err, test.want) || !errors.Is(err, failed) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

// TestStartGivenUp: an OCI runtime that hangs without being stopped is killed when the engine gives up to wait for it.
func TestStartGivenUp(t *testing.T) {
	r := New(Config{Bundles: "/bundles", Cgroups: pods{}})
	m := r.marks.next(hook)
	runtime := startRuntime(t, "/bundles/c1/"+m.String()+".pid")
	start := r.watchStart(t.Context(), "c1", m, limit{})
	if err := start.end(context.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := runtime.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the OCI runtime ended with %v, want signal: killed", err)
	}
}

// TestStartInTime: a start that succeeds has no error, whatever is cancelled later.
func TestStartInTime(t *testing.T) {
	r := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	start := r.watchStart(ctx, "c1", r.marks.next(hook), limit{})
	err := start.end(nil)
	cancel()
	if err != nil {
		t.Error(err)
	}
}

// TestLimit: a hook has no timeout. A probe has one, also if an earlier attempt has used it up.
func TestLimit(t *testing.T) {
	expire := func() {}
	if l := (request{}).limit(expire); l.expire != nil {
		t.Error("a hook has a timeout")
	}
	if l := (request{timeout: time.Second, left: -1}).limit(expire); l.expire == nil || l.timeout != -1 {
		t.Errorf("the timeout of a probe is %v", l.timeout)
	}
}

// TestStartWithoutRuntime: while the shim has not started the OCI runtime, a timeout is not the fault of the container.
func TestStartWithoutRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		expire := func() { t.Error("the timeout of the command has expired") }
		start := r.watchStart(t.Context(), "c1", r.marks.next(probe), limit{time.Second, expire})
		time.Sleep(4 * time.Second)
		if err := start.end(nil); err != nil {
			t.Error(err)
		}
	})
}

// TestAttemptsDoNotAccumulate: the attempt of a probe waits for the end of the one before, which has timed out, at most as long as its
// timeout, of which that is a part. Other commands do not wait.
func TestAttemptsDoNotAccumulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		command := func(args ...string) request {
			return request{command: args, timeout: 3 * time.Second, left: 3 * time.Second}
		}
		awaits := func(q request, want, left time.Duration, timesOut bool) {
			t.Helper()
			begun := time.Now()
			err := r.awaitEarlier(t.Context(), &q)
			if took := time.Since(begun); took != want || q.left != left || errors.Is(err, context.DeadlineExceeded) != timesOut {
				t.Errorf("%v after %v, %v left, want %v, %v left", err, took, q.left, want, left)
			}
		}
		awaits(command("check"), 0, 3*time.Second, false)
		first, second := r.expired(command("check")), r.expired(command("check")) // of two probes
		awaits(command("check", "other"), 0, 3*time.Second, false)
		awaits(command("check"), 3*time.Second, 3*time.Second, true)
		first()
		time.AfterFunc(time.Second, second)
		awaits(command("check"), time.Second, 2*time.Second, false)
		awaits(command("check"), 0, 3*time.Second, false)
	})
}
