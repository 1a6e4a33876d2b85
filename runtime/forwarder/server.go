package forwarder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// finderTimeout bounds the search for the process that has a port.
const finderTimeout = 2 * time.Second

// server is the worker.
type server struct {
	ctx      context.Context //nolint:containedctx // of the process
	listener *net.UnixListener
	work     sync.WaitGroup // the TCP connections, and the ports that accept them

	mu       sync.Mutex    // serializes requests
	finder   *net.UnixConn // to the first process; nil: processes are not searched
	deaf     bool          // the first process was killed, or an answer can arrive that is that of another question
	left     bool          // another worker has the ports
	pods     *podNetwork   // of the last daemon
	newest   uint64        // the number of the connection that has set ports
	bindings map[binding]*bound
	earlier  map[binding]*os.File // sockets of an earlier worker that are not in use yet
	limits   limits
	share    atomic.Int64 // how many connections or flows a binding may have, by the descriptors of this process
}

// limits are those of connections and flows.
type limits struct {
	udpIdle     time.Duration
	flows       int // of a binding
	connections int // of a binding
	descriptors uint64
}

const (
	// maxConnections bounds the TCP connections of a binding.
	maxConnections = 1 << 14
	// perConnection is the number of descriptors of a TCP connection with a share for all else: two sockets, and two pipes (splice).
	perConnection = 8
)

// binding is a port with one address.
type binding struct {
	Protocol string         `json:"protocol"`
	Addr     netip.AddrPort `json:"addr"`
}

// bound is a binding that is open.
type bound struct {
	owner string
	endpoint
}

// endpoint is a socket of the host.
type endpoint interface {
	// retarget sets the address in a pod. Connections to another one are reset.
	retarget(to target)
	// resize follows a change of the number of connections that the binding may have.
	resize()
	// close closes the socket and resets its connections.
	close()
	// File returns a copy of the descriptor of the socket.
	File() (*os.File, error)
	// leave closes the socket, which another process has. TCP connections stay.
	leave()
}

// target is an address in a pod, and the network in which it is.
type target struct {
	pods *podNetwork
	addr netip.AddrPort
}

func newServer(ctx context.Context) *server {
	s := &server{ctx: ctx, bindings: map[binding]*bound{}, limits: limits{udpIdle, maxFlows, maxConnections, 1 << 10}}
	var l unix.Rlimit // the Go runtime has raised the soft limit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		s.limits.descriptors = l.Cur
	}
	s.divide()
	return s
}

// divide divides the descriptors of this process among the bindings: clients of one pod must not take those of others. The caller holds mu.
func (s *server) divide() {
	all := min(s.limits.descriptors/perConnection, math.MaxInt32)
	s.share.Store(max(1, int64(all)/max(1, int64(len(s.bindings)))))
	for _, b := range s.bindings {
		b.resize()
	}
}

// most returns how many connections or flows a binding may have.
func (s *server) most(limit int) int { return int(min(s.share.Load(), int64(limit))) }

// acceptAll serves all connections until the listener is closed. It numbers them: the kernel returns them in their order.
func (s *server) acceptAll(listener net.Listener) {
	for number := uint64(1); ; number++ {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as without descriptors; connections through host ports go on
			<-time.After(acceptPause)
			continue
		}
		if c, is := conn.(*net.UnixConn); is {
			go s.serve(c, number)
		}
	}
}

// serve answers the requests of a client until it disconnects. The ports stay.
func (s *server) serve(conn *net.UnixConn, number uint64) {
	defer conn.Close()
	namespace, err := s.accept(conn)
	if err != nil {
		return
	}
	defer namespace.Close()
	s.answer(conn, namespace, number, conn)
}

// answer answers requests of a client with a network namespace, until the client disconnects or another worker answers it.
func (s *server) answer(conn *net.UnixConn, namespace *os.File, number uint64, requests io.Reader) {
	pods, err := s.network(namespace)
	in, out := json.NewDecoder(requests), json.NewEncoder(conn)
	if err != nil {
		_ = out.Encode(response{Failure: err.Error()})
		return
	}
	for {
		var raw json.RawMessage // with what another build knows
		var r request
		if in.Decode(&raw) != nil || json.Unmarshal(raw, &r) != nil {
			return
		}
		left, err := s.handOver(conn, namespace, number, r.Program, raw)
		if left {
			return
		}
		answer := s.do(pods, number, r)
		if err != nil {
			answer.ProgramError = err.Error()
		}
		if out.Encode(answer) != nil {
			return
		}
	}
}

// network returns what creates sockets in a network namespace. It is the same one for all daemons, unless they are in other namespaces.
func (s *server) network(namespace *os.File) (*podNetwork, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := namespace.Stat()
	if err != nil {
		return nil, err
	}
	if s.pods != nil && os.SameFile(s.pods.namespace, info) {
		return s.pods, nil
	}
	return newPodNetwork(namespace)
}

// accept reads the first byte of a client, which carries the descriptor of the network namespace of pods. Other users are rejected: the
// file of the socket rejects them too, unless it was made accessible to them.
func (s *server) accept(conn *net.UnixConn) (*os.File, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	ctlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(ctlErr, err); err != nil {
		return nil, err
	}
	if peer.Uid != uint32(os.Geteuid()) {
		return nil, os.ErrPermission
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, io.ErrUnexpectedEOF
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, io.ErrUnexpectedEOF
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "network namespace"), nil
}

