package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/containerd/console"
	api "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	gorunc "github.com/containerd/go-runc"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/monitor"
)

// commands are the commands in containers that the monitor runs, from their preparation on. containerd's client prepares a command and
// starts it later; its streams are FIFOs that the client has made. It is safe for concurrent use.
type commands struct {
	mu    sync.Mutex
	known map[commandKey]*command
}

type commandKey struct{ container, id string }

// command is a command that was prepared.
type command struct {
	request  *api.ExecProcessRequest
	started  bool
	listed   bool     // the link has it
	terminal *os.File // the master; nil: none, or not started
}

func newCommands() *commands { return &commands{known: map[commandKey]*command{}} }

// prepare stores a command until it is started.
func (s *commands) prepare(r *api.ExecProcessRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := commandKey{r.ContainerID, r.ExecID}
	if s.known[key] != nil {
		return fmt.Errorf("process %s of %s: %w", r.ExecID, r.ContainerID, errdefs.ErrAlreadyExists)
	}
	s.known[key] = &command{request: r}
	return nil
}

// has reports whether a command was prepared and not deleted.
func (s *commands) has(container, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[commandKey{container, id}] != nil
}

// prune removes the commands that the monitor has had, and of which it does not know any more. The receiver may be nil.
func (s *commands) prune(containers map[string]monitor.Container) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.known {
		if !c.listed || slices.ContainsFunc(containers[key.container].Processes, func(p monitor.Process) bool { return p.ID == key.id }) {
			continue
		}
		s.remove(key)
	}
}

// remove removes a command. The caller holds the lock.
func (s *commands) remove(key commandKey) {
	if t := s.known[key].terminal; t != nil {
		_ = t.Close() // processes that still have it get SIGHUP
	}
	delete(s.known, key)
}

// forget removes a command, or all commands of a container if the ID is empty. It reports whether the command was never started.
// The receiver may be nil.
func (s *commands) forget(container, id string) (unstarted bool) {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.known {
		if key.container != container || id != "" && key.id != id {
			continue
		}
		unstarted = !c.started
		s.remove(key)
	}
	return unstarted
}

// resize changes the size of a command's terminal.
func (s *commands) resize(container, id string, size monitor.Size) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.known[commandKey{container, id}]
	if c == nil || c.terminal == nil {
		return fmt.Errorf("terminal of process %s of %s: %w", id, container, errdefs.ErrNotFound)
	}
	conn, err := c.terminal.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: size.Width, Row: size.Height})
	})
	return errors.Join(controlErr, err)
}

