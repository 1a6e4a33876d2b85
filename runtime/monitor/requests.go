package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/proctree"
)

// serve starts the work for a request. It does not block. It owns the descriptors.
func (m *Monitor) serve(c *connection, q request, fds []int) {
	m.touch()
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "stream")
	}
	c.requests++
	reject := func(err error) {
		closeAllFiles(files)
		c.answer(q.ID, nil, err)
	}
	if c.requests > maxRequests {
		reject(errorf(ClassUnavailable, "%d requests are in progress", maxRequests))
		return
	}
	if q.Op != opExec && len(files) > 0 {
		reject(errorf(ClassInvalid, "operation %s takes no descriptors", q.Op))
		return
	}
	if err := m.dispatch(c, q, files); err != nil {
		reject(err)
	}
}

func closeAllFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written to it
	}
}

// dispatch starts the work for a request, which answers it. If it returns an error, nothing was started.
func (m *Monitor) dispatch(c *connection, q request, files []*os.File) error {
	switch q.Op {
	case opHello:
		c.answer(q.ID, Hello{
			Version: m.o.version, Format: Format, PID: os.Getpid(), Keeper: keeperPID(), Started: m.started, Monitors: m.count,
			Sequence: m.sequence,
		}, nil)
	case opList:
		m.sendList(c, q.ID)
	case opSubscribe:
		m.sendList(c, q.ID)
		c.subscribed = true
		events := m.unreported
		m.unreported = nil
		for _, e := range events {
			m.emit(e)
		}
	case opCreate, opCreateAndStart:
		return serveBody(q, func(r Create) error { return m.serveCreate(c, q, r) })
	case opStart:
		return serveBody(q, func(t target) error {
			m.exclusive(c, q, t.Container, func(ctx context.Context) (any, error) {
				return m.viewOf(m.start(ctx, t.Container))
			})
			return nil
		})
	case opDelete:
		return serveBody(q, func(t target) error { return m.serveDelete(c, q, t) })
	case opExec:
		return serveBody(q, func(e Exec) error {
			m.shared(e.Container, func() {
				go func() {
					ctx, cancel := m.background(RuntimeTimeout)
					defer cancel()
					x, p, err := m.exec(ctx, e, files)
					closeAllFiles(files)
					m.loop.post(func() {
						if err == nil && c.closed { // its client does not know that it was started
							go x.discard(context.WithoutCancel(ctx))
						}
						c.answer(q.ID, p, err)
					})
				}()
			})
			return nil
		})
	case opRun:
		return serveBody(q, func(r Run) error {
			m.serveRun(c, q, r)
			return nil
		})
	case opCancel:
		return serveBody(q, func(r cancelled) error {
			if cancel := c.runs[r.Request]; cancel != nil {
				cancel()
			}
			c.answer(q.ID, struct{}{}, nil)
			return nil
		})
	case opSignal:
		return serveBody(q, func(s Signal) error { return m.serveSignal(c, q, s) })
	case opResize:
		return serveBody(q, func(r resize) error {
			return m.serveContainer(c, q, r.Container, "", func(o *container) (any, error) { return struct{}{}, o.resizeTerminal(r.Size) })
		})
	case opCloseInput:
		return serveBody(q, func(t target) error {
			m.shared(t.Container, func() { m.serveCloseInput(c, q, t) })
			return nil
		})
	case opPids:
		return serveBody(q, func(t target) error {
			return m.serveContainer(c, q, t.Container, "", func(o *container) (any, error) { return pids{o.processes()}, nil })
		})
	case opState:
		return serveBody(q, func(t target) error {
			return m.serveContainer(c, q, t.Container, "", func(o *container) (any, error) { return o.view(), nil })
		})
	case opLog:
		return serveBody(q, func(l logChange) error { return m.serveLog(c, q, l) })
	case opReplace:
		return serveBody(q, func(r replacement) error { return m.serveReplace(c, q, r) })
	case opShutdown:
		m.shutdownWhenIdle(c, q, time.Now().Add(shutdownTimeout))
	case opCreateSandbox:
		return serveBody(q, func(s sandbox) error { return m.serveCreateSandbox(c, q, s) })
	case opDeleteSandbox:
		return serveBody(q, func(s sandbox) error { return m.serveDeleteSandbox(c, q, s) })
	default:
		return errorf(ClassInvalid, "unknown operation %.50q", q.Op)
	}
	return nil
}

// serveBody decodes the body of a request.
func serveBody[T any](q request, serve func(T) error) error {
	var body T
	if err := json.Unmarshal(q.Body, &body); err != nil {
		return errorf(ClassInvalid, "operation %s: %v", q.Op, err)
	}
	return serve(body)
}

