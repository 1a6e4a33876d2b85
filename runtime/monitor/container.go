package monitor

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/internal/crilog"
)

const (
	// turnBytes bounds what is read from one stream of a container before others have their turn.
	turnBytes = 256 << 10
	// completeTimeout bounds how long an exit is not reported because the log is incomplete.
	completeTimeout = 2 * time.Second
	// drainTimeout bounds how long a deletion waits for the rest of the log. Writes to a failing disk can hang.
	drainTimeout = 5 * time.Second
	// againTime is when something is tried again that has failed without a known end.
	againTime = time.Second
)

// Names of the descriptors of a container, after its ID and a slash. The streams are the FIFOs of these names.
const (
	stdinName    = "stdin"
	stdoutName   = "stdout"
	stderrName   = "stderr"
	terminalName = "tty"
)

// container is a container. The loop owns it, except the fields that say otherwise.
type container struct {
	m       *Monitor
	id, dir string
	rec     record
	exit    *Exit
	ending  *Exit // until it is recorded
	// settled is false while it is created or recovered. Nobody sees it then.
	settled  bool
	deleting bool
	process  watched
	commands map[string]*command
	ledger   *ledger
	memory   *memory // nil: no memory controller

	feed     *crilog.Feed // nil: no log. It is safe for concurrent use
	streams  [2]stream
	flushing bool // a goroutine writes the log
	draining bool // the container has exited: the log must become complete
	failing  bool // an error of the log was reported
	logged   chan struct{}
	isLogged bool
	gone     bool // it was removed
	reported bool // the exit
	terminal terminal
	stdin    *attach.Stdin     // safe for concurrent use
	attached *attach.Container // safe for concurrent use; nil: no log
	outputs  [2]io.WriteCloser // of attached; only for the goroutine that writes the log
}

// stream is an output stream. A terminal has one, to which its output is moved.
type stream struct {
	fd      int // of the FIFO; 0: none
	token   token
	stopped bool // it is not read
}

var streamNames = [2]crilog.Stream{crilog.Stdout, crilog.Stderr}

// newContainer returns a container that is not registered.
func (m *Monitor) newContainer(r record) *container {
	return &container{
		m: m, id: r.Create.ID, dir: filepath.Join(m.o.dir, containersDir, r.Create.ID), rec: r, logged: make(chan struct{}),
		commands: map[string]*command{},
	}
}

// save writes the record.
func (c *container) save() error {
	if err := writeRecord(filepath.Join(c.dir, recordFile), c.rec); err != nil {
		return fmt.Errorf("record container %s: %w", c.id, err)
	}
	return nil
}

// view returns what clients see.
func (c *container) view() Container {
	v := Container{
		ID: c.id, Sandbox: c.rec.Create.Sandbox, Bundle: c.rec.Create.Bundle, Phase: c.rec.Phase, PID: c.rec.PID,
		Terminal: c.rec.Create.Terminal, Exit: c.exit,
	}
	for _, x := range c.commands {
		if x.settled && x.rec.Mark == "" {
			v.Processes = append(v.Processes, x.view())
		}
	}
	return v
}

// fail reports an error of the work for this container, which runs on.
func (c *container) fail(what string, err error) {
	logf("container %s: %s: %v", c.id, what, err)
	c.m.report(Event{
		Kind: EventFailed, Container: c.id, Sandbox: c.rec.Create.Sandbox, Message: fmt.Sprintf("%s: %v", what, err),
	})
}

// listen begins to read the output.
func (c *container) listen() error {
	for i := range c.streams {
		s := &c.streams[i]
		if s.fd == 0 {
			continue
		}
		var err error
		if s.token, err = c.m.loop.watch(s.fd, func(uint32) { c.read(i) }); err != nil {
			return err
		}
	}
	c.flush() // creates the log, or completes the write of the monitor before
	if c.terminal.master != 0 {
		return c.listenTerminal()
	}
	return nil
}

// read moves output of a stream to the spool of the log. It returns how much.
func (c *container) read(i int) int {
	s := &c.streams[i]
	if s.stopped || s.fd == 0 || c.gone {
		return 0
	}
	n, err := c.feed.Splice(streamNames[i], s.fd, turnBytes)
	if err != nil {
		s.stopped = true
		c.m.loop.change(s.token, 0)
		if !errors.Is(err, crilog.ErrSpoolFull) {
			c.failOnce("read output", err)
			c.m.loop.after(againTime, func() { c.resume(i) })
		} else if !c.flushing && !c.feed.Pending() {
			c.m.loop.after(againTime, func() { c.resume(i) }) // a line longer than the spool, or what is in the way goes on its own
		}
	}
	c.flush()
	return n
}

// failOnce reports the first of equal errors in a row.
func (c *container) failOnce(what string, err error) {
	if !c.failing {
		c.failing = true
		c.fail(what, err)
	}
}

// resume reads a stream again.
func (c *container) resume(i int) {
	s := &c.streams[i]
	if !s.stopped || c.gone {
		return
	}
	s.stopped = false
	c.m.loop.change(s.token, unix.EPOLLIN)
	c.pollTerminal()
	if c.draining {
		c.drain()
	}
}