// do does a request of a client whose pods are in a network. A client has one connection, so a connection with a lower number than another
// one that has set ports was given up, with requests that waited while no worker ran.
func (s *server) do(pods *podNetwork, number uint64, r request) (answer response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return response{Failure: "another worker has the ports"}
	}
	if r.Check != nil {
		answer.Error = s.check(*r.Check)
		return answer
	}
	if number < s.newest {
		return response{Failure: "a later connection has set the ports"}
	}
	s.pods, s.newest = pods, number
	if err := pods.configure(r.Network); err != nil {
		answer.SourceError = err.Error()
	}
	if r.Owner != "" {
		answer.Error = s.set(r.Owner, r.Ports)
		return answer
	}
	// First what is closed, so that a port can have another owner.
	for b, open := range s.bindings {
		if !slices.Contains(bindings(r.All[open.owner]), b) {
			s.remove(b)
		}
	}
	answer.Errors = map[string]*Error{}
	for owner, ports := range r.All {
		if err := s.set(owner, ports); err != nil {
			answer.Errors[owner] = err
		}
	}
	for b, f := range s.earlier {
		_ = f.Close()
		delete(s.earlier, b)
	}
	return answer
}

// check returns why a port cannot be bound. One that this process has is free: the pod that has it is about to release it, and package
// network knows the ports of pods.
func (s *server) check(p Port) *Error {
	for b := range s.bindings {
		if b.Protocol == p.Protocol && b.Addr.Port() == p.Port {
			return nil
		}
	}
	return s.errorOf(p, Check(p))
}

// errorOf converts an error of a port, and searches for the process that has it.
func (s *server) errorOf(p Port, err error) *Error {
	if err == nil {
		return nil
	}
	e, is := errors.AsType[*Error](err)
	if !is {
		e = &Error{Port: p, Errno: unix.EINVAL}
	}
	if e.Errno == unix.EADDRINUSE {
		found := s.ask(question{Port: p})
		e.PID, e.Process = found.PID, found.Process
	}
	return e
}

// ask asks the first process. The answer is the zero value if there is none. The caller holds mu.
func (s *server) ask(q question) (found owner) {
	if s.finder == nil || s.deaf {
		return owner{}
	}
	if s.finder.SetDeadline(time.Now().Add(finderTimeout)) != nil || json.NewEncoder(s.finder).Encode(q) != nil ||
		json.NewDecoder(s.finder).Decode(&found) != nil {
		s.deaf = true // and stays connected: the first process starts another worker otherwise
		return owner{}
	}
	return found
}

// bindings returns what is bound for the ports of an owner.
func bindings(ports []Forward) (all []binding) {
	for _, f := range ports {
		for _, b := range f.bindings() {
			all = append(all, b.binding)
		}
	}
	return all
}

// wanted is a binding with the address in a pod.
type wanted struct {
	binding
	to netip.AddrPort
}

// bindings returns what is bound for a port: the families in which the pod has an address.
func (f Forward) bindings() (all []wanted) {
	for _, addr := range f.addrs() {
		for _, to := range f.To {
			if to.Is4() == addr.Is4() {
				all = append(all, wanted{binding{f.Protocol, netip.AddrPortFrom(addr, f.Port.Port)}, netip.AddrPortFrom(to, f.ToPort)})
			}
		}
	}
	return all
}

// set opens the ports of an owner, and closes its other ones. After an error, it has those of before.
func (s *server) set(owner string, ports []Forward) *Error {
	var opened []binding
	for _, f := range ports {
		for _, w := range f.bindings() {
			if open := s.bindings[w.binding]; open != nil && open.owner == owner {
				continue
			}
			e, err := s.open(w)
			if lacksFamily(f.Port, err) {
				continue
			}
			if err != nil {
				for _, b := range opened {
					s.remove(b)
				}
				return s.errorOf(f.Port, bindError(f.Port, err))
			}
			s.bindings[w.binding] = &bound{owner, e}
			s.divide()
			opened = append(opened, w.binding)
		}
	}
	kept := bindings(ports)
	for b, open := range s.bindings {
		if open.owner == owner && !slices.Contains(kept, b) {
			s.remove(b)
		}
	}
	for _, f := range ports {
		for _, w := range f.bindings() {
			if open := s.bindings[w.binding]; open != nil {
				open.retarget(target{s.pods, w.to})
			}
		}
	}
	return nil
}

func (s *server) remove(b binding) {
	s.bindings[b].close()
	delete(s.bindings, b)
	s.divide()
}

// open binds a port of the host, or takes the socket of an earlier worker.
func (s *server) open(w wanted) (endpoint, error) {
	earlier := s.earlier[w.binding]
	if earlier != nil {
		defer earlier.Close()
		delete(s.earlier, w.binding)
	}
	connections, flows := s.limits.connections, s.limits.flows
	switch w.Protocol {
	case TCP:
		return openTCP(s.ctx, w.Addr, earlier, target{s.pods, w.to}, &s.work, func() int { return s.most(connections) })
	case UDP:
		return openUDP(s.ctx, w.Addr, earlier, target{s.pods, w.to}, s.limits.udpIdle, func() int { return s.most(flows) })
	}
	return nil, fmt.Errorf("protocol %q: %w", w.Protocol, syscall.EPROTONOSUPPORT)
}

// close closes all ports.
func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.bindings {
		s.remove(b)
	}
}

// networkOf returns the name of a network of package net for an address.
func networkOf(protocol string, a netip.Addr) string {
	name := cmp.Or(map[string]string{UDP: "udp"}[protocol], "tcp")
	if a.Is4() {
		return name + "4"
	}
	return name + "6"
}