// exclusive does the work for a request in a goroutine, after all that was requested for the container before.
func (m *Monitor) exclusive(c *connection, q request, id string, do func(ctx context.Context) (any, error)) {
	m.enter(id, work{exclusive: true, run: func(done func()) {
		go func() {
			ctx, cancel := m.background(2 * RuntimeTimeout)
			defer cancel()
			body, err := do(ctx)
			m.loop.post(func() {
				c.answer(q.ID, body, err)
				done()
				m.stopIfIdle()
			})
		}()
	}})
}

// shared does work in the loop, after what changes the container and was requested before.
func (m *Monitor) shared(id string, do func()) {
	m.enter(id, work{run: func(func()) { do() }})
}

// background returns the context of work that is not cancelled with its request: an OCI runtime that is killed midway leaves processes and
// cgroups.
func (m *Monitor) background(timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(m.base(), timeout)
}

// find returns a container that clients see. One that could not be taken over yet is not reported as missing: the daemon would take it for
// lost.
func (m *Monitor) find(id string) (*container, error) {
	c := m.containers[id]
	switch {
	case c == nil:
		return nil, errorf(ClassNotFound, "container %.200s not found", id)
	case !c.settled:
		return nil, errorf(ClassUnavailable, "container %.200s is not taken over yet", id)
	}
	return c, nil
}

// viewOf returns what clients see of the result of an operation.
func (m *Monitor) viewOf(c *container, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var v Container
	if !m.loop.do(func() { v = c.view() }) {
		return nil, errStopped
	}
	return v, nil
}

// serveContainer answers with what get returns in the loop: at once if the container and the command, unless that is empty, are known.
// Otherwise they may be in progress, or those of a monitor before, which are taken over in the lane.
func (m *Monitor) serveContainer(c *connection, q request, id, exec string, get func(*container) (any, error)) error {
	answer := func() {
		o, err := m.find(id)
		var body any
		if err == nil {
			body, err = get(o)
		}
		c.answer(q.ID, body, err)
	}
	if o, err := m.find(id); err == nil && (exec == "" || o.hasCommand(exec)) {
		answer()
	} else {
		m.shared(id, answer)
	}
	return nil
}

func (m *Monitor) serveCreate(c *connection, q request, r Create) error {
	if err := r.check(); err != nil {
		return err
	}
	m.exclusive(c, q, r.ID, func(ctx context.Context) (any, error) {
		o, err := m.create(ctx, r)
		if err != nil || q.Op == opCreate {
			return m.viewOf(o, err)
		}
		return m.viewOf(m.startCreated(ctx, o))
	})
	return nil
}

// startCreated starts a container, and removes it if that is not possible.
func (m *Monitor) startCreated(ctx context.Context, c *container) (*container, error) {
	if _, err := m.start(ctx, c.id); err != nil {
		if undone := c.remove(context.WithoutCancel(ctx)); undone != nil {
			err = fmt.Errorf("%w (remove container: %w)", err, undone)
		}
		return nil, err
	}
	return c, nil
}

func (m *Monitor) serveDelete(c *connection, q request, t target) error {
	if t.Exec == "" {
		m.exclusive(c, q, t.Container, func(ctx context.Context) (any, error) { return m.delete(ctx, t.Container) })
		return nil
	}
	return m.serveContainer(c, q, t.Container, t.Exec, func(o *container) (any, error) {
		x := o.commands[t.Exec]
		switch {
		case x == nil || !x.settled || x.rec.Mark != "":
			return nil, errorf(ClassNotFound, "command %.200s not found in container %s", t.Exec, o.id)
		case x.exit == nil:
			return nil, errorf(ClassPrecondition, "command %s in container %s is running", t.Exec, o.id)
		}
		x.forget()
		return x.view(), os.RemoveAll(x.dir)
	})
}

// serveRun runs a command until it has exited, and answers then. Processes that it has left are killed later.
func (m *Monitor) serveRun(c *connection, q request, r Run) {
	ctx, cancel := context.WithCancel(m.base())
	if r.Timeout > 0 {
		cancel()
		ctx, cancel = context.WithTimeout(m.base(), r.Timeout)
	}
	if earlier := c.runs[q.ID]; earlier != nil {
		earlier() // the client has forgotten it
	}
	c.runs[q.ID] = cancel
	m.runs++
	id := strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(m.count) + "-" + strconv.Itoa(m.runs)
	m.shared(r.Container, func() {
		go func() {
			defer cancel()
			result, left, err := m.runCommand(ctx, id, r)
			m.loop.post(func() { c.answer(q.ID, result, err) })
			if left != nil {
				left()
			}
			m.loop.post(func() { delete(c.runs, q.ID) })
		}()
	})
}

