package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/channel"
)

// AttachOptions select a container and connect its streams.
type AttachOptions struct {
	Streams // Stdin requires a container with standard input, and TTY one with a terminal

	UID       string // of the pod; empty: any
	Container string // empty: the one in the annotation kubectl.kubernetes.io/default-container, otherwise the first
	// FromStart adds what the container has written before its first client, as far as it is kept: up to 64 KiB of a container with
	// standard input or a terminal.
	FromStart bool
	// Incomplete is called before any output is written if FromStart is set and the container has written more than is kept; nil: ignore.
	Incomplete func()
}

// Attach connects to the standard streams of a running container, from now on, and returns its exit code when it has exited and its output
// was written. When the context ends, the container keeps running.
//
// If the container is not running, the error is an [*api.Error] with the reason [api.ReasonNotRunning], and if the caller does not read the
// output in time, one with the reason [api.ReasonDisconnected]. Other errors are those of [Client.Exec].
func (c *Client) Attach(ctx context.Context, pod string, o AttachOptions) (code int, err error) {
	q := o.query("uid", o.UID, "container", o.Container, "fromStart", flag(o.FromStart))
	status, err := c.session(ctx, podPath(pod)+"/attach", q, &o.Streams, func(h http.Header) {
		if o.Incomplete != nil && h.Get(api.IncompleteHeader) == "true" {
			o.Incomplete()
		}
	})
	if err != nil {
		return 0, err
	}
	return api.ReadSessionStatus(status)
}

// writtenTimeout is how long a session waits for the output in progress after its context is done.
const writtenTimeout = time.Second

// Streams connect a session with the caller.
type Streams struct {
	// Stdin is read until EOF, which the command then reads, or until the session ends; nil: the command has no input. A read in progress
	// is not interrupted by the end of the session.
	Stdin io.Reader
	// Stdout and Stderr receive the output; nil: it is discarded. With TTY, all output goes to Stdout. If a write fails, the session ends.
	// When the context ends, a write that blocks may still be in progress after the call has returned.
	Stdout, Stderr io.Writer
	// TTY requests a terminal of the given size. Resize changes the size; nil: never.
	TTY    bool
	Size   channel.Size
	Resize <-chan channel.Size
}

// ExecOptions select a container and connect the command. Command is required.
type ExecOptions struct {
	Streams

	UID       string // of the pod; empty: any
	Container string // empty: the one in the annotation kubectl.kubernetes.io/default-container, otherwise the first
	Command   []string
}

// Exec runs a command in a container of a pod, and returns its exit code when it has exited and its output was written. A session survives
// neither the client nor the daemon: when the context ends, the command and all processes that it has started are killed.
//
// The error is a [*api.CommandError] if the command could not be executed, an [*api.Error], [api.ErrUnavailable] if the connection was
// lost, or that of the context or of a stream.
func (c *Client) Exec(ctx context.Context, pod string, o ExecOptions) (code int, err error) {
	q := o.query("uid", o.UID, "container", o.Container)
	q["command"] = o.Command
	status, err := c.session(ctx, podPath(pod)+"/exec", q, &o.Streams, nil)
	if err != nil {
		return 0, err
	}
	return api.ReadSessionStatus(status)
}

// query returns the parameters of streams, and others.
func (s *Streams) query(others ...string) url.Values {
	q := query(append(others,
		"stdin", flag(s.Stdin != nil), "stdout", flag(s.Stdout != nil || s.TTY), "stderr", flag(!s.TTY), "tty", flag(s.TTY))...)
	if s.TTY && s.Size != (channel.Size{}) {
		q.Set("width", strconv.Itoa(int(s.Size.Width)))
		q.Set("height", strconv.Itoa(int(s.Size.Height)))
	}
	return q
}

