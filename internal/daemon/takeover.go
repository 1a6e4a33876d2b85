package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/engine"
)

// stopHolder stops the daemon that holds the lock with SIGTERM, if it was started on demand. The results are those of [Options.stopOther].
func stopHolder(held *engine.ErrInUse) (stopping, service bool) {
	if held.Pid == 0 {
		return false, false
	}
	fd, err := unix.PidfdOpen(held.Pid, 0) // before the checks: the signal reaches the process that was checked
	if err != nil {
		return false, false
	}
	defer unix.Close(fd)
	if !hasOpen(held.Pid, held.Path) {
		return false, false
	}
	args := proc.Args(held.Pid)
	if args[0] == "" { // it has exited
		return false, false
	}
	if !slices.Contains(args, "daemon") || !slices.Contains(args, "--on-demand") {
		return false, true
	}
	return unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0) == nil, false
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(links, func(link string) bool {
		open, err := os.Stat(link)
		return err == nil && os.SameFile(file, open)
	})
}
