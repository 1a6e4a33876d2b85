//go:build e2e

package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// isStopped returns an error until a process is stopped, or is not, as wanted.
func isStopped(pid int, want bool) error {
	s, err := proc.StatOf(pid)
	if err == nil && (s.State == 'T') != want {
		err = fmt.Errorf("process %d has state %c", pid, s.State)
	}
	return err
}

// stop stops a process.
func (w *world) stop(pid int) {
	w.Helper()
	w.must(unix.Kill(pid, unix.SIGSTOP))
	w.eventually("it is stopped", func() error { return isStopped(pid, true) })
}

// TestHungMonitor replaces a monitor that is stopped, also if its keeper is, and not one that has just been started.
func TestHungMonitor(t *testing.T) {
	w := newWorld(t)
	c := w.run(testContainer{}, "sleep 1000")
	for _, both := range []bool{false, true} {
		keeper, monitor := w.pids()
		w.stop(monitor)
		want := Freed{Monitors: 1}
		if both {
			w.stop(keeper)
			want.Keepers = 1
		}
		if f := Free(w.dir(), time.Hour); f.Monitors != 0 || f.Keepers != want.Keepers {
			t.Errorf("with a monitor that has just been started: %+v", f)
		}
		if both {
			w.stop(keeper)
		}
		if f := Free(w.dir(), 0); f != want {
			t.Errorf("freed %+v, want %+v", f, want)
		}
		w.connect()
		nextKeeper, nextMonitor := w.pids()
		if nextKeeper != keeper || nextMonitor == monitor {
			t.Errorf("keeper %d and monitor %d, before %d and %d", nextKeeper, nextMonitor, keeper, monitor)
		}
		if got, err := w.client.State(w.ctx, c.ID); err != nil || got.Phase != Running || got.PID != c.PID {
			t.Errorf("container: %+v, %v", got, err)
		}
	}
	w.killAndDelete(c.ID)
	w.wantNothing()
}

// TestHungKeeper continues a keeper that is stopped. If that does not help, the monitor becomes the keeper.
func TestHungKeeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.run(testContainer{}, "sleep 1000")
	keeper, monitor := w.pids()
	w.stop(keeper)
	w.eventually("it is continued", func() error { return isStopped(keeper, false) })
	w.freeze(keeper)
	w.eventually("the monitor becomes the keeper", func() error {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", monitor)); !strings.Contains(string(text), "\x00"+roleKeeper+"\x00") {
			return fmt.Errorf("the arguments of process %d are %q", monitor, text)
		}
		return nil
	})
	w.connect()
	if k, m := w.pids(); k != monitor || m == monitor {
		t.Errorf("keeper %d, monitor %d; want %d as keeper", k, m, monitor)
	}
	w.killAndDelete(c.ID)
	w.wantNothing()
}

// freeze stops a process such that SIGCONT does not continue it, and SIGKILL kills it: in a cgroup of v2, which hosts with v1 mount too.
func (w *world) freeze(pid int) {
	w.Helper()
	mount := "/sys/fs/cgroup/unified"
	if _, err := os.Stat(mount); err != nil {
		mount = "/sys/fs/cgroup"
	}
	dir := filepath.Join(mount, cgroupParent+"-frozen"+filepath.Base(w.state))
	w.must(os.Mkdir(dir, 0o755))
	w.Cleanup(func() { w.eventually("the cgroup is removed", func() error { return os.Remove(dir) }) })
	w.must(os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0))
	w.must(os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0))
	w.eventually("the keeper is frozen", func() error {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err == nil && !strings.Contains(string(text), "frozen 1") {
			err = fmt.Errorf("%s has %q", dir, text)
		}
		return err
	})
}

// TestExecWithoutClient kills a command whose client has disconnected before the command was started.
func TestExecWithoutClient(t *testing.T) {
	w := newWorld(t)
	r := w.bundle(testContainer{}, "sleep 1000")
	r.Runtime.Binary = w.slowExec()
	_, err := w.client.CreateAndStart(w.ctx, r)
	w.must(err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	w.must(err)
	defer null.Close()
	other := (&worker{w: w}).connected()
	failed := make(chan error, 1)
	go func() {
		x := Exec{Container: r.ID, ID: "x", Process: w.processJSON("sleep 987654", "")}
		_, err := other.Exec(w.ctx, x, &[3]*os.File{null, null, null})
		failed <- err
	}()
	stopped := w.stoppedRun(r.ID)
	_ = other.Close()
	if err := <-failed; !errors.Is(err, ErrClosed) {
		t.Errorf("exec: %v", err)
	}
	w.must(unix.Kill(stopped, unix.SIGCONT))
	fd, err := unix.PidfdOpen(stopped, 0)
	if err == nil {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, _ = retry(func() (int, error) { return unix.Poll(poll, int(patience/time.Millisecond)) })
		closeAll(fd)
	}
	w.eventually("the command is killed", func() error {
		pids, err := w.client.PIDs(w.ctx, r.ID)
		if err == nil && len(pids) != 1 {
			err = fmt.Errorf("processes %v", pids)
		}
		if _, statErr := os.Stat(filepath.Join(w.dir(), containersDir, r.ID, execsDir, "x")); err == nil && statErr == nil {
			err = errors.New("the command has a record")
		}
		return err
	})
	w.killAndDelete(r.ID)
	w.wantNothing()
}
