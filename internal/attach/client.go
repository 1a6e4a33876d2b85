package attach

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// WriteTimeout is how long a client may take to read 32 KiB. The container waits for the client meanwhile. A slower client is
	// disconnected.
	WriteTimeout = 5 * time.Second
	// reasonTimeout is how long a client that is disconnected has to read why.
	reasonTimeout = time.Minute
	// stdinCheck is the interval at which input that the container does not read is checked for a client that has disconnected.
	stdinCheck = time.Second
)

// slowClient is why a client is disconnected.
const slowClient = "the client did not read the output in time"

// client is a connection. The lock of the container guards its queue.
type client struct {
	container *Container
	conn      *net.UnixConn
	request   Request
	stdin     *os.File // nil: none, or the container or the client has closed it

	queue  [][]byte
	queued int           // bytes in queue
	last   bool          // no more frames are queued
	filled chan struct{} // holds a token while the queue may have frames
}

func newClient(c *Container, conn *net.UnixConn, r Request) *client {
	return &client{container: c, conn: conn, request: r, filled: make(chan struct{}, 1)}
}

// open opens the standard input, if the client requests it, and adds the client to the container.
func (c *client) open() (err error) {
	in := c.container.o.Stdin
	if c.request.Stdin {
		if c.stdin, err = in.open(); err != nil {
			return err
		}
	}
	err = c.container.add(c)
	if err != nil && c.request.Stdin {
		c.closeStdin(false)
		in.reopen()
	}
	return err
}

func (c *client) wants(k kind) bool {
	return k == kindStdout && c.request.Stdout || k == kindStderr && c.request.Stderr
}

// enqueue queues a frame. A client whose queue is full gets the reason and nothing else.
func (c *client) enqueue(f []byte) {
	if c.last {
		return
	}
	if c.queued > fullQueue {
		c.drop()
		f = frame(kindDisconnected, []byte(slowClient))
		c.last = true
	}
	c.queue = append(c.queue, f)
	c.queued += len(f)
	c.wake()
}

// finish marks the queue as complete.
func (c *client) finish() {
	c.last = true
	c.wake()
}

func (c *client) wake() {
	select {
	case c.filled <- struct{}{}:
	default:
	}
}

// drop empties the queue.
func (c *client) drop() { c.queue, c.queued = nil, 0 }

// next waits for the next frame. It returns nil when the queue is complete or the client has disconnected.
func (c *client) next(gone <-chan struct{}) []byte {
	for {
		f, last := c.take()
		if f != nil || last {
			return f
		}
		select {
		case <-c.filled:
		case <-gone:
			return nil
		}
	}
}

func (c *client) take() (f []byte, last bool) {
	c.container.mu.Lock()
	defer c.container.mu.Unlock()
	if len(c.queue) == 0 {
		return nil, c.last
	}
	f = c.queue[0]
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.queued -= len(f)
	c.container.room.Broadcast()
	return f, false
}

// serve serves the client until it disconnects, or has read the end of the container.
func (c *client) serve() {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.readInput()
	}()
	c.writeOutput(gone)
	c.container.remove(c)
	_ = c.conn.Close()
	<-gone
}

// writeOutput writes the queue to the client. One that does not read in time gets nothing else but the reason, after the rest of the frame
// that was written in part.
func (c *client) writeOutput(gone <-chan struct{}) {
	for f := c.next(gone); f != nil; f = c.next(gone) {
		_ = c.conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
		n, err := c.conn.Write(f)
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.container.remove(c)
			_ = c.conn.SetWriteDeadline(time.Now().Add(reasonTimeout))
			_, _ = c.conn.Write(append(f[n:len(f):len(f)], frame(kindDisconnected, []byte(slowClient))...)) // the client may be gone
		}
		return
	}
}

// readInput handles the frames of the client until it disconnects.
func (c *client) readInput() {
	defer c.closeStdin(true)
	buf := make([]byte, maxPayload)
	for {
		k, payload, err := readFrame(c.conn, buf)
		if err != nil {
			return
		}
		switch k { //nolint:exhaustive // clients send no others
		case kindStdin:
			err = c.writeStdin(payload)
		case kindStdinClosed:
			c.closeStdin(true)
		case kindResize:
			var size Size
			if err = json.Unmarshal(payload, &size); err == nil && c.container.o.Terminal && c.container.o.Resize != nil {
				_ = c.container.o.Resize(size) // fails only if the container has exited
			}
		default:
			return
		}
		if err != nil {
			return
		}
	}
}

// writeStdin writes to the standard input of the container, and waits until the container has read enough. Input for a container that has
// closed its standard input is discarded.
func (c *client) writeStdin(data []byte) error {
	for len(data) > 0 && c.stdin != nil {
		_ = c.stdin.SetWriteDeadline(time.Now().Add(stdinCheck))
		n, err := c.stdin.Write(data)
		data = data[n:]
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if c.hungUp() {
				return net.ErrClosed
			}
		case err != nil:
			c.closeStdin(false)
		}
	}
	return nil
}

// hungUp reports whether the client has closed the connection. Input that it has sent before may be unread.
func (c *client) hungUp() bool {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return true
	}
	hungUp := true
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(poll, 0)
		hungUp = err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return hungUp
}

// closeStdin closes the client's end of the standard input. If the client has no more input, the container may get EOF.
func (c *client) closeStdin(done bool) {
	if c.stdin != nil {
		_ = c.stdin.Close()
		c.stdin = nil
	}
	if done && c.request.Stdin {
		c.request.Stdin = false
		c.container.o.Stdin.clientDone()
	}
}
