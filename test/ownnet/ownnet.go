// Package ownnet gives a test binary a network namespace of its own, so that what it does to the network (a bridge, rules,
// kernel settings, ports) is not done to the machine's. It is for tests and measurements alone.
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

// inside marks a process that was started in a namespace of its own.
const inside = "PODSTEAD_TEST_OWN_NETWORK"

// Main runs the tests in a new network namespace with its loopback up and returns their exit status: this binary is started
// again there, as a child that dies with this process. In that child, Main calls run.
func Main(run func() int) int {
	if os.Getenv(inside) != "" {
		if err := loopback(); err != nil {
			fmt.Fprintln(os.Stderr, "own network:", err)
			return 1
		}
		return run()
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...) // this very program, for as long as it takes
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // the signal comes when this thread ends
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