// session opens a session and copies its streams until it ends. It first calls accepted, if not nil, with the header of the response.
func (c *Client) session(ctx context.Context, path string, q url.Values, s *Streams, accepted func(http.Header)) (*channel.Status, error) {
	conn, err := c.connect(ctx, path, q, channel.Stdout, channel.Stderr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if accepted != nil {
		accepted(conn.Header())
	}
	copying, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.send(copying, conn)
	output, copying := errgroup.WithContext(copying)
	for id, w := range map[channel.ID]io.Writer{channel.Stdout: s.Stdout, channel.Stderr: s.Stderr} {
		output.Go(func() error { return receive(w, conn.Reader(id)) })
	}
	written := make(chan error, 1)
	go func() { written <- output.Wait() }()
	select {
	case err = <-written:
	case <-copying.Done(): // a stream that failed, or the caller
		conn.Close()
		err = awaitWritten(ctx, written)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !errors.Is(err, channel.ErrLost) {
		return nil, err
	}
	status, err := conn.Status(ctx)
	return status, c.unavailable(ctx, err)
}

// awaitWritten waits for the result of writing the output. When the context ends, it waits only briefly: a write that blocks cannot be
// interrupted.
func awaitWritten(ctx context.Context, written <-chan error) error {
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(writtenTimeout)
	defer late.Stop()
	select {
	case err := <-written:
		return err
	case <-late.C:
		return ctx.Err()
	}
}

// connect opens a connection. Data of other channels than receive is discarded.
func (c *Client) connect(ctx context.Context, path string, q url.Values, receive ...channel.ID) (*channel.Conn, error) {
	connecting, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, refused, err := channel.Dial(connecting, c.http, address(path, q), http.Header{"User-Agent": {c.agent}}, receive...)
	if refused != nil {
		defer refused.Body.Close()
		return nil, c.readError(ctx, refused)
	}
	return conn, c.unavailable(ctx, err)
}

// send copies input and sizes to a connection until the context ends.
func (s *Streams) send(ctx context.Context, conn *channel.Conn) {
	if s.Stdin != nil {
		go func() { //nolint:contextcheck // a connection has the context of its own life
			w := conn.Writer(channel.Stdin)
			if _, err := io.Copy(w, s.Stdin); err == nil {
				_ = w.Close() // the end of the session reports the loss of the connection
			}
		}()
	}
	for {
		select {
		case size, ok := <-s.Resize:
			if !ok {
				return
			}
			if conn.Resize(size) != nil { //nolint:contextcheck // as above
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// receive copies output. The loss of the connection is an error that wraps [channel.ErrLost].
func receive(w io.Writer, r io.Reader) error {
	if w == nil {
		w = io.Discard
	}
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("copy output: %w", err)
	}
	return nil
}

// PortConn is a connection to a port of a pod. It must be closed. It is safe for concurrent use by one reader and one writer.
type PortConn struct{ conn *channel.Conn }

// Read implements io.Reader. The error is io.EOF after the pod has closed its direction, and another one after the connection was lost.
func (p *PortConn) Read(b []byte) (int, error) { return p.conn.Reader(channel.Data).Read(b) }

// Write implements io.Writer. It blocks while the pod does not read.
func (p *PortConn) Write(b []byte) (int, error) { return p.conn.Writer(channel.Data).Write(b) }

// CloseWrite closes the direction to the pod, which reads the end of the data. The other direction stays open.
func (p *PortConn) CloseWrite() error { return p.conn.Writer(channel.Data).Close() }

// Close closes the connection.
func (p *PortConn) Close() error {
	p.conn.Close()
	return nil
}

// DialPort connects to a TCP port of a pod, on its loopback interface. With a UID, the pod must have it. If the pod refuses the connection,
// the error is an [*api.Error] with status 502. The context bounds only the start.
func (c *Client) DialPort(ctx context.Context, pod, uid string, port uint16) (*PortConn, error) {
	conn, err := c.connect(ctx, podPath(pod)+"/portforward", query("port", strconv.Itoa(int(port)), "uid", uid), channel.Data)
	if err != nil {
		return nil, err
	}
	return &PortConn{conn}, nil
}
