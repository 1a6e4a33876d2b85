package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/proc"
	"github.com/podstead/podstead/runtime/proctree"
)

const (
	// outputTimeout is how long the rest of the output of a command of [Run] is waited for, if a process that it has left holds it open.
	outputTimeout = 100 * time.Millisecond
	// killTimeout is for killing the processes of a command, which may be stuck in the kernel.
	killTimeout = 10 * time.Second
)

// command is a command in a container. The loop owns it.
type command struct {
	c       *container
	dir     string
	rec     commandRecord
	exit    *Exit
	settled bool // it was started
	process watched
	done    chan struct{} // closed when it has exited
}

func (c *container) newCommand(r commandRecord) *command {
	return &command{c: c, dir: filepath.Join(c.dir, execsDir, r.ID), rec: r, done: make(chan struct{})}
}

func (x *command) view() Process {
	return Process{ID: x.rec.ID, PID: x.rec.PID, Exit: x.exit, Session: x.rec.Session}
}

// exited records the exit. It reports false if that is not possible now.
func (x *command) exited(code int, known bool) bool {
	e := Exit{Code: uint32(code), Time: time.Now(), Unknown: !known}
	if x.rec.Mark == "" { // of a Run, only the request that waits for it is interested in the exit
		if err := writeRecord(filepath.Join(x.dir, exitFile), e); err != nil {
			x.c.failOnce("record exit of a command", err)
			return false
		}
	}
	x.setExited(e)
	return true
}

func (x *command) setExited(e Exit) {
	x.exit = &e
	close(x.done)
	if x.rec.Mark == "" {
		x.c.m.report(Event{
			Kind: EventExited, Container: x.c.id, Sandbox: x.c.rec.Create.Sandbox, Exec: x.rec.ID, PID: x.rec.PID, Exit: x.exit,
		})
	}
}

// begin registers a command that is about to be started.
func (m *Monitor) begin(container string, r commandRecord) (x *command, err error) {
	if err := checkName("command", r.ID); err != nil {
		return nil, err
	}
	if !m.loop.do(func() {
		c, findErr := m.find(container)
		switch {
		case findErr != nil:
			err = findErr
		case c.rec.Phase != Running || c.deleting:
			err = errorf(ClassPrecondition, "container %s is %s", container, c.rec.Phase)
		case m.replacing:
			err = errorf(ClassUnavailable, "the monitor is being replaced")
		case c.commands[r.ID] != nil:
			err = errorf(ClassExists, "command %s exists in container %s", r.ID, container)
		default:
			x = c.newCommand(r)
			c.commands[r.ID] = x
		}
	}) {
		err = errStopped
	}
	return x, err
}

// launch starts a command. On an error nothing of it is left. The streams are nil for a command with a terminal.
func (x *command) launch(ctx context.Context, process json.RawMessage, console string, streams *[3]*os.File) error {
	defer x.c.m.flights.begin()()
	err := x.start(ctx, process, console, streams)
	if err != nil {
		x.discard(context.WithoutCancel(ctx))
	}
	return err
}

func (x *command) start(ctx context.Context, process json.RawMessage, console string, streams *[3]*os.File) error {
	c, m := x.c, x.c.m
	var settings struct {
		OOMScoreAdj *int `json:"oomScoreAdj"`
	}
	if err := json.Unmarshal(process, &settings); err != nil {
		return errorf(ClassInvalid, "read process of command %s: %v", x.rec.ID, err)
	}
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return err
	}
	if err := writeRecord(filepath.Join(x.dir, commandFile), x.rec); err != nil {
		return err
	}
	spec := filepath.Join(x.dir, processFile)
	if err := os.WriteFile(spec, process, 0o600); err != nil {
		return err
	}
	pid := filepath.Join(x.dir, pidFile)
	args := []string{"--process", spec, "--detach", "--pid-file", pid}
	if console != "" {
		args = append(args, "--console-socket", console)
	}
	score := *m.o.score
	if r := c.rec.Create.Runtime; settings.OOMScoreAdj != nil && r.isCrun(c.id) {
		score = *settings.OOMScoreAdj // crun leaves it to its starter
	}
	run := invocation{runtime: c.rec.Create.Runtime, dir: x.dir, action: "exec", args: append(args, c.id), streams: streams, score: score}
	if _, err := m.run(ctx, run); err != nil {
		return err
	}
	if err := os.Remove(spec); err != nil {
		return err
	}
	return x.adopt()
}

