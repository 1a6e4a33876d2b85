package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

const (
	// runtimeWait is the default deadline of requests that run the OCI runtime: longer than that of one run in the monitor.
	runtimeWait = 150 * time.Second
	// quickWait is the default deadline of all other requests.
	quickWait = 10 * time.Second
	// eventQueue is how many events wait for the client's user. With more the connection is closed.
	eventQueue = 16 << 10
)

// ErrClosed is the error of all requests on a connection that was closed, by either side. It is not known whether the monitor has carried
// out a request that was in progress. The caller connects again, and lists the containers.
var ErrClosed = fmt.Errorf("connection to the monitor closed: %w", errdefs.ErrUnavailable)

// Client is a connection to the monitor. It has one goroutine. Its methods are safe for concurrent use. A request without a deadline has
// one of its own.
type Client struct {
	conn   *net.UnixConn
	events chan *Event // pointers, because the queue is allocated whole
	done   chan struct{}

	mu      sync.Mutex
	last    uint64
	pending map[uint64]*call
	err     error // why the connection was closed
}

// call is a request in progress.
type call struct {
	parts []json.RawMessage
	done  chan error // buffered
}

// Dial connects to the monitor with this state directory. The context bounds the connection only.
func Dial(ctx context.Context, dir string) (*Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unixpacket", filepath.Join(dir, Socket))
	if err != nil {
		return nil, fmt.Errorf("connect to the monitor: %w (%w)", err, errdefs.ErrUnavailable)
	}
	c := &Client{
		conn: conn.(*net.UnixConn), events: make(chan *Event, eventQueue), done: make(chan struct{}), pending: map[uint64]*call{},
	}
	go c.read()
	return c, nil
}

// Close closes the connection. Requests in progress return [ErrClosed]. Commands of [Client.Run] are killed.
func (c *Client) Close() error {
	c.fail(ErrClosed)
	return nil
}

// Done is closed when the connection is.
func (c *Client) Done() <-chan struct{} { return c.done }

// Events returns the events after [Client.Subscribe]. The channel is closed with the connection. A user who does not receive for long loses
// the connection, not single events.
func (c *Client) Events() <-chan *Event { return c.events }

func (c *Client) read() {
	defer close(c.events)
	buf := make([]byte, maxPacket)
	for {
		n, err := c.conn.Read(buf)
		if err == nil && n == 0 {
			err = errors.New("end of connection")
		}
		var r response
		if err == nil {
			err = json.Unmarshal(buf[:n], &r)
		}
		if err == nil && r.Event != nil {
			select {
			case c.events <- r.Event:
			default:
				err = errors.New("events were not received in time")
			}
		}
		if err != nil {
			c.fail(fmt.Errorf("%w: %w", ErrClosed, err))
			return
		}
		if r.Event == nil {
			c.answer(r)
		}
	}
}

// answer passes on an answer, or a part of one. The request may have been given up.
func (c *Client) answer(r response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[r.ID]
	if p == nil {
		return
	}
	p.parts = append(p.parts, r.Body)
	if r.More {
		return
	}
	delete(c.pending, r.ID)
	if r.Error != nil {
		p.done <- r.Error
		return
	}
	p.done <- nil
}

// fail closes the connection. The first reason is kept.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for id, p := range c.pending {
		delete(c.pending, id)
		p.done <- err
	}
	close(c.done)
	_ = c.conn.Close() // requests have got the reason
}

// call sends a request and calls part with each part of the answer.
func (c *Client) call(
	ctx context.Context, wait time.Duration, op operation, body any, files []*os.File, part func(json.RawMessage) error,
) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	id, p, err := c.send(ctx, op, body, files)
	if err != nil {
		return fmt.Errorf("monitor: %s: %w", op, err)
	}
	select {
	case err = <-p.done:
	case <-ctx.Done():
		err = context.Cause(ctx)
		if c.abandon(id) && op == opRun {
			_, _, sendErr := c.send(context.WithoutCancel(ctx), opCancel, cancelled{id}, nil)
			err = errors.Join(err, sendErr)
		}
	}
	for _, b := range p.parts {
		if err == nil && part != nil {
			err = part(b)
		}
	}
	if err != nil {
		return fmt.Errorf("monitor: %s: %w", op, err)
	}
	return nil
}