func (m *Monitor) serveSignal(c *connection, q request, s Signal) error {
	if s.Signal <= 0 || s.Signal > 64 {
		return errorf(ClassInvalid, "signal %d", s.Signal)
	}
	if s.All {
		m.shared(s.Container, func() {
			go func() {
				err := m.signalAll(s)
				m.loop.post(func() { c.answer(q.ID, struct{}{}, err) })
			}()
		})
		return nil
	}
	return m.serveContainer(c, q, s.Container, s.Exec, func(o *container) (any, error) { return struct{}{}, o.signal(s) })
}

// hasCommand reports whether clients see a command.
func (c *container) hasCommand(id string) bool {
	return c.commands[id] != nil && c.commands[id].settled
}

// signal sends a signal to the first process of a container, or to a command.
func (c *container) signal(s Signal) error {
	process := &c.process
	if s.Exec != "" {
		if !c.hasCommand(s.Exec) {
			return errorf(ClassNotFound, "command %.200s not found in container %s", s.Exec, c.id)
		}
		process = &c.commands[s.Exec].process
	} else if unix.Signal(s.Signal) == unix.SIGKILL && c.memory != nil {
		c.memory.requested.Store(true)
	}
	err := process.signal(unix.Signal(s.Signal))
	if isGone(err) {
		err = errorf(ClassNotFound, "the process has exited")
	}
	return err
}

// signalAll sends a signal to all processes of a container.
func (m *Monitor) signalAll(s Signal) error {
	var c *container
	var err error
	sent := false
	if !m.loop.do(func() {
		if c, err = m.find(s.Container); err == nil && unix.Signal(s.Signal) == unix.SIGKILL {
			if c.memory != nil {
				c.memory.requested.Store(true)
			}
			if sent = !c.hasCgroup() && !c.rec.Orphans && c.rec.PID != 0; sent { // the kernel kills all of its PID namespace
				err = c.process.signal(unix.SIGKILL)
			}
		}
	}) {
		err = errStopped
	}
	if sent && isGone(err) {
		return errorf(ClassNotFound, "container %s has no process", c.id)
	}
	if err != nil || sent {
		return err
	}
	if c.rec.Create.Runtime.isLost(c.id) {
		return errorf(ClassNotFound, "the OCI runtime has no container %s", c.id)
	}
	ctx, cancel := m.background(RuntimeTimeout)
	defer cancel()
	args := []string{"--all", c.id, strconv.Itoa(s.Signal)}
	_, err = m.run(ctx, invocation{runtime: c.rec.Create.Runtime, dir: c.dir, action: "kill", args: args, score: *m.o.score})
	if err != nil && len(c.processes()) == 0 {
		return errorf(ClassNotFound, "container %s has no process", c.id)
	}
	return err
}

// hasCgroup reports whether a container has a cgroup of its own. Otherwise it has a PID namespace of its own.
func (c *container) hasCgroup() bool { return filepath.IsAbs(c.rec.Cgroup) }

// processes returns the processes of a container. If there are none it returns the first process, as a zombie would be listed.
func (c *container) processes() []int {
	var all []int
	if !c.hasCgroup() {
		list, _ := proctree.List(c.rec.Cgroup) // without /proc it has the first process
		for _, p := range list {
			all = append(all, p.PID)
		}
	}
	_ = filepath.WalkDir(c.rec.Cgroup, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil // a cgroup that was removed has no processes
		}
		text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
		return nil
	})
	if len(all) == 0 && c.rec.PID != 0 {
		all = []int{c.rec.PID}
	}
	return all
}

func (m *Monitor) serveCloseInput(c *connection, q request, t target) {
	o, err := m.find(t.Container)
	if err != nil || o.stdin == nil {
		c.answer(q.ID, struct{}{}, err)
		return
	}
	stdin := o.stdin
	go func() {
		stdin.Close()
		err := o.closeInput()
		m.loop.post(func() { c.answer(q.ID, struct{}{}, err) })
	}()
}

func (m *Monitor) serveLog(c *connection, q request, l logChange) error {
	o, ours, err := ocibundle.ParseOutput(l.Output)
	if err != nil || !ours {
		return errorf(ClassInvalid, "output %.200q is not supported: %v", l.Output, err)
	}
	m.shared(l.Container, func() {
		t, err := m.find(l.Container)
		if err == nil && t.feed == nil {
			err = errorf(ClassPrecondition, "container %s has no log", t.id)
		}
		if err == nil {
			t.rec.Create.Output = l.Output
			err = t.save()
		}
		if err != nil {
			c.answer(q.ID, nil, err)
			return
		}
		go func() {
			err := t.feed.SetLimits(o.Options) // waits for a flush, which may wait for the disk
			m.loop.post(func() {
				t.flush()
				c.answer(q.ID, struct{}{}, err)
			})
		}()
	})
	return nil
}

// listBytes bounds the containers in one packet.
const listBytes = maxPacket / 2

