package monitor

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startRole starts a process with the arguments of a keeper or a monitor.
func startRole(t *testing.T, dir, role string) *exec.Cmd {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, role), []byte("read line"), 0o600); err != nil { // it starts no process
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh")
	c.Dir, c.Args = dir, options{dir: dir, score: new(int)}.arguments(role)
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // killed
	})
	return c
}

// TestFreeIdleKeeper kills a keeper that has not tried to start a monitor for long, and no process of another state directory.
func TestFreeIdleKeeper(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, lockFile)
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := startRole(t, t.TempDir(), roleKeeper)
	keeper := startRole(t, dir, roleKeeper)
	found := findRoles(dir)
	if len(found) != 1 || found[0].role != roleKeeper || found[0].stopped || found[0].age > time.Minute {
		t.Fatalf("found %+v, want process %d", found, keeper.Process.Pid)
	}
	defer closeAll(found[0].pidfd)
	for _, test := range []struct {
		age, idle time.Duration
		want      bool
	}{{2 * idleKeeper, 0, false}, {0, 2 * idleKeeper, false}, {2 * idleKeeper, 2 * idleKeeper, true}} {
		p := found[0]
		p.age = test.age
		if got := p.hangs(time.Now().Add(-test.idle), time.Now()); got != test.want {
			t.Errorf("a keeper of age %v that is idle for %v hangs: %v", test.age, test.idle, got)
		}
	}
	if f := Free(dir, 0); f != (Freed{}) {
		t.Errorf("a keeper that has just been started: %+v", f)
	}
	monitor := startRole(t, dir, roleMonitor)
	if f := Free(dir, time.Hour); f != (Freed{}) {
		t.Errorf("a monitor that has just been started: %+v", f)
	}
	if f := Free(dir, 0); f != (Freed{Monitors: 1}) {
		t.Errorf("a monitor that hangs: %+v", f)
	}
	if err := monitor.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("monitor: %v", err)
	}
	for _, c := range []*exec.Cmd{other, keeper} {
		if err := c.Process.Signal(unix.Signal(0)); err != nil {
			t.Errorf("%q: %v", c.Args, err)
		}
	}
}
