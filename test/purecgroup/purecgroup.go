// Package purecgroup runs tests without the hybrid of cgroup v1 and v2, in which crun does not work. It does not mount v2 in a mount
// namespace of their own, so that the host is not affected. It does nothing on a host that has v1 or v2 alone. The program run does the
// same for a command.
package purecgroup

import (
	_ "embed" // the script
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// script runs its arguments in the mount namespace.
//
//go:embed run
var script string

// unified is where systemd mounts cgroup v2 beside v1.
const unified = "/sys/fs/cgroup/unified"

// variable is set in the mount namespace.
const variable = "PODSTEAD_TEST_PURE_CGROUP"

// Hybrid reports whether the host has cgroup v1 and v2 side by side.
func Hybrid() bool {
	var st unix.Statfs_t
	return unix.Statfs(unified, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// Run runs a test in the mount namespace, unless the host has no hybrid, where it calls f itself. In the mount namespace, in another
// process of the test's program, it calls f. The process has the variables env, as "name=value".
func Run(t *testing.T, env []string, f func(t *testing.T)) {
	t.Helper()
	if !Hybrid() || os.Getenv(variable) == t.Name() {
		f(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, "run", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), env...), variable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the parent death signal is sent when this thread exits
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("without cgroup v2: %v\n%s", err, out)
		return
	}
	t.Logf("without cgroup v2:\n%s", out)
}