// sendList answers with all containers, in several packets.
func (m *Monitor) sendList(c *connection, id uint64) {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(m.sandboxes)) {
		if m.sandboxes[n].written {
			names = append(names, n)
		}
	}
	part, size := list{Sequence: m.sequence}, 0
	send := func(more bool) {
		body, err := json.Marshal(part)
		if err != nil {
			c.send(response{ID: id, Error: asError(err)})
			return
		}
		c.send(response{ID: id, More: more, Body: body})
		part, size = list{Sequence: m.sequence}, 0
	}
	for _, n := range names {
		if size += len(n) + 3; size > listBytes {
			send(true)
		}
		part.Sandboxes = append(part.Sandboxes, n)
	}
	for _, containerID := range slices.Sorted(maps.Keys(m.containers)) {
		o := m.containers[containerID]
		if !o.settled {
			continue
		}
		v := o.view()
		const each = 512 // of fields with a bounded size
		if size += each + len(v.Bundle) + each*len(v.Processes); size > listBytes && len(part.Containers) > 0 {
			send(true)
		}
		part.Containers = append(part.Containers, v)
	}
	send(false)
	c.requests--
}

// sandboxOf returns a sandbox, which has a record if one was created.
func (m *Monitor) sandboxOf(name string) *sandboxState {
	s := m.sandboxes[name]
	if s == nil {
		s = &sandboxState{record: sandboxRecord{Format: Format, Name: name}}
		m.sandboxes[name] = s
	}
	return s
}

// dropSandbox forgets a sandbox that was not created, when it has no container.
func (m *Monitor) dropSandbox(name string) {
	s := m.sandboxes[name]
	if s == nil || s.written {
		return
	}
	for _, c := range m.containers {
		if c.rec.Create.Sandbox == name {
			return
		}
	}
	delete(m.sandboxes, name)
}

func (m *Monitor) sandboxPath(name string) string {
	return filepath.Join(m.o.dir, sandboxesDir, name+".json")
}

// saveSandbox writes the record of a sandbox, if it has one and it has changed.
func (m *Monitor) saveSandbox(name string) {
	s := m.sandboxes[name]
	if s == nil || !s.written || s.ledger.total() == s.record.Accounted {
		return
	}
	s.record.Accounted = s.ledger.total()
	if err := writeRecord(m.sandboxPath(name), s.record); err != nil {
		logf("sandbox %s: %v", name, err)
	}
}

func (m *Monitor) serveCreateSandbox(c *connection, q request, s sandbox) error {
	if err := checkName("sandbox", s.Name); err != nil {
		return err
	}
	if s.Pause != nil {
		if s.Pause.ID != s.Name || s.Pause.Sandbox != "" {
			return errorf(ClassInvalid, "sandbox %s: its process must have its ID, and no sandbox", s.Name)
		}
		if err := s.Pause.check(); err != nil {
			return err
		}
	}
	m.exclusive(c, q, s.Name, func(ctx context.Context) (any, error) {
		if err := m.createSandbox(s.Name); err != nil {
			return nil, err
		}
		if s.Pause == nil {
			return Container{ID: s.Name}, nil
		}
		o, err := m.create(ctx, *s.Pause)
		if err == nil {
			o, err = m.startCreated(ctx, o)
		}
		if err != nil {
			err = errors.Join(err, m.deleteSandbox(ctx, s.Name))
		}
		return m.viewOf(o, err)
	})
	return nil
}

func (m *Monitor) createSandbox(name string) (err error) {
	if !m.loop.do(func() {
		s := m.sandboxOf(name)
		if s.written {
			err = errorf(ClassExists, "sandbox %s exists", name)
			return
		}
		if err = writeRecord(m.sandboxPath(name), s.record); err == nil {
			s.written = true
		}
	}) {
		err = errStopped
	}
	return err
}

func (m *Monitor) serveDeleteSandbox(c *connection, q request, s sandbox) error {
	if err := checkName("sandbox", s.Name); err != nil {
		return err
	}
	m.exclusive(c, q, s.Name, func(ctx context.Context) (any, error) { return struct{}{}, m.deleteSandbox(ctx, s.Name) })
	return nil
}

// deleteSandbox deletes a sandbox without containers, and its process.
func (m *Monitor) deleteSandbox(ctx context.Context, name string) (err error) {
	var pause *container
	if !m.loop.do(func() {
		for _, c := range m.containers {
			if c.rec.Create.Sandbox == name {
				err = errorf(ClassPrecondition, "sandbox %s has container %s", name, c.id)
			}
		}
		pause = m.containers[name]
	}) {
		err = errStopped
	}
	if err != nil {
		return err
	}
	if pause != nil {
		if err := pause.removeWithBundle(ctx); err != nil {
			return fmt.Errorf("stop process of sandbox: %w", err)
		}
	}
	if err := os.Remove(m.sandboxPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.loop.do(func() { delete(m.sandboxes, name) })
	return nil
}