// flush writes what is spooled to the log, in a goroutine, because it may wait for the disk. Until the container is created, only the OCI
// runtime has written. If it fails, that is in its error instead, in which secrets are replaced.
func (c *container) flush() {
	c.m.touch()
	if c.rec.Phase == Creating || c.flushing || c.feed == nil || c.isLogged || c.gone || !c.feed.Pending() {
		return
	}
	c.flushing = true
	feed := c.feed
	go func() {
		err := feed.Flush()
		c.m.loop.post(func() { c.flushed(err) })
	}()
}

// flushed continues after a flush.
func (c *container) flushed(err error) {
	c.flushing = false
	if c.gone {
		return
	}
	if err != nil {
		c.failOnce("write log", err)
		c.m.loop.after(againTime, c.flush)
		return
	}
	c.failing = false
	for i := range c.streams {
		c.resume(i)
	}
	if c.draining {
		c.drain()
		return
	}
	c.flush()
}

// drain completes the log of a container that has exited, as far as possible in one turn.
func (c *container) drain() {
	if c.flushing || c.isLogged || c.gone {
		return
	}
	if c.feed == nil {
		c.complete()
		return
	}
	c.readTerminal()
	more, stopped := false, false
	for i := range c.streams {
		more = c.read(i) > 0 || more
		stopped = stopped || c.streams[i].stopped
	}
	switch {
	case c.flushing || stopped: // continues in flushed or resume
	case more:
		c.m.loop.post(c.drain)
	default:
		c.flushing = true
		feed := c.feed
		go func() {
			err := feed.Finish()
			c.m.loop.post(func() { c.finished(err) })
		}()
	}
}

// finished continues when the log was finished.
func (c *container) finished(err error) {
	c.flushing = false
	if err != nil && !c.gone {
		c.failOnce("write log", err)
		c.m.loop.after(againTime, c.drain)
		return
	}
	c.complete()
}

// complete is called when all output is in the log.
func (c *container) complete() {
	if c.isLogged {
		return
	}
	c.isLogged = true
	close(c.logged)
	c.unlisten()
	for _, o := range c.outputs {
		if o != nil {
			_ = o.Close() // never fails
		}
	}
	c.reportExit()
}

// unlisten stops reading the output.
func (c *container) unlisten() {
	for i := range c.streams {
		c.m.loop.unwatch(c.streams[i].token)
	}
	c.terminal.unwatch(c.m.loop)
}

// observe copies output to the clients that are attached. It runs in the goroutine that writes the log, and may wait for a slow client.
func (c *container) observe(s crilog.Stream, chunk []byte) {
	o := c.outputs[0]
	if s == crilog.Stderr {
		o = c.outputs[1]
	}
	if o != nil {
		_, _ = o.Write(chunk) // never fails
	}
}

// exited records the exit of the first process. It reports false if that is not possible now.
func (c *container) exited(code int, known bool) bool {
	if c.ending == nil {
		c.ending = &Exit{Code: uint32(code), Time: time.Now(), Unknown: !known}
	}
	e := c.ending
	if c.memory != nil {
		var err error
		if e.OOMKilled, e.MemoryPeak, err = c.ledger.end(c.memory, e.Code); err != nil {
			c.fail("determine whether it was OOM-killed", err)
		}
		c.memory = nil
		c.m.saveSandbox(c.rec.Create.Sandbox)
		c.m.ooms.remove(c)
	}
	if err := writeRecord(filepath.Join(c.dir, exitFile), e); err != nil {
		c.failOnce("record exit", err)
		return false
	}
	c.setExited(*e)
	return true
}

// setExited continues after the exit was recorded.
func (c *container) setExited(e Exit) {
	c.exit = &e
	c.rec.Phase = Exited
	if err := c.save(); err != nil {
		c.failOnce("record exit", err) // the exit is in its own file, so nothing is lost
	}
	if c.attached != nil {
		c.attached.Exited(e.Code)
	}
	c.m.loop.after(completeTimeout, c.reportExit)
	if !c.rec.Orphans {
		c.draining = true
		c.drain()
		return
	}
	go func() {
		c.killOrphans(c.m.base())
		c.m.loop.post(func() {
			c.draining = true
			c.drain()
		})
	}()
}

// reportChange emits the state of a container that was created or started.
func (c *container) reportChange() {
	v := c.view()
	c.m.emit(Event{Kind: EventChanged, Container: c.id, Sandbox: v.Sandbox, PID: v.PID, State: &v})
}

// reportExit emits the exit, once.
func (c *container) reportExit() {
	if c.reported || c.exit == nil {
		return
	}
	c.reported = true
	c.m.report(Event{Kind: EventExited, Container: c.id, Sandbox: c.rec.Create.Sandbox, PID: c.rec.PID, Exit: c.exit})
	c.m.stopIfIdle()
}

// forget releases all that the monitor has of a container. Its files stay.
func (c *container) forget() {
	c.gone = true
	c.process.unwatch(c.m.loop)
	for _, x := range c.commands {
		x.process.unwatch(c.m.loop)
	}
	c.unlisten()
	if c.memory != nil {
		c.m.ooms.remove(c)
		_, _, _ = c.ledger.end(c.memory, 0) // it is no longer accounted for
		c.memory = nil
	}
	c.m.attached.Remove(c.id)
	if c.feed != nil {
		feed := c.feed
		go func() { _ = feed.Close() }() // waits for a flush, which may wait for the disk
	}
	c.m.release(c.id + "/")
	if c.m.containers[c.id] == c {
		delete(c.m.containers, c.id)
	}
	c.m.dropSandbox(c.rec.Create.Sandbox)
	c.m.stopIfIdle()
	c.m.leave()
}
