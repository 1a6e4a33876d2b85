package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/proc"
)

// recoverAll takes over the containers of the monitor before. What was in progress for a container is settled later, in its lane. Clients
// see all containers but those that were being created or started, whose state is not known before.
func (m *Monitor) recoverAll() error {
	removeConsoles(m.o.dir)
	if err := m.recoverSandboxes(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(m.o.dir, containersDir))
	if err != nil {
		return err
	}
	runs := interruptedRuns(m.o.dir)
	for _, e := range entries {
		dir := filepath.Join(m.o.dir, containersDir, e.Name())
		var r record
		err := readRecord(filepath.Join(dir, recordFile), &r)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.RemoveAll(dir) // removed in part, or not created
		} else if err == nil {
			if err = readable(r.Format); err == nil && r.Create.ID != e.Name() {
				err = fmt.Errorf("record of container %q in %s", r.Create.ID, dir)
			}
			if err == nil {
				m.recoverContainer(r, runs)
			}
		}
		if err != nil { // of one container
			logf("recover %s: %v", dir, err)
			m.report(Event{Kind: EventFailed, Container: e.Name(), Message: fmt.Sprintf("recover: %v", err)})
		}
	}
	m.releaseUnused()
	return nil
}

// releaseUnused closes descriptors of containers that do not exist.
func (m *Monitor) releaseUnused() {
	for name := range m.held {
		id, _, of := strings.Cut(name, "/")
		if of && m.containers[id] == nil {
			m.release(id + "/")
		}
	}
}

