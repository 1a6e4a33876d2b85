package engine

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/monitor"
)

// endLostMonitors kills the monitors and keepers of this engine other than those that the link is connected to, such as after the loss of
// the directory for runtime state. No daemon can reach them. Their containers are ended by their cgroups.
func (e *Engine) endLostMonitors(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	var hello monitor.Hello
	err := e.link.ask(ctx, true, func(m *monitor.Client) (err error) {
		hello, err = m.Hello(ctx)
		return err
	})
	if err != nil {
		return err
	}
	ours := []int{hello.Keeper, hello.PID}
	all, err := proc.List()
	for _, pid := range all {
		if slices.Contains(ours, pid) || !e.isMonitor(pid, ours) {
			continue
		}
		p, openErr := openProcess(pid)
		if openErr == nil && e.isMonitor(pid, ours) { // else it has exited, and another process has its PID
			p.kill()
		}
		p.close()
		err = errors.Join(err, openErr)
	}
	return err
}

// isMonitor reports whether a process is a monitor or a keeper with this engine's state directory, and no child of one of those that are in
// use: a child has the arguments of its parent until it executes the OCI runtime.
func (e *Engine) isMonitor(pid int, used []int) bool {
	args := proc.Args(pid)
	if filepath.Base(args[0]) != monitor.Name || argument(args, "-state") != e.link.Dir {
		return false
	}
	s, err := proc.StatOf(pid)
	return err == nil && !slices.Contains(used, s.Parent)
}