// start starts a command that was prepared. On an error nothing of it is left.
func (s *commands) start(ctx context.Context, l *link, container, id string) (monitor.Process, error) {
	s.mu.Lock()
	c := s.known[commandKey{container, id}]
	ready := c != nil && !c.started
	if ready {
		c.started = true
	}
	s.mu.Unlock()
	if !ready {
		return monitor.Process{}, fmt.Errorf("process %s of %s: %w", id, container, errdefs.ErrNotFound)
	}
	p, err := s.run(ctx, l, c)
	if err != nil {
		if _, answered := errors.AsType[*monitor.Error](err); !answered {
			err = errors.Join(err, undoExec(ctx, l, container, id))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.started, c.listed = err == nil, err == nil
	return p, err
}

// undoInterval is the time between two looks at a command that was killed.
const undoInterval = 50 * time.Millisecond

// undoExec kills and deletes a command that may have been started, after [Detached]: its client does not know it.
func undoExec(ctx context.Context, l *link, container, id string) error {
	ctx, cancel := Detached(ctx, UndoTimeout)
	defer cancel()
	var err error
	for range guard.Poll(ctx, undoInterval) {
		err = l.ask(ctx, true, func(m *monitor.Client) error {
			kill := monitor.Signal{Container: container, Exec: id, Signal: int(unix.SIGKILL)}
			if err := m.Signal(ctx, kill); err != nil && !errdefs.IsNotFound(err) {
				return err
			}
			_, err := m.DeleteExec(ctx, container, id)
			return err
		})
		if err == nil || errdefs.IsNotFound(err) {
			l.change(func() { l.forget(container, id) })
			return nil
		}
		if !errdefs.IsFailedPrecondition(err) { // otherwise it has not exited yet
			break
		}
	}
	return fmt.Errorf("kill command without a client: %w", err)
}

func (s *commands) run(ctx context.Context, l *link, c *command) (monitor.Process, error) {
	r := c.request
	request := monitor.Exec{Container: r.ContainerID, ID: r.ExecID, Process: r.Spec.GetValue()}
	if r.Terminal {
		return s.runInTerminal(ctx, l, c, request)
	}
	streams, err := openStreams(ctx, r)
	if err != nil {
		return monitor.Process{}, err
	}
	defer closeAll(streams[:]...)
	return execute(ctx, l, request, &streams)
}

// execute sends the request, and stores the command in the link.
func execute(ctx context.Context, l *link, request monitor.Exec, streams *[3]*os.File) (p monitor.Process, err error) {
	l.putCommand(request.Container, monitor.Process{ID: request.ID}) // its exit may be known before the answer
	err = l.ask(ctx, false, func(m *monitor.Client) error {
		p, err = m.Exec(ctx, request, streams)
		return err
	})
	if err != nil {
		l.change(func() { l.forget(request.Container, request.ID) })
		return p, err
	}
	l.putCommand(request.Container, p)
	return p, nil
}

// openStreams opens the standard streams of a command. The client has opened the other ends of the FIFOs, or will do so.
func openStreams(ctx context.Context, r *api.ExecProcessRequest) (files [3]*os.File, err error) {
	for i, path := range []string{r.Stdin, r.Stdout, r.Stderr} {
		flags := os.O_WRONLY
		if i == 0 {
			flags = os.O_RDONLY
		}
		if path == "" {
			path = os.DevNull
		}
		if files[i], err = openStream(ctx, path, flags); err != nil {
			closeAll(files[:]...)
			return files, fmt.Errorf("open streams of command: %w", err)
		}
	}
	return files, nil
}

// openStream opens a FIFO, or /dev/null. It waits until the client has opened the other end, or ctx ends: a client that was cancelled has
// closed it.
func openStream(ctx context.Context, path string, flags int) (*os.File, error) {
	node, err := os.OpenFile(path, unix.O_PATH, 0) // the client may remove the name meanwhile
	if err != nil {
		return nil, err
	}
	defer node.Close()
	name := fmt.Sprintf("/proc/self/fd/%d", node.Fd())
	var f *os.File
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		f, err = os.OpenFile(name, flags, 0)
	}()
	select {
	case <-opened:
		return f, err
	case <-ctx.Done():
	}
	both, bothErr := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0) // ends the wait
	if bothErr != nil {
		return nil, errors.Join(ctx.Err(), bothErr)
	}
	<-opened
	closeAll(f, both)
	return nil, ctx.Err()
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// pollable returns the master of a terminal such that Close ends a read. It closes the one that was received, of which a read would keep it
// open until no process has the terminal any more.
func pollable(received console.Console) (*os.File, error) {
	defer received.Close()
	fd, err := unix.FcntlInt(received.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), received.Name()), nil
}

// terminalPrefix begins the names of the directories in the monitor's directory that contain the socket on which a terminal is received.
const terminalPrefix = "pty"

// runInTerminal starts a command with a terminal, which this process holds: the command ends with the session of its client.
func (s *commands) runInTerminal(ctx context.Context, l *link, c *command, request monitor.Exec) (p monitor.Process, err error) {
	r := c.request
	dir, err := os.MkdirTemp(l.Dir, terminalPrefix) // the next engine sweeps it, see [sweep]
	if err != nil {
		return p, fmt.Errorf("prepare terminal: %w", err)
	}
	defer os.RemoveAll(dir)
	socket, err := gorunc.NewConsoleSocket(filepath.Join(dir, "pty.sock"))
	if err != nil {
		return p, fmt.Errorf("prepare terminal: %w", err)
	}
	defer socket.Close()
	request.ConsoleSocket = socket.Path()
	p, err = execute(ctx, l, request, nil)
	if err != nil {
		return p, err
	}
	received, err := socket.ReceiveMaster()
	if err != nil {
		return p, fmt.Errorf("receive terminal: %w", err)
	}
	master, err := pollable(received)
	if err != nil {
		return p, fmt.Errorf("receive terminal: %w", err)
	}
	out, err := openStream(ctx, r.Stdout, os.O_WRONLY)
	if err != nil {
		return p, errors.Join(fmt.Errorf("open output of command: %w", err), master.Close())
	}
	if r.Stdin != "" {
		in, err := openStream(ctx, r.Stdin, os.O_RDONLY)
		if err != nil {
			return p, errors.Join(fmt.Errorf("open input of command: %w", err), out.Close(), master.Close())
		}
		go func() {
			_, _ = io.Copy(master, in) // until the client closes it
			_ = in.Close()
		}()
	}
	go func() {
		_, _ = io.Copy(out, master) // until the last process has closed the terminal: EIO
		_ = out.Close()
	}()
	s.mu.Lock()
	c.terminal = master
	s.mu.Unlock()
	return p, nil
}
