package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// Conn is one side of a session. It is safe for concurrent use. The owner must call [Conn.Close].
type Conn struct {
	ws     *websocket.Conn
	server bool
	flow   bool // the peer waits for permission to send
	limits limits
	header http.Header // of the response that accepted the session; nil on the side of the server
	// timeout returns a context for a call on the WebSocket.
	timeout func(time.Duration) (context.Context, context.CancelFunc)

	in    [streams]*Reader // nil: the data of the channel is discarded
	out   [streams]*Writer
	sizes chan Size

	goroutines sync.WaitGroup
	heard      atomic.Int64 // when the peer was heard from, in nanoseconds after start
	start      time.Time
	writes     atomic.Int32 // in progress
	full       atomic.Bool  // no message is read, because a channel is full

	mu     sync.Mutex
	ended  bool
	status *Status
	err    error
	done   chan struct{}
}

func newConn(ctx context.Context, ws *websocket.Conn, server bool, l limits, receive []ID) *Conn {
	ctx = context.WithoutCancel(ctx)
	c := &Conn{
		ws: ws, server: server, flow: ws.Subprotocol() == FlowSubprotocol, limits: l,
		timeout: func(d time.Duration) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) },
		sizes:   make(chan Size, 1), done: make(chan struct{}), start: time.Now(),
	}
	for id := range c.out {
		c.out[id] = newWriter(c, ID(id))
	}
	for _, id := range receive {
		c.in[id] = newReader(c, id)
	}
	ws.SetReadLimit(maxMessage + 1)
	c.goroutines.Go(func() { c.receive(ctx) })
	if server {
		c.goroutines.Go(c.ping)
	}
	return c
}

// Reader returns the reader of a channel that was named when the connection was made; nil for others.
func (c *Conn) Reader(id ID) *Reader { return c.in[id] }

// Writer returns the writer of a channel.
func (c *Conn) Writer(id ID) *Writer { return c.out[id] }

// Sizes returns the channel of terminal sizes that the peer sent. A size that was not received is replaced by a newer one.
func (c *Conn) Sizes() <-chan Size { return c.sizes }

// Resize sends a terminal size.
func (c *Conn) Resize(size Size) error {
	b, err := json.Marshal(size)
	if err != nil {
		return err
	}
	return c.send(append([]byte{byte(resizeID)}, b...))
}

// Header returns the header of the response that accepted the session. It is nil on the side of the server.
func (c *Conn) Header() http.Header { return c.header }

// Done is closed when the connection is finished: by a status, by [Conn.Close], or because it was lost.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection finished: nil after a status, or while it is open. Other errors wrap [ErrLost].
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Status waits for the end of the session, and returns the status that the server sent. Data that was received before the status can be
// read afterwards, too.
func (c *Conn) Status(ctx context.Context) (*Status, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == nil && c.err == nil {
		return nil, errClosed
	}
	return c.status, c.err
}

// Finish ends the session with a status, after all data that was written, and closes the connection. It is for servers. It may block for
// some seconds if the client does not respond.
func (c *Conn) Finish(status Status) error {
	if len(status.Message) > maxStatusText {
		status.Message = status.Message[:maxStatusText]
	}
	b, err := json.Marshal(status)
	if err == nil {
		err = c.send(append([]byte{byte(statusID)}, b...))
	}
	if err == nil {
		c.end(&status, nil)
		_ = c.ws.Close(websocket.StatusNormalClosure, "") // a client may close the connection as soon as it has the status
	}
	c.Close()
	return err
}

// Close closes the connection. Reads and writes in progress fail.
func (c *Conn) Close() {
	c.end(nil, errClosed)
	_ = c.ws.CloseNow()
	c.goroutines.Wait()
}

// end ends the connection, at the first call. Data that was received can still be read.
func (c *Conn) end(status *Status, err error) {
	c.mu.Lock()
	first := !c.ended
	if first {
		c.ended, c.status, c.err = true, status, err
		close(c.done)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	for id := range c.out {
		if c.in[id] != nil {
			c.in[id].finish(err)
		}
		c.out[id].wake()
	}
}

// endError returns the error of operations after the end.
func (c *Conn) endError() error {
	if err := c.Err(); err != nil {
		return err
	}
	return io.ErrClosedPipe
}

// receive handles messages until the connection ends.
func (c *Conn) receive(ctx context.Context) {
	buffer := make([]byte, maxMessage+1)
	for {
		n, err := c.read(ctx, buffer)
		if err == nil {
			c.hear()
			err = c.message(buffer[:n])
		}
		if invalid, ok := errors.AsType[protocolError](err); ok {
			c.end(nil, fmt.Errorf("%w: %w", ErrLost, err))
			_ = c.ws.Close(websocket.StatusProtocolError, string(invalid[:min(len(invalid), 100)]))
		}
		if err != nil {
			c.end(nil, fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

// read reads a message.
func (c *Conn) read(ctx context.Context, buffer []byte) (int, error) {
	kind, r, err := c.ws.Reader(ctx)
	if err != nil {
		return 0, err
	}
	if kind != websocket.MessageBinary {
		return 0, protocolError("messages must be binary")
	}
	// A message that is truncated by the loss of the connection looks complete here. The next read fails.
	n, err := io.ReadFull(r, buffer)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, nil
	}
	if err == nil { // read the end of the message
		_, err = io.Copy(io.Discard, r)
	}
	return n, err
}

func (c *Conn) hear() { c.heard.Store(int64(time.Since(c.start))) }

// send sends a message. If the peer does not receive it in time, the connection ends.
func (c *Conn) send(message []byte) error {
	select {
	case <-c.done:
		return c.endError()
	default:
	}
	ctx, cancel := c.timeout(c.limits.write)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		c.end(nil, fmt.Errorf("%w: the peer received nothing for %v", ErrLost, c.limits.write))
		_ = c.ws.CloseNow()
	})
	defer stop()
	c.writes.Add(1)
	defer c.writes.Add(-1)
	if err := c.ws.Write(context.WithoutCancel(ctx), websocket.MessageBinary, message); err != nil {
		c.end(nil, fmt.Errorf("%w: %w", ErrLost, err))
		_ = c.ws.CloseNow()
		return c.endError()
	}
	return nil
}

// ping ends the connection if the peer does not respond. Only servers send pings: a receiver that answers a ping while its own data is in
// the way waits for the other one to read, and two of them would wait for each other.
func (c *Conn) ping() {
	tick := time.NewTicker(c.limits.ping)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.done:
			return
		}
		if silent := time.Since(c.start) - time.Duration(c.heard.Load()); silent > c.limits.lost && !c.full.Load() {
			c.end(nil, fmt.Errorf("%w: the peer did not respond for %v", ErrLost, c.limits.lost))
			_ = c.ws.CloseNow()
			return
		}
		if c.writes.Load() > 0 {
			continue // the ping would wait for the message, which has its own timeout
		}
		ctx, cancel := c.timeout(c.limits.answer)
		err := c.ws.Ping(ctx)
		cancel()
		switch {
		case err == nil:
			c.hear()
		case !errors.Is(err, context.DeadlineExceeded):
			c.end(nil, fmt.Errorf("%w: %w", ErrLost, err))
			_ = c.ws.CloseNow()
			return
		}
	}
}