// adopt registers the process of the command, whose PID the OCI runtime has written.
func (x *command) adopt() error {
	pid, err := readPIDFile(filepath.Join(x.dir, pidFile))
	if err != nil {
		return err
	}
	s, err := proc.StatOf(pid)
	if err != nil {
		return err
	}
	fd, err := openProcess(pid, s.Start)
	if err != nil {
		return fmt.Errorf("open process %d of command %s: %w", pid, x.rec.ID, err)
	}
	if !x.c.m.loop.do(func() {
		x.rec.PID, x.rec.Start = pid, s.Start
		if s.Session != pid {
			x.rec.Session = s.Session
		}
		if err = writeRecord(filepath.Join(x.dir, commandFile), x.rec); err != nil {
			closeAll(fd)
			return
		}
		x.settled = true
		err = x.process.watch(x.c.m, pid, s.Start, fd, x.exited)
	}) {
		err = errStopped
	}
	return err
}

// discard kills what was started of a command, and removes its record.
func (x *command) discard(ctx context.Context) {
	if x.rec.Mark != "" {
		if err := x.killTree(ctx); err != nil {
			logf("container %s: kill command %s: %v", x.c.id, x.rec.ID, err)
		}
	}
	if pid, err := readPIDFile(filepath.Join(x.dir, pidFile)); err == nil && x.inContainer(pid) {
		if s, err := proc.StatOf(pid); err == nil {
			if fd, err := openProcess(pid, s.Start); err == nil {
				w := watched{fd: fd}
				_ = w.signal(9) // it may have exited
				closeAll(fd)
			}
		}
	}
	x.c.m.loop.do(x.forget)
	_ = os.RemoveAll(x.dir) // the next monitor tries again
}

// inContainer reports whether a process is in the cgroup of the container.
func (x *command) inContainer(pid int) bool {
	list, err := proctree.List(x.c.rec.Cgroup)
	if err != nil {
		return false
	}
	for _, p := range list {
		if p.PID == pid {
			return true
		}
	}
	return false
}

func (x *command) forget() {
	x.process.unwatch(x.c.m.loop)
	if x.c.commands[x.rec.ID] == x {
		delete(x.c.commands, x.rec.ID)
	}
}

// tree is the processes of a command of [Run].
func (x *command) tree() proctree.Tree {
	return proctree.Tree{
		Cgroup: x.c.rec.Cgroup, Belongs: func(mark string) bool { return mark == x.rec.Mark }, Leader: x.rec.PID, Session: x.rec.Session,
	}
}

// killTree kills all processes of a command of [Run].
func (x *command) killTree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	return x.tree().Kill(ctx)
}

// exec starts a command.
func (m *Monitor) exec(ctx context.Context, e Exec, files []*os.File) (x *command, p Process, err error) {
	if (e.ConsoleSocket == "") != (len(files) == 3) {
		return nil, p, errorf(ClassInvalid, "command %s needs three streams or a console socket", e.ID)
	}
	x, err = m.begin(e.Container, commandRecord{Format: Format, ID: e.ID})
	if err != nil {
		return nil, p, err
	}
	var streams *[3]*os.File
	if len(files) == 3 {
		streams = (*[3]*os.File)(files)
	}
	if err := x.launch(ctx, e.Process, e.ConsoleSocket, streams); err != nil {
		return nil, p, err
	}
	if !m.loop.do(func() { p = x.view() }) {
		return nil, p, errStopped
	}
	return x, p, nil
}

