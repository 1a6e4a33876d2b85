package forwarder

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// udpIdle is how long a flow may be idle, as that of a flow in both directions in the kernel (nf_conntrack_udp_timeout_stream).
	udpIdle = 2 * time.Minute
	// maxFlows bounds the flows of a binding. The one that was idle for the longest time is closed for another one.
	maxFlows = 1024
	// maxDatagram is the size of the largest datagram.
	maxDatagram = 1 << 16
)

// buffers are for datagrams. A flow that waits has none.
var buffers = sync.Pool{New: func() any { b := make([]byte, maxDatagram); return &b }}

// udpEndpoint forwards datagrams, with a connected socket for each client.
type udpEndpoint struct {
	ctx  context.Context //nolint:containedctx // of the worker
	conn *net.UDPConn
	is4  bool
	idle time.Duration
	most func() int // how many flows there may be

	mu     sync.Mutex
	to     target
	flows  map[flowKey]*flow
	closed bool // no flow is opened
}

// flowKey is a client and the address of the host that it uses, from which replies are sent.
type flowKey struct {
	client netip.AddrPort
	local  netip.Addr
}

// flow is the socket to the pod for one client.
type flow struct {
	conn net.Conn
	used atomic.Int64 // time of the last datagram in either direction (Unix, in ns)
}

// openUDP binds an address, or takes the socket of an earlier worker.
func openUDP(
	ctx context.Context, addr netip.AddrPort, earlier *os.File, to target, idle time.Duration, most func() int,
) (endpoint, error) {
	conn, err := bindUDP(ctx, addr, earlier)
	if err != nil {
		return nil, err
	}
	e := &udpEndpoint{ctx: ctx, conn: conn, is4: addr.Addr().Is4(), idle: idle, most: most, to: to, flows: map[flowKey]*flow{}}
	go e.serve()
	return e, nil
}

func bindUDP(ctx context.Context, addr netip.AddrPort, earlier *os.File) (*net.UDPConn, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		ctlErr := raw.Control(func(fd uintptr) {
			if addr.Addr().Is4() {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			}
		})
		return errors.Join(ctlErr, err)
	}}
	var l net.PacketConn
	var err error
	if earlier != nil {
		l, err = net.FilePacketConn(earlier)
	} else {
		l, err = c.ListenPacket(ctx, networkOf(UDP, addr.Addr()), addr.String())
	}
	if err != nil {
		return nil, err
	}
	conn, is := l.(*net.UDPConn)
	if !is {
		return nil, errors.Join(net.ErrClosed, l.Close())
	}
	return conn, nil
}

func (e *udpEndpoint) retarget(to target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.to.addr != to.addr {
		e.closeFlows()
	}
	e.to = to
}

func (e *udpEndpoint) resize() {} // the next flow closes others

func (e *udpEndpoint) File() (*os.File, error) { return e.conn.File() }

func (e *udpEndpoint) leave() { e.close() }

func (e *udpEndpoint) close() {
	_ = e.conn.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.closeFlows()
}

// closeFlows closes all flows. The caller holds mu.
func (e *udpEndpoint) closeFlows() {
	for k, f := range e.flows {
		_ = f.conn.Close()
		delete(e.flows, k)
	}
}

// serve forwards datagrams of clients. One that cannot be delivered is lost, as datagrams are.
func (e *udpEndpoint) serve() {
	data, oob := make([]byte, maxDatagram), make([]byte, 128)
	for {
		n, m, _, client, err := e.conn.ReadMsgUDPAddrPort(data, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as an ICMP error of an earlier reply
			continue
		}
		key := flowKey{client, destination(oob[:m])}
		if f := e.flow(key); f != nil {
			f.used.Store(time.Now().UnixNano())
			_, _ = f.conn.Write(data[:n])
		}
	}
}

// destination returns the address of the host to which a datagram was sent, or with which it answers a broadcast; invalid: the kernel does
// not report it.
func destination(oob []byte) netip.Addr {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.Addr{}
	}
	const at4, at6 = 4, 0 // ipi_spec_dst of struct in_pktinfo, ipi6_addr of struct in6_pktinfo
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= at4+4:
			return netip.AddrFrom4([4]byte(m.Data[at4:]))
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= at6+16:
			return netip.AddrFrom16([16]byte(m.Data[at6:]))
		}
	}
	return netip.Addr{}
}

// source returns the control message that sends a datagram from an address of the host.
func (e *udpEndpoint) source(local netip.Addr) []byte {
	switch {
	case !local.IsValid():
		return nil
	case e.is4:
		return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: local.As4()})
	}
	return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: local.As16()})
}

// flow returns the flow of a client, which it opens if there is none; nil: it cannot.
func (e *udpEndpoint) flow(key flowKey) *flow {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.flows[key]; f != nil || e.closed {
		return f
	}
	for most := e.most(); len(e.flows) >= most; {
		e.closeOldest()
	}
	client := netip.AddrPortFrom(key.client.Addr().WithZone(""), key.client.Port())
	conn, err := e.to.pods.dial(e.ctx, unix.SOCK_DGRAM, client, e.to.addr) // does not wait
	if err != nil {
		return nil
	}
	f := &flow{conn: conn}
	f.used.Store(time.Now().UnixNano())
	e.flows[key] = f
	go e.reply(key, f)
	return f
}

// closeOldest closes the flow that was idle for the longest time. The caller holds mu.
func (e *udpEndpoint) closeOldest() {
	var oldest flowKey
	for k, f := range e.flows {
		if other := e.flows[oldest]; other == nil || f.used.Load() < other.used.Load() {
			oldest = k
		}
	}
	_ = e.flows[oldest].conn.Close()
	delete(e.flows, oldest)
}

// reply sends the replies of a pod to a client until the flow is idle or closed.
func (e *udpEndpoint) reply(key flowKey, f *flow) {
	defer e.forget(key, f)
	c, is := f.conn.(syscall.Conn)
	if !is {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	oob := e.source(key.local)
	for {
		left := e.idle - time.Since(time.Unix(0, f.used.Load()))
		if left <= 0 || f.conn.SetReadDeadline(time.Now().Add(left)) != nil {
			return
		}
		err := raw.Read(func(fd uintptr) bool { return e.relay(int(fd), key, oob, f) })
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// relay sends a datagram from a socket to a pod to the client. It is false if the socket has none.
func (e *udpEndpoint) relay(fd int, key flowKey, oob []byte, f *flow) bool {
	b, is := buffers.Get().(*[]byte)
	if !is {
		return true
	}
	defer buffers.Put(b)
	n, _, err := unix.Recvfrom(fd, *b, 0)
	if errors.Is(err, unix.EAGAIN) {
		return false
	}
	if err == nil { // else the pod has no such port, or not yet
		f.used.Store(time.Now().UnixNano())
		_, _, _ = e.conn.WriteMsgUDPAddrPort((*b)[:n], oob, key.client)
	}
	return true
}

// forget closes a flow and removes it, unless it was replaced.
func (e *udpEndpoint) forget(key flowKey, f *flow) {
	_ = f.conn.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.flows[key] == f {
		delete(e.flows, key)
	}
}