// abandon gives up a request. It returns false if the answer has come meanwhile.
func (c *Client) abandon(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, pending := c.pending[id]
	delete(c.pending, id)
	return pending
}

func (c *Client) send(ctx context.Context, op operation, body any, files []*os.File) (uint64, *call, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return 0, nil, c.err
	}
	c.last++
	id, p := c.last, &call{done: make(chan error, 1)}
	c.pending[id] = p
	c.mu.Unlock()
	packet, err := json.Marshal(request{ID: id, Op: op, Body: text})
	if err == nil && len(packet) > maxPacket {
		err = fmt.Errorf("request of %d bytes exceeds %d: %w", len(packet), maxPacket, errdefs.ErrInvalidArgument)
	}
	if err == nil {
		err = c.write(ctx, packet, files)
	}
	if err != nil {
		c.abandon(id)
		return 0, nil, err
	}
	return id, p, nil
}

// write writes a packet. A monitor that does not read fails the connection at the deadline, so that no request waits for another one.
func (c *Client) write(ctx context.Context, packet []byte, files []*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	deadline, has := ctx.Deadline()
	if !has {
		deadline = time.Now().Add(quickWait)
	}
	_ = c.conn.SetWriteDeadline(deadline)
	_, _, err := c.conn.WriteMsgUnix(packet, rights, nil)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the monitor does not read: %w", context.DeadlineExceeded)
	}
	for _, lost := range []error{unix.EPIPE, unix.ECONNRESET, unix.ENOTCONN, net.ErrClosed} {
		if errors.Is(err, lost) {
			c.fail(fmt.Errorf("%w: %w", ErrClosed, err))
			return ErrClosed
		}
	}
	return err // such as that of a file that is not open
}

// get sends a request and decodes the answer.
func get[T any](ctx context.Context, c *Client, wait time.Duration, op operation, body any, files ...*os.File) (result T, err error) {
	err = c.call(ctx, wait, op, body, files, func(b json.RawMessage) error { return json.Unmarshal(b, &result) })
	return result, err
}

// do sends a request without a result.
func (c *Client) do(ctx context.Context, wait time.Duration, op operation, body any) error {
	return c.call(ctx, wait, op, body, nil, nil)
}

// Hello returns what the monitor is.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	return get[Hello](ctx, c, quickWait, opHello, struct{}{})
}

// Create creates a container. The error is [errdefs.ErrAlreadyExists] if there is one with its ID.
func (c *Client) Create(ctx context.Context, r Create) (Container, error) {
	return get[Container](ctx, c, runtimeWait, opCreate, r)
}

// Start starts a container that was created.
func (c *Client) Start(ctx context.Context, id string) (Container, error) {
	return get[Container](ctx, c, runtimeWait, opStart, target{Container: id})
}

// CreateAndStart creates and starts a container. If it cannot be started it is deleted.
func (c *Client) CreateAndStart(ctx context.Context, r Create) (Container, error) {
	return get[Container](ctx, c, runtimeWait, opCreateAndStart, r)
}

// Exec starts a command in a container. Its standard streams are the files, in their order; nil: none, for a command with a terminal. The
// caller closes its files. The command has a record until [Client.DeleteExec] or the container is deleted.
func (c *Client) Exec(ctx context.Context, r Exec, streams *[3]*os.File) (Process, error) {
	if streams == nil {
		return get[Process](ctx, c, runtimeWait, opExec, r)
	}
	return get[Process](ctx, c, runtimeWait, opExec, r, streams[:]...)
}

// Run runs a command in a container, and returns when its first process has exited. When the timeout expires or ctx ends, all its processes
// are killed, and the error is [context.DeadlineExceeded] or that of ctx. Processes that it has left are killed at the timeout.
func (c *Client) Run(ctx context.Context, r Run) (RunResult, error) {
	return get[RunResult](ctx, c, r.Timeout+runtimeWait, opRun, r)
}

