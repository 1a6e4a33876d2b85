package rig

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/proc"
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
	return slices.DeleteFunc(all, func(p Process) bool {
		s, statErr := proc.StatOf(p.PID)
		return statErr == nil && byPID[s.Parent] == p.Command
	}), err
}

func isHolder(p Process) bool {
	name, _, _ := strings.Cut(p.Command, " ")
	return slices.Contains([]string{shim.Name, monitor.Name}, filepath.Base(name)) // not its pause process
}

// IsMonitor reports whether a process of [Rig.Holders] is the monitor, and not its keeper or a shim.
func (p Process) IsMonitor() bool {
	return strings.Contains(p.Command, monitor.Name+" monitor ")
}
