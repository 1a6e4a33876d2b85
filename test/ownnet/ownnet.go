// Package ownnet runs a test binary in a network namespace of its own, so that bridges, rules, kernel settings and ports of tests do not
// affect the host. It is for tests and benchmarks only.
package ownnet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inside marks a process that runs in its own network namespace.
const inside = "PODSTEAD_TEST_OWN_NETWORK"

// Main runs the tests in a new network namespace with its loopback up, and returns their exit code. It executes this binary again as a
// child there, which is killed if this process exits. In that child, Main calls run.
func Main(run func() int) int {
	if os.Getenv(inside) != "" {
		if err := loopback(); err != nil {
			fmt.Fprintln(os.Stderr, "own network:", err)
			return 1
		}
		return run()
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...) // this binary
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // the parent death signal is sent when this thread exits
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if exit, ended := errors.AsType[*exec.ExitError](err); ended {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "own network:", err)
		return 1
	}
	return 0
}

func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}
