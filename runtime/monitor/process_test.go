package monitor

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// TestExits looks at children that have exited in all ways that a monitor has.
func TestExits(t *testing.T) {
	for script, want := range map[string]int{"exit 7": 7, "exit 0": 0, "kill -9 $$": 137, "kill -TERM $$": 143} {
		c := exec.Command("sh", "-c", script)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		pid := c.Process.Pid
		before, err := proc.StatOf(pid)
		if err != nil {
			t.Fatal(err)
		}
		if before.Parent != os.Getpid() || !slices.Contains(childrenOf(os.Getpid()), pid) {
			t.Errorf("parent of %d: %+v", pid, before)
		}
		fd, err := openProcess(pid, before.Start)
		if err != nil {
			t.Fatal(err)
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := retry(func() (int, error) { return unix.Poll(poll, -1) }); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it stays a zombie
			info, err := wait(unix.P_PIDFD, fd, unix.WNOWAIT)
			if err != nil || int(info.pid) != pid || info.exitCode() != want {
				t.Errorf("%s: wait: %+v, %v, want %d", script, info, err, want)
			}
		}
		if status := zombieStatus(pid, before.Start); codeOf(status) != want {
			t.Errorf("%s: status of the zombie %d, want code %d", script, status, want)
		}
		if status := zombieStatus(pid, before.Start+1); status != noStatus {
			t.Errorf("%s: status %d of another process", script, status)
		}
		if _, err := openProcess(pid, before.Start+1); !errors.Is(err, unix.ESRCH) {
			t.Errorf("open another process: %v", err)
		}
		if info, err := wait(unix.P_PIDFD, fd, 0); err != nil || int(info.pid) != pid {
			t.Errorf("%s: reap: %+v, %v", script, info, err)
		}
		if _, err := wait(unix.P_PIDFD, fd, 0); !errors.Is(err, unix.ECHILD) {
			t.Errorf("%s: wait after it was reaped: %v", script, err)
		}
		if status := infoStatus(fd); status != noStatus && codeOf(status) != want { // before Linux 6.15 it is not known
			t.Errorf("%s: status %d after it was reaped, want code %d", script, status, want)
		}
		_ = c.Process.Release()
		closeAll(fd)
	}
	if _, err := openProcess(0, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("open process 0: %v", err)
	}
}
