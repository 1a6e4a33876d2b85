package forwarder

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptPause is the time between two attempts to accept a connection, such as without descriptors.
const acceptPause = 50 * time.Millisecond

// tcpEndpoint accepts connections and copies their bytes, in the kernel (splice).
type tcpEndpoint struct {
	listener *net.TCPListener
	closed   chan struct{}
	all      context.Context //nolint:containedctx // of the worker
	work     *sync.WaitGroup // of all connections of the worker
	most     func() int      // how many connections there may be
	resized  chan struct{}   // receives after a change of open or most

	mu    sync.Mutex
	open  int // connections
	to    target
	ctx   context.Context //nolint:containedctx // of connections to the address in the pod, which end with a reset
	reset context.CancelFunc
}

// openTCP listens on an address, or on a socket of an earlier worker. Work counts the connections.
func openTCP(
	ctx context.Context, addr netip.AddrPort, earlier *os.File, to target, work *sync.WaitGroup, most func() int,
) (endpoint, error) {
	listener, err := listenTCP(ctx, addr, earlier)
	if err != nil {
		return nil, err
	}
	e := &tcpEndpoint{
		listener: listener, closed: make(chan struct{}), to: to, all: ctx, work: work, most: most, resized: make(chan struct{}, 1),
	}
	e.ctx, e.reset = context.WithCancel(ctx)
	work.Go(e.serve)
	return e, nil
}

func listenTCP(ctx context.Context, addr netip.AddrPort, earlier *os.File) (*net.TCPListener, error) {
	var l net.Listener
	var err error
	if earlier != nil {
		l, err = net.FileListener(earlier)
	} else {
		var c net.ListenConfig
		c.SetMultipathTCP(false) // bytes could not be spliced
		l, err = c.Listen(ctx, networkOf(TCP, addr.Addr()), addr.String())
	}
	if err != nil {
		return nil, err
	}
	listener, is := l.(*net.TCPListener)
	if !is {
		return nil, errors.Join(net.ErrClosed, l.Close())
	}
	return listener, nil
}

func (e *tcpEndpoint) retarget(to target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.to.addr != to.addr {
		e.reset()
		e.ctx, e.reset = context.WithCancel(e.all)
	}
	e.to = to
}

func (e *tcpEndpoint) File() (*os.File, error) { return e.listener.File() }

func (e *tcpEndpoint) leave() {
	_ = e.listener.Close()
	close(e.closed)
}

func (e *tcpEndpoint) close() {
	e.leave()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reset()
}

func (e *tcpEndpoint) resize() {
	select {
	case e.resized <- struct{}{}:
	default:
	}
}

// isFull reports whether there are as many connections as there may be. Others wait in the kernel.
func (e *tcpEndpoint) isFull() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open >= e.most()
}

func (e *tcpEndpoint) serve() {
	for {
		for e.isFull() {
			select {
			case <-e.resized:
			case <-e.closed:
				return
			}
		}
		conn, err := e.listener.AcceptTCP()
		switch {
		case err == nil:
			e.mu.Lock()
			e.open++
			ctx, to := e.ctx, e.to
			e.mu.Unlock()
			e.work.Go(func() { e.forward(ctx, conn, to) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			select {
			case <-time.After(acceptPause):
			case <-e.closed:
			}
		}
	}
}

func (e *tcpEndpoint) forward(ctx context.Context, client *net.TCPConn, to target) {
	forward(ctx, client, to)
	e.mu.Lock()
	e.open--
	e.mu.Unlock()
	e.resize()
}

// forward connects a client with a pod until both have closed the connection, or ctx is canceled.
func forward(ctx context.Context, client *net.TCPConn, to target) {
	defer client.Close()
	conn, err := to.pods.dial(ctx, unix.SOCK_STREAM, addrPort(client.RemoteAddr()), to.addr)
	pod, is := conn.(*net.TCPConn)
	if err != nil || !is {
		abort(client)
		return
	}
	defer pod.Close()
	stop := context.AfterFunc(ctx, func() { abort(client, pod) })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { transfer(client, pod) })
	both.Go(func() { transfer(pod, client) })
	both.Wait()
}

// transfer copies what one end sends to the other, and the end of that. After an error, both connections are reset.
func transfer(from, to *net.TCPConn) {
	err := copyAll(to, from)
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		abort(from, to)
	}
}

// copyAll copies until the end of a connection. It waits for bytes by itself: io.Copy has a pipe of 1 MiB for splice(2) meanwhile, and a
// few idle connections would use what the kernel permits a user (fs.pipe-user-pages-soft).
func copyAll(to, from *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for {
		n, err := waiting(raw)
		if err != nil || n == 0 {
			return err
		}
		if _, err := io.CopyN(to, from, int64(n)); err != nil {
			return err
		}
	}
}

// waiting waits for bytes and returns how many have arrived. 0: there are no more.
func waiting(raw syscall.RawConn) (n int, err error) {
	readErr := raw.Read(func(fd uintptr) bool {
		n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		if err == nil && n > 0 {
			return true
		}
		// Not yet, the end, an error, or a byte that is urgent.
		n, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK)
		for errors.Is(err, unix.EINTR) {
			n, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	return n, errors.Join(readErr, err)
}

// abort closes connections with a reset.
func abort(conns ...*net.TCPConn) {
	for _, c := range conns {
		_ = c.SetLinger(0) // it may be closed
		_ = c.Close()
	}
}

// addrPort returns an address of package net without zone; invalid: it is none.
func addrPort(a net.Addr) netip.AddrPort {
	if t, is := a.(*net.TCPAddr); is {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}
