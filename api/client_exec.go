package api

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

	"github.com/podstead/podstead/api/channel"
)

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
// The error is a [*CommandError] if the command could not be executed, an [*Error], [ErrUnavailable] if the connection was lost, or that of
// the context or of a stream.
func (c *Client) Exec(ctx context.Context, pod string, o ExecOptions) (code int, err error) {
	q := o.query()
	q["command"] = o.Command
	if o.UID != "" {
		q.Set("uid", o.UID)
	}
	if o.Container != "" {
		q.Set("container", o.Container)
	}
	status, err := c.session(ctx, podPath(pod)+"/exec", q, &o.Streams, nil)
	if err != nil {
		return 0, err
	}
	return readStatus(status)
}

// query returns the parameters of streams.
func (s *Streams) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]bool{
		"stdin": s.Stdin != nil, "stdout": s.Stdout != nil || s.TTY, "stderr": !s.TTY, "tty": s.TTY,
	} {
		if value {
			q.Set(name, "true")
		}
	}
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
	connecting, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	u := url.URL{Scheme: "http", Host: "podstead", Path: path, RawQuery: q.Encode()}
	conn, refused, err := channel.Dial(connecting, c.http, u.String(), http.Header{"User-Agent": {c.agent}}, receive...)
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
