package container

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// sleep starts a process, in a process namespace of its own if own is true, and kills it at the end of the test.
func sleep(t *testing.T, own bool) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if own {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// A debug container must not start in the namespace of a process that has got the ID of a process of its target.
func TestInNamespaceOf(t *testing.T) {
	target, created := sleep(t, false).Process.Pid, sleep(t, false).Process.Pid
	exited := sleep(t, false)
	_ = exited.Process.Kill()
	_ = exited.Wait() // it was killed
	cgroup := t.TempDir()
	list := strconv.Itoa(target) + "\n" + strconv.Itoa(exited.Process.Pid) + "\n"
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := inNamespaceOf(cgroup, target, created); err != nil {
		t.Errorf("the same namespace: %v", err)
	}
	for name, pid := range map[string]int{"process of another cgroup": created, "exited process": exited.Process.Pid} {
		if err := inNamespaceOf(cgroup, pid, created); !errors.Is(err, errTargetExited) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inNamespaceOf(cgroup, target, sleep(t, true).Process.Pid); !errors.Is(err, errTargetExited) {
		t.Errorf("another namespace: %v", err)
	}
}