// runs are numbered, so that each has a directory.
const runPrefix = "run-"

// runCommand runs a command and returns its result. When ctx ends all its processes are killed. left waits for processes that the command
// has left, and kills them when ctx ends.
func (m *Monitor) runCommand(ctx context.Context, id string, r Run) (result RunResult, left func(), err error) {
	if r.Mark == "" || r.MaxOutput < 0 || r.MaxOutput > MaxRunOutput || r.Timeout < 0 {
		return result, nil, errorf(ClassInvalid, "run in container %s: a mark, and at most %d bytes of output, are required",
			r.Container, MaxRunOutput)
	}
	x, err := m.begin(r.Container, commandRecord{Format: Format, ID: runPrefix + id, Mark: r.Mark})
	if err != nil {
		return result, nil, err
	}
	in, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		m.loop.do(x.forget)
		return result, nil, err
	}
	stdout, err := capture(r.MaxOutput)
	if err != nil {
		m.loop.do(x.forget)
		return result, nil, errors.Join(err, in.Close())
	}
	stderr, err := capture(r.MaxOutput)
	if err != nil {
		m.loop.do(x.forget)
		stdout.close()
		return result, nil, errors.Join(err, in.Close())
	}
	stopCapture := func() {
		stdout.close()
		stderr.close()
	}
	defer func() {
		if left == nil {
			stopCapture()
		}
	}()
	err = x.launch(ctx, r.Process, "", &[3]*os.File{in, stdout.write, stderr.write})
	_ = in.Close()
	stdout.closeWrite() // the command has its own
	stderr.closeWrite()
	if err != nil {
		return result, nil, timedOut(ctx, r, err)
	}
	select {
	case <-x.done:
	case <-m.loop.end:
		return result, nil, errStopped
	case <-ctx.Done():
		x.discard(context.WithoutCancel(ctx))
		return result, nil, timedOut(ctx, r, context.Cause(ctx))
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), outputTimeout)
	defer cancel()
	output := append(stdout.await(late.Done()), stderr.await(late.Done())...)
	left = func() {
		if x.tree().IsEmpty(context.WithoutCancel(ctx)) {
			m.loop.do(x.forget)
			_ = os.RemoveAll(x.dir) // the next monitor tries again
			return
		}
		<-ctx.Done()
		x.discard(context.WithoutCancel(ctx))
		stopCapture() // until then what the command has left can write
	}
	return RunResult{Code: x.exit.Code, Output: output[:min(len(output), r.MaxOutput)]}, left, nil
}

// timedOut returns the error of a command for which ctx may have ended.
func timedOut(ctx context.Context, r Run, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errorf(ClassDeadline, "command in container %s: not done within %v", r.Container, r.Timeout)
	}
	return errorf(ClassUnavailable, "command in container %s: cancelled", r.Container)
}

// captured is the start of what is written to a pipe. It is complete when done is closed.
type captured struct {
	read, write *os.File
	done        chan struct{}

	mu   sync.Mutex
	text []byte
}

// capture reads a pipe until EOF, or until [captured.close], so that writers do not block.
func capture(limit int) (*captured, error) {
	c := &captured{done: make(chan struct{})}
	var err error
	if c.read, c.write, err = os.Pipe(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.done)
		buf := make([]byte, 4<<10)
		for {
			n, err := c.read.Read(buf)
			c.mu.Lock()
			c.text = append(c.text, buf[:min(n, limit-len(c.text))]...)
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c, nil
}

// await returns what was read until the end of the output, or until late.
func (c *captured) await(late <-chan struct{}) []byte {
	select {
	case <-c.done:
	case <-late:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.text)
}

func (c *captured) closeWrite() { _ = c.write.Close() }

// close closes both ends and ends the reader.
func (c *captured) close() {
	_ = c.write.Close() // it may be closed
	_ = c.read.Close()
	<-c.done
}
