package monitor

import (
	"context"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// delete deletes a container that has exited or was not started.
func (m *Monitor) delete(ctx context.Context, id string) (view Container, err error) {
	var c *container
	if !m.loop.do(func() {
		if c, err = m.find(id); err != nil {
			return
		}
		if c.rec.Phase == Running {
			err = errorf(ClassPrecondition, "container %s is running", id)
			return
		}
		c.deleting = true
	}) {
		err = errStopped
	}
	if err != nil {
		return view, err
	}
	defer m.flights.begin()()
	if err = c.delete(ctx); err != nil {
		m.loop.do(func() { c.deleting = false })
		return view, err
	}
	m.loop.do(func() {
		view = c.view()
		m.emit(Event{Kind: EventDeleted, Container: id, Sandbox: view.Sandbox})
	})
	return view, nil
}

func (c *container) delete(ctx context.Context) error {
	started := false
	if !c.m.loop.do(func() { started = c.rec.Phase == Exited }) {
		return errStopped
	}
	if !started {
		return c.removeWithBundle(ctx)
	}
	if c.rec.Orphans {
		c.killOrphans(ctx)
	}
	late := time.NewTimer(drainTimeout)
	defer late.Stop()
	select {
	case <-c.logged:
	case <-c.m.loop.end:
		return errStopped
	case <-late.C:
		logf("container %s: deleted before its log was complete", c.id)
	}
	r := &c.rec.Create
	if !r.Runtime.isLost(c.id) {
		_, err := c.m.run(ctx, invocation{runtime: r.Runtime, dir: c.dir, action: "delete", args: []string{c.id}, score: *c.m.o.score})
		if err != nil && !r.Runtime.isLost(c.id) {
			return err
		}
	}
	if err := removeBundle(r.Bundle); err != nil {
		return err
	}
	return c.clear()
}

// killOrphans kills the processes that the first process of a container has left, if the kernel does not: in the PID namespace of the host
// or the pod.
func (c *container) killOrphans(ctx context.Context) {
	r := &c.rec.Create
	if r.Runtime.isLost(c.id) {
		return
	}
	kill := []string{"--all", c.id, strconv.Itoa(int(unix.SIGKILL))}
	_, err := c.m.run(ctx, invocation{runtime: r.Runtime, dir: c.dir, action: "kill", args: kill, score: *c.m.o.score})
	if err != nil && len(c.processes()) > 0 {
		logf("container %s: kill remaining processes: %v", c.id, err)
	}
}
