package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// maxQueue is how many bytes wait for a client that does not read. Then it is disconnected.
	maxQueue = 8 << 20
	// packetsPerTurn bounds what one client can do before others.
	packetsPerTurn = 16
	// maxConnections is the maximum number of clients.
	maxConnections = 64
	// maxRequests is the maximum number of requests of one client that are in progress.
	maxRequests = 4096
	// backlog is how many connections wait while there is no monitor.
	backlog = 64
)

// connection is a client. The loop owns it.
type connection struct {
	m          *Monitor
	fd         int
	token      token
	queue      [][]byte // packets that the client has not read
	queued     int      // bytes in queue
	closed     bool
	subscribed bool
	requests   int               // in progress
	runs       map[uint64]func() // cancels a command, by its request
}

// listen creates the socket of the monitor.
func listen(dir string) (int, error) {
	path := filepath.Join(dir, Socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("create socket: %w", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = os.Chmod(path, 0o600) // clients cannot connect before listen
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("listen on %s: %w", path, err), unix.Close(fd))
	}
	return fd, nil
}

// accept accepts the connections that have arrived.
func (m *Monitor) accept(listener int) {
	for range packetsPerTurn {
		fd, err := retry(func() (int, error) {
			fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return fd, err
		})
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if err != nil {
			m.pauseAccept(err)
			return
		}
		if err := m.admit(fd); err != nil {
			logf("client refused: %v", err)
			closeAll(fd)
			m.leave()
		}
	}
}

// admit adds a connection of root or of this user.
func (m *Monitor) admit(fd int) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	if peer.Uid != 0 && int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("user %d is not root", peer.Uid)
	}
	if len(m.connections) >= maxConnections {
		return fmt.Errorf("%d clients are connected", len(m.connections))
	}
	c := &connection{m: m, fd: fd, runs: map[uint64]func(){}}
	if c.token, err = m.loop.watch(fd, c.ready); err != nil {
		return err
	}
	m.connections[c] = struct{}{}
	return nil
}

func (c *connection) ready(events uint32) {
	if events&unix.EPOLLOUT != 0 {
		c.flush()
	}
	for range packetsPerTurn {
		if c.closed || !c.receive() {
			return
		}
	}
}

// receive receives a packet. It reports false if there is none.
func (c *connection) receive() bool {
	var control [128]byte
	type received struct{ n, control, flags int }
	buf := c.m.packet[:]
	r, err := retry(func() (received, error) {
		n, oobn, flags, _, err := unix.Recvmsg(c.fd, buf, control[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		return received{n, oobn, flags}, err
	})
	if errors.Is(err, unix.EAGAIN) {
		return false
	}
	var fds []int
	if err == nil {
		fds, err = receivedFiles(control[:r.control])
	}
	if err != nil || r.n == 0 || r.flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(fds) > maxFiles {
		closeAll(fds...)
		c.close()
		return false
	}
	var q request
	if err := json.Unmarshal(buf[:r.n], &q); err != nil {
		closeAll(fds...)
		c.close()
		return false
	}
	c.m.serve(c, q, fds)
	return true
}

// answer answers a request.
func (c *connection) answer(id uint64, body any, err error) {
	c.requests--
	r := response{ID: id}
	if err == nil {
		r.Body, err = json.Marshal(body)
	}
	if err != nil {
		r.Error = asError(err)
	}
	c.send(r)
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return errorf(ClassInternal, "%v", err)
}

// send sends a packet. A client that does not read is disconnected. It does nothing for a connection that was closed.
func (c *connection) send(r response) {
	if c.closed {
		return
	}
	if r.Error != nil && len(r.Error.Message) > maxPacket/8 {
		r.Error.Message = r.Error.Message[:maxPacket/8]
	}
	text, err := json.Marshal(r)
	if err == nil && len(text) > maxPacket {
		text, err = json.Marshal(response{ID: r.ID, Error: errorf(ClassInternal, "answer of %d bytes exceeds %d", len(text), maxPacket)})
	}
	if err != nil {
		logf("encode answer: %v", err)
		c.close()
		return
	}
	if c.queued+len(text) > maxQueue {
		logf("client disconnected: it did not read")
		c.close()
		return
	}
	c.queue = append(c.queue, text)
	c.queued += len(text)
	if len(c.queue) == 1 {
		c.flush()
	}
}

// flush writes what the socket takes.
func (c *connection) flush() {
	for len(c.queue) > 0 && !c.closed {
		err := sendMessage(c.fd, string(c.queue[0]), -1)
		if errors.Is(err, unix.EAGAIN) {
			c.m.loop.change(c.token, unix.EPOLLIN|unix.EPOLLOUT)
			return
		}
		if err != nil {
			c.close()
			return
		}
		c.queued -= len(c.queue[0])
		c.queue[0] = nil
		c.queue = c.queue[1:]
	}
	if !c.closed {
		c.queue = nil
		c.m.loop.change(c.token, unix.EPOLLIN)
	}
}

// close disconnects the client and cancels its commands.
func (c *connection) close() {
	if c.closed {
		return
	}
	c.closed = true
	c.m.loop.unwatch(c.token)
	closeAll(c.fd)
	c.queue = nil
	delete(c.m.connections, c)
	for _, cancel := range c.runs {
		cancel()
	}
	c.m.leave()
}

// emit sends an event to all subscribers.
func (m *Monitor) emit(e Event) {
	m.sequence++
	e.Sequence = m.sequence
	for c := range m.connections {
		if c.subscribed {
			c.send(response{Event: &e})
		}
	}
}
