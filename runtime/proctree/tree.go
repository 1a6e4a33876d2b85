// Package proctree finds and kills the processes that a command has started in a container, directly or indirectly.
package proctree

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// pollInterval is how often killed processes are checked for their exit.
const pollInterval = 20 * time.Millisecond

// Tree is the processes of a container that one command has started. They are recognised by what a process inherits: the
// environment, the session and the parent. A process that has changed all three is not part of the tree.
type Tree struct {
	Cgroup  string                 // the directory of the container's cgroup, in a hierarchy that lists its processes
	Belongs func(mark string) bool // whether a process with this value of [MarkVariable] is part of the tree
	Leader  int                    // the first process, which is a session leader; 0: not known
}

// Kill sends SIGKILL to every process of the tree until none is left.
func (t Tree) Kill(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		processes, err := t.Processes()
		if err != nil {
			return err
		}
		if len(processes) == 0 {
			return nil
		}
		for _, p := range processes {
			p.kill()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("kill processes %v: %w", processes, ctx.Err())
		}
	}
}

// Processes returns the running processes of the tree.
func (t Tree) Processes() ([]Process, error) {
	rest, err := List(t.Cgroup)
	if err != nil {
		return nil, err
	}
	var found []Process
	in := map[int]bool{}
	if t.Leader != 0 {
		in[t.Leader] = true // also the parent of others when it has just exited
	}
	for grown := true; grown; {
		grown = false
		rest = slices.DeleteFunc(rest, func(p Process) bool {
			if !in[p.PID] && !in[p.parent] && (t.Leader == 0 || p.Session != t.Leader) && !t.Belongs(p.Mark) {
				return false
			}
			found = append(found, p)
			in[p.PID], grown = true, true
			return true
		})
	}
	return found, nil
}