func (m *Monitor) recoverSandboxes() error {
	files, err := filepath.Glob(filepath.Join(m.o.dir, sandboxesDir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range files {
		var r sandboxRecord
		err := readRecord(path, &r)
		if err == nil {
			err = readable(r.Format)
		}
		if err == nil && m.sandboxPath(r.Name) != path {
			err = fmt.Errorf("record of sandbox %q", r.Name)
		}
		if err != nil { // of one sandbox
			logf("recover %s: %v", path, err)
			name := strings.TrimSuffix(filepath.Base(path), ".json")
			m.report(Event{Kind: EventFailed, Sandbox: name, Message: fmt.Sprintf("recover: %v", err)})
			continue
		}
		s := m.sandboxOf(r.Name)
		s.record, s.written = r, true
		s.ledger.restore(r.Accounted)
	}
	return nil
}

// recoverContainer takes over a container.
func (m *Monitor) recoverContainer(r record, runs map[string][]interrupted) {
	c := m.newContainer(r)
	m.containers[c.id] = c
	var mine []interrupted
	for dir, list := range runs {
		if dir == c.dir || strings.HasPrefix(dir, c.dir+"/") {
			mine = append(mine, list...)
		}
	}
	if !c.wasInterrupted() {
		later, err := c.resumeNow()
		if err != nil {
			c.failOnce("recover", err)
		} else if !later && len(mine) == 0 {
			return
		}
	}
	c.recoverLater(mine, m.flights.beginAt(0))
}

// recoverLater takes over a container in its lane, and repeats that until it succeeds. The process of a run that was interrupted is not
// reaped before end is called.
func (c *container) recoverLater(runs []interrupted, end func()) {
	m := c.m
	m.enter(c.id, work{exclusive: true, run: func(done func()) {
		go func() {
			ctx, cancel := m.background(2 * RuntimeTimeout)
			defer cancel()
			err := c.settle(ctx, runs)
			m.loop.post(func() {
				done()
				if err == nil || c.gone {
					end()
					m.sweep()
					return
				}
				c.failOnce("recover", err)
				m.loop.after(10*againTime, func() { c.recoverLater(nil, end) })
			})
		}()
	}})
}

// wasInterrupted reports whether a run of the OCI runtime for the container may have been interrupted.
func (c *container) wasInterrupted() bool {
	return c.rec.Phase == Creating || c.rec.Phase == Created && c.rec.Starting
}

// resumeNow takes over a container that was not being created or started, and its commands, in the loop. It reports whether commands are
// left to settle.
func (c *container) resumeNow() (later bool, err error) {
	exit, err := readExit(c.dir)
	if err != nil {
		return false, err
	}
	f := found{recorded: exit != nil, exists: isProcess(c.rec.PID, c.rec.Start)}
	if err := c.resumeAs(c.rec.settle(f), exit); err != nil {
		return false, err
	}
	commands, err := c.commandDirs()
	for _, id := range commands {
		left, resumeErr := c.resumeCommand(id)
		later, err = later || left != nil, errors.Join(err, resumeErr)
	}
	return later, err
}

// settle waits for what was in progress for a container when its monitor died, and takes over what there is. It runs in the container's
// lane.
func (c *container) settle(ctx context.Context, runs []interrupted) error {
	if err := c.m.awaitInterrupted(ctx, runs); err != nil {
		return err
	}
	known := false
	err := c.inLoop(func() error {
		known = c.settled
		return nil
	})
	if err == nil && !known {
		err = c.settleState(ctx)
	}
	if err != nil {
		return err
	}
	return c.settleCommands(ctx) // none if it was lost
}

// settleState takes over a container that clients do not see, without its commands, or removes it.
func (c *container) settleState(ctx context.Context) error {
	exit, err := readExit(c.dir)
	if err != nil {
		return err
	}
	f := found{recorded: exit != nil}
	if c.rec.Phase == Creating {
		pid, err := readPIDFile(filepath.Join(c.dir, pidFile))
		s, statErr := proc.StatOf(pid)
		f.exists = err == nil && statErr == nil && s.State != 'Z'
	} else {
		f.exists = isProcess(c.rec.PID, c.rec.Start)
	}
	if c.wasInterrupted() && f.exists && !f.recorded {
		if f.status, err = c.m.status(ctx, c); err != nil {
			logf("container %s: %v", c.id, err) // it is removed, or taken for created
		}
	}
	v := c.rec.settle(f)
	if v.remove || c.rec.Phase == Creating && c.rec.Create.Terminal {
		return c.lose(ctx)
	}
	if c.rec.Phase == Creating {
		if err := c.inLoop(c.openAgain); err != nil {
			return err
		}
		c.stdin.Created()
		if err := c.adopt(Created); err != nil {
			logf("container %s: %v", c.id, err)
			return c.lose(ctx)
		}
		return nil
	}
	return c.inLoop(func() error { return c.resumeAs(v, exit) }) //nolint:contextcheck // as in run
}

// inLoop calls a function in the loop.
func (c *container) inLoop(f func() error) (err error) {
	if !c.m.loop.do(func() { err = f() }) {
		return errStopped
	}
	return err
}

// lose removes a container that was not created completely.
func (c *container) lose(ctx context.Context) error {
	lost := func() { c.m.report(Event{Kind: EventLost, Container: c.id, Sandbox: c.rec.Create.Sandbox}) }
	if err := c.remove(ctx); err != nil {
		c.later(ctx, lost)
		return err
	}
	c.m.loop.post(lost)
	return nil
}

// resumeAs takes over a container that was created. It is called in the loop, and can be repeated after an error.
func (c *container) resumeAs(v verdict, exit *Exit) error {
	if c.settled {
		return nil
	}
	if err := c.openAgain(); err != nil {
		return err
	}
	c.rec.Phase = v.phase
	if exit != nil {
		c.settled = true
		c.reportChange()
		c.setExited(*exit)
		return nil
	}
	if c.memory == nil {
		c.watchMemory()
	}
	pidfd, err := -1, error(unix.ESRCH)
	if !v.ended {
		pidfd, err = openProcess(c.rec.PID, c.rec.Start)
	}
	switch {
	case isGone(err) && !c.exited(unknownCode, false):
		return errors.New("the exit cannot be recorded")
	case isGone(err):
		c.settled = true
		return nil
	case err != nil:
		return err
	}
	c.settled = true
	c.reportChange()
	return errors.Join(c.save(), c.process.watch(c.m, c.rec.PID, c.rec.Start, pidfd, c.exited))
}

// openAgain opens the log and the streams of a container that was created. It is called in the loop, and can be repeated after an error.
func (c *container) openAgain() error {
	if c.feed == nil {
		if err := c.openLog(); err != nil {
			return err
		}
	}
	if fd, has := c.m.held[c.id+"/"+terminalName]; has {
		c.terminal.master = fd
	}
	if c.attached != nil {
		return nil
	}
	return c.openStreams()
}

// isOurs reports whether the process that the OCI runtime has written is one of the container, or a child that has exited.
func (x *command) isOurs() bool {
	pid, err := readPIDFile(filepath.Join(x.dir, pidFile))
	if err != nil {
		return false
	}
	s, err := proc.StatOf(pid)
	return err == nil && (s.Parent == os.Getpid() || s.Parent == keeperPID() || x.inContainer(pid))
}

// commandDirs returns the names of the directories of commands.
func (c *container) commandDirs() (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(c.dir, execsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// settleCommands takes over the commands of a container. Those of requests without a client are killed.
func (c *container) settleCommands(ctx context.Context) error {
	commands, err := c.commandDirs()
	errs := []error{err}
	for _, id := range commands {
		var x *command
		err := c.inLoop(func() (err error) {
			x, err = c.resumeCommand(id)
			return err
		})
		if err == nil && x != nil {
			x.settle(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// resumeCommand takes over a command that was started, in the loop. It returns one that was not, or that no monitor continues. It can be
// repeated.
func (c *container) resumeCommand(id string) (unsettled *command, err error) {
	if x := c.commands[id]; x != nil && x.settled {
		return nil, nil
	}
	dir := filepath.Join(c.dir, execsDir, id)
	var r commandRecord
	if err := readRecord(filepath.Join(dir, commandFile), &r); err != nil {
		return nil, os.RemoveAll(dir) // nothing was started
	}
	exit, exitErr := readExit(dir)
	if err := errors.Join(readable(r.Format), exitErr); err != nil {
		return nil, fmt.Errorf("command %s: %w", id, err)
	}
	x := c.newCommand(r)
	c.commands[id] = x
	if r.Mark != "" || exit == nil && r.PID == 0 {
		return x, nil
	}
	if exit != nil {
		x.settled = true
		x.setExited(*exit)
		return nil, nil
	}
	pidfd, err := openProcess(r.PID, r.Start)
	if err != nil && !isGone(err) {
		return nil, fmt.Errorf("command %s: %w", id, err)
	}
	x.settled = true
	if err != nil {
		x.exited(unknownCode, false)
		return nil, nil
	}
	return nil, x.process.watch(c.m, r.PID, r.Start, pidfd, x.exited)
}

// settle takes over a command that was being started, if it was, and kills one that no monitor continues. It runs in the container's lane.
func (x *command) settle(ctx context.Context) {
	if x.rec.Mark == "" && x.isOurs() && x.adopt() == nil {
		return
	}
	x.discard(ctx)
	if x.rec.Mark == "" {
		c := x.c
		c.m.loop.post(func() {
			c.m.report(Event{Kind: EventLost, Container: c.id, Sandbox: c.rec.Create.Sandbox, Exec: x.rec.ID})
		})
	}
}
