package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Kill sends SIGKILL to the shims of this ID, including those that are about to start, found by their arguments. A shim that is
// stopped, or whose socket was removed, cannot be found by its socket. It does not wait for their exit.
func Kill(daemonAddress, id string) error {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range entries {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !isShim(pid, daemonAddress, id) {
			continue
		}
		if err := kill(pid, daemonAddress, id); err != nil {
			errs = append(errs, fmt.Errorf("kill shim %s: process %d: %w", id, pid, err))
		}
	}
	return errors.Join(errs...)
}

// kill kills a process, if it still is a shim of this ID.
func kill(pid int, daemonAddress, id string) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
		if isShim(pid, daemonAddress, id) {
			err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// isShim reports whether a process serves as shim of this ID, or starts one. A process that cleans up after a shim does not.
func isShim(pid int, daemonAddress, id string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false // it has exited
	}
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	return isShimOf(args, daemonAddress, id)
}

func isShimOf(args []string, daemonAddress, id string) bool {
	has := func(flag, value string) bool {
		i := slices.Index(args, flag)
		return i > 0 && i+1 < len(args) && args[i+1] == value
	}
	return Invoked(args) && has("-id", id) && has("-address", daemonAddress) && args[len(args)-1] != "delete"
}