// Signal sends a signal. The error is [errdefs.ErrNotFound] if the process has exited.
func (c *Client) Signal(ctx context.Context, s Signal) error {
	return c.do(ctx, quickWait, opSignal, s)
}

// Resize changes the size of a container's terminal.
func (c *Client) Resize(ctx context.Context, id string, size Size) error {
	return c.do(ctx, quickWait, opResize, resize{Container: id, Size: size})
}

// CloseInput closes the standard input of a container.
func (c *Client) CloseInput(ctx context.Context, id string) error {
	return c.do(ctx, quickWait, opCloseInput, target{Container: id})
}

// PIDs returns the processes of a container. One that has exited has its first process.
func (c *Client) PIDs(ctx context.Context, id string) ([]int, error) {
	p, err := get[pids](ctx, c, quickWait, opPids, target{Container: id})
	return p.PIDs, err
}

// Delete deletes a container that has exited or was not started. Its log is complete when it returns, unless the log could not be written
// for 5 s. The exit is nil if the container was not started.
func (c *Client) Delete(ctx context.Context, id string) (Container, error) {
	return get[Container](ctx, c, runtimeWait, opDelete, target{Container: id})
}

// DeleteExec removes the record of a command that has exited.
func (c *Client) DeleteExec(ctx context.Context, id, exec string) (Process, error) {
	return get[Process](ctx, c, quickWait, opDelete, target{Container: id, Exec: exec})
}

// List returns all containers and the names of all sandboxes.
func (c *Client) List(ctx context.Context) (containers []Container, sandboxes []string, err error) {
	l, err := c.list(ctx, opList)
	return l.Containers, l.Sandboxes, err
}

// Subscribe starts the [Client.Events], and returns the containers and sandboxes to which they are changes.
func (c *Client) Subscribe(ctx context.Context) (containers []Container, sandboxes []string, sequence uint64, err error) {
	l, err := c.list(ctx, opSubscribe)
	return l.Containers, l.Sandboxes, l.Sequence, err
}

func (c *Client) list(ctx context.Context, op operation) (all list, err error) {
	err = c.call(ctx, quickWait, op, struct{}{}, nil, func(b json.RawMessage) error {
		var l list
		if err := json.Unmarshal(b, &l); err != nil {
			return err
		}
		all.Containers, all.Sandboxes = append(all.Containers, l.Containers...), append(all.Sandboxes, l.Sandboxes...)
		all.Sequence = l.Sequence
		return nil
	})
	return all, err
}

// State returns the state of a container.
func (c *Client) State(ctx context.Context, id string) (Container, error) {
	return get[Container](ctx, c, quickWait, opState, target{Container: id})
}

// SetLog changes the limits of a container's log. The output is a [ocibundle.Output] with the same path, as a URI.
func (c *Client) SetLog(ctx context.Context, id, output string) error {
	return c.do(ctx, quickWait, opLog, logChange{Container: id, Output: output})
}

// Replace replaces the monitor and its keeper by another program, in place. If it returns without an error the new monitor is about to run:
// the connection is closed. On an error the monitor runs on.
func (c *Client) Replace(ctx context.Context, program string) error {
	return c.do(ctx, runtimeWait, opReplace, replacement{Program: program})
}

// Shutdown stops the monitor and its keeper. The error is [errdefs.ErrFailedPrecondition] if there are containers.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, quickWait, opShutdown, struct{}{})
}

// CreateSandbox creates a sandbox. If it has a process, that is created and started. The process is a container with the ID of the sandbox.
func (c *Client) CreateSandbox(ctx context.Context, name string, pause *Create) (Container, error) {
	return get[Container](ctx, c, runtimeWait, opCreateSandbox, sandbox{Name: name, Pause: pause})
}

// DeleteSandbox kills the process of a sandbox, if it has one, and deletes it. The error is [errdefs.ErrFailedPrecondition] if the sandbox
// has containers, and nil if there is no such sandbox.
func (c *Client) DeleteSandbox(ctx context.Context, name string) error {
	return c.do(ctx, runtimeWait, opDeleteSandbox, sandbox{Name: name})
}
