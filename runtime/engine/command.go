package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/containerd/console"
	api "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"
	gorunc "github.com/containerd/go-runc"

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
	terminal console.Console // nil: none, or not started
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

// forget removes a command, or all commands of a container if the ID is empty. It reports whether the command was never started.
func (s *commands) forget(container, id string) (unstarted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.known {
		if key.container != container || id != "" && key.id != id {
			continue
		}
		unstarted = !c.started
		if c.terminal != nil {
			_ = c.terminal.Close() // its processes get SIGHUP
		}
		delete(s.known, key)
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
	return c.terminal.Resize(console.WinSize{Width: size.Width, Height: size.Height})
}

// start starts a command that was prepared.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		c.started = false
	}
	return p, err
}

func (s *commands) run(ctx context.Context, l *link, c *command) (monitor.Process, error) {
	r := c.request
	request := monitor.Exec{Container: r.ContainerID, ID: r.ExecID, Process: r.Spec.GetValue()}
	if r.Terminal {
		return s.runInTerminal(ctx, l, c, request)
	}
	streams, err := openStreams(r)
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
func openStreams(r *api.ExecProcessRequest) (files [3]*os.File, err error) {
	for i, path := range []string{r.Stdin, r.Stdout, r.Stderr} {
		flags := os.O_WRONLY
		if i == 0 {
			flags = os.O_RDONLY
		}
		if path == "" {
			path = os.DevNull
		}
		if files[i], err = os.OpenFile(path, flags, 0); err != nil {
			closeAll(files[:]...)
			return files, fmt.Errorf("open streams of command: %w", err)
		}
	}
	return files, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// runInTerminal starts a command with a terminal, which this process holds: the command ends with the session of its client.
func (s *commands) runInTerminal(ctx context.Context, l *link, c *command, request monitor.Exec) (p monitor.Process, err error) {
	r := c.request
	socket, err := gorunc.NewTempConsoleSocket()
	if err != nil {
		return p, fmt.Errorf("prepare terminal: %w", err)
	}
	defer socket.Close()
	request.ConsoleSocket = socket.Path()
	p, err = execute(ctx, l, request, nil)
	if err != nil {
		return p, err
	}
	master, err := socket.ReceiveMaster()
	if err != nil {
		return p, fmt.Errorf("receive terminal: %w", err)
	}
	out, err := os.OpenFile(r.Stdout, os.O_WRONLY, 0)
	if err != nil {
		return p, errors.Join(fmt.Errorf("open output of command: %w", err), master.Close())
	}
	if r.Stdin != "" {
		in, err := os.OpenFile(r.Stdin, os.O_RDONLY, 0)
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
