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

// execTime is how long a process without an environment may be one that executes another program. Such a process has no mark, so it is
// not known yet whether it is part of a tree.
var execTime = 300 * time.Millisecond

// Tree is the processes of a container that one command has started. They are recognised by what a process inherits: the
// environment, the session and the parent. A process that has changed all three is not part of the tree.
type Tree struct {
	Cgroup  string                 // the directory of the container's cgroup, in a hierarchy that lists its processes
	Belongs func(mark string) bool // whether a process with this value of [MarkVariable] is part of the tree
	Leader  int                    // the first process; 0: not known
	Session int                    // the session of the first process if it leads none; 0: not known
}

// Kill sends SIGKILL to every process of the tree until none is left.
func (t Tree) Kill(ctx context.Context) error {
	return t.await(ctx, func(processes []Process) bool {
		for _, p := range processes {
			p.Kill()
		}
		return true
	})
}

// IsEmpty reports whether the tree has no process.
func (t Tree) IsEmpty(ctx context.Context) bool {
	empty := true
	err := t.await(ctx, func([]Process) bool {
		empty = false
		return false
	})
	return err == nil && empty
}

// await calls found with the processes of the tree until there are none or it returns false. A process that executes another program is
// awaited.
func (t Tree) await(ctx context.Context, found func([]Process) (again bool)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var since time.Time // since when only processes without an environment are in doubt
	for {
		processes, doubt, err := t.scan()
		if err != nil {
			return err
		}
		switch {
		case len(processes) > 0:
			if !found(processes) {
				return nil
			}
			since = time.Time{}
		case !doubt:
			return nil
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= execTime:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("kill processes %v: %w", processes, ctx.Err())
		}
	}
}

// scan returns the running processes of the tree, and whether others are in doubt because they have no environment.
func (t Tree) scan() (found []Process, doubt bool, err error) {
	rest, err := List(t.Cgroup)
	if err != nil {
		return nil, false, err
	}
	in := map[int]bool{}
	if t.Leader != 0 {
		in[t.Leader] = true // also the parent of others when it has just exited
	}
	for grown := true; grown; {
		grown = false
		rest = slices.DeleteFunc(rest, func(p Process) bool {
			if !in[p.PID] && !in[p.parent] && !t.inSession(p) && !t.Belongs(p.Mark) {
				return false
			}
			found = append(found, p)
			in[p.PID], grown = true, true
			return true
		})
	}
	return found, slices.ContainsFunc(rest, func(p Process) bool { return p.bare }), nil
}

// inSession reports whether a process is in the session of the first process.
func (t Tree) inSession(p Process) bool {
	return p.Session != 0 && (p.Session == t.Leader || p.Session == t.Session)
}
