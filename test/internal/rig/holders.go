package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/runtime/monitor"
	"github.com/podstead/podstead/runtime/shim"
)

// Holders returns the processes that hold the containers of the rig and outlive its daemon: the monitor and its keeper, and the shims
// of pods that an earlier version has started. A child of one of them is none, although it has the same command line until it executes the
// OCI runtime.
func (r *Rig) Holders() ([]Process, error) {
	all, err := r.Processes()
	all = slices.DeleteFunc(all, func(p Process) bool { return !isHolder(p) })
	byPID := map[int]string{}
	for _, p := range all {
		byPID[p.PID] = p.Command
	}
	return slices.DeleteFunc(all, func(p Process) bool { return byPID[parentOf(p.PID)] == p.Command }), err
}

func isHolder(p Process) bool {
	name, _, _ := strings.Cut(p.Command, " ")
	return slices.Contains([]string{shim.Name, monitor.Name}, filepath.Base(name)) // not its pause process
}

// IsMonitor reports whether a process of [Rig.Holders] is the monitor, and not its keeper or a shim.
func (p Process) IsMonitor() bool {
	return strings.Contains(p.Command, monitor.Name+" monitor ")
}

// parentOf returns the PID of the parent of a process, or 0 if the process has exited.
func parentOf(pid int) (parent int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ") // after the name, which may contain anything
	if fields := strings.Fields(after); len(fields) > 1 {
		parent, _ = strconv.Atoi(fields[1]) // the kernel writes numbers
	}
	return parent
}
