package forwarder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout bounds a connection to a pod.
const dialTimeout = 30 * time.Second

// podNetwork creates sockets in the network namespace of pods. It is safe for concurrent use, and exists as long as the process.
type podNetwork struct {
	namespace os.FileInfo
	calls     chan func()
	config    atomic.Pointer[Network]
}

// newPodNetwork starts a thread in a network namespace.
func newPodNetwork(namespace *os.File) (*podNetwork, error) {
	info, err := namespace.Stat()
	if err != nil {
		return nil, err
	}
	n := &podNetwork{namespace: info, calls: make(chan func())}
	n.config.Store(&Network{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := enter(int(namespace.Fd()), info)
		started <- err
		if err != nil {
			return
		}
		for call := range n.calls {
			call()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("enter the network namespace of pods: %w", err)
	}
	return n, nil
}

// enter moves the calling thread to a network namespace, unless it is there: that takes privileges.
func enter(fd int, namespace os.FileInfo) error {
	own, err := os.Stat("/proc/thread-self/ns/net")
	if err != nil || os.SameFile(own, namespace) {
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

// configure sets how sources are kept. The error is why the kernel does not permit to keep them; they are not kept then.
func (n *podNetwork) configure(c Network) error {
	var err error
	if c.Mark != 0 {
		var fd int
		if fd, err = n.socket(unix.AF_INET, unix.SOCK_STREAM); err == nil {
			err = errors.Join(setSource(fd, unix.AF_INET, c.Mark), unix.Close(fd))
		}
	}
	if err != nil {
		c.Mark = 0
	}
	n.config.Store(&c)
	return err
}

// socket creates a socket that does not block in the network namespace.
func (n *podNetwork) socket(family, kind int) (fd int, err error) {
	done := make(chan struct{})
	n.calls <- func() {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		close(done)
	}
	<-done
	return fd, err
}

// setSource permits any source address for a socket, and marks its packets: package network routes the replies by that mark.
func setSource(fd, family, mark int) error {
	var err error
	if family == unix.AF_INET {
		err = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	} else {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark)
	}
	return err
}

// sources returns the sources of a connection for a client, in order of preference. The zero value is the address of the gateway. A client
// on the loopback of the host has that one: pods would send the replies to themselves. So has one with an address that needs the link, and
// one with an address of the other family.
func (n *podNetwork) sources(client, to netip.AddrPort) []netip.AddrPort {
	c, a := n.config.Load(), client.Addr()
	if c.Mark == 0 || a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.Is4() != to.Addr().Is4() ||
		slices.ContainsFunc(c.Subnets, func(s netip.Prefix) bool { return s.Contains(a) }) {
		return []netip.AddrPort{{}}
	}
	return []netip.AddrPort{client, netip.AddrPortFrom(a, 0)} // the second one if the port is in use by another connection
}

// dial connects to an address in a pod for a client.
func (n *podNetwork) dial(ctx context.Context, kind int, client, to netip.AddrPort) (conn net.Conn, err error) {
	for _, from := range n.sources(client, to) {
		conn, err = n.dialFrom(ctx, kind, from, to)
		if !errors.Is(err, unix.EADDRINUSE) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			break
		}
	}
	return conn, err
}

func (n *podNetwork) dialFrom(ctx context.Context, kind int, from, to netip.AddrPort) (net.Conn, error) {
	family := unix.AF_INET6
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := n.socket(family, kind)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket to pod")
	defer f.Close()
	if from.IsValid() {
		err = setSource(fd, family, n.config.Load().Mark)
		if err == nil && kind == unix.SOCK_STREAM { // the port of a connection that was closed recently
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}
		if err == nil {
			err = unix.Bind(fd, sockaddr(from))
		}
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, sockaddr(to)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return nil, err
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	if err := connected(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// connected waits until a socket is connected.
func connected(ctx context.Context, conn net.Conn) error {
	c, is := conn.(syscall.Conn)
	if !is {
		return syscall.ENOTSOCK
	}
	raw, err := c.SyscallConn()
	if err == nil {
		err = conn.SetWriteDeadline(time.Now().Add(dialTimeout))
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) }) // the wait ends
	var failed error
	err = raw.Write(func(fd uintptr) (done bool) {
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && number != 0 {
			err = syscall.Errno(number)
		}
		if err == nil {
			_, err = unix.Getpeername(int(fd))
		}
		failed = err
		return !errors.Is(err, unix.ENOTCONN)
	})
	if !stop() {
		return context.Cause(ctx)
	}
	return errors.Join(err, failed, conn.SetWriteDeadline(time.Time{}))
}
