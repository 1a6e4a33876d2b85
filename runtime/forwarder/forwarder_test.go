package forwarder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain runs this program as a forwarder if it is one.
func TestMain(m *testing.M) {
	if Invoked(os.Args) {
		os.Exit(Main(context.Background(), os.Args))
	}
	os.Exit(m.Run())
}

const (
	ownNetwork = "/proc/self/ns/net"
	// limit bounds what a test waits for.
	limit = 30 * time.Second
)

// await waits until a condition is met.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(limit)
	defer tick.Stop()
	defer late.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("not met: %s", what)
		}
	}
}

func TestInvoked(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{Args("/usr/libexec/podstead/podstead-monitor", "/run/ports.sock"), true},
		{[]string{"podstead-monitor", "forwarder", "/run/ports.sock", "worker"}, true},
		{[]string{"podstead-monitor", "forwarder", "/run/ports.sock", "other"}, false},
		{[]string{"podstead-monitor", "forwarder"}, false},
		{[]string{"podstead-monitor", "keeper", "/run/ports.sock"}, false},
		{[]string{"podstead", "forwarder", "/run/ports.sock"}, false},
		{nil, false},
	} {
		if got := Invoked(test.args); got != test.want {
			t.Errorf("%q: %v", test.args, got)
		}
	}
}

// newIdleServer returns a worker that does not accept connections, a client, and the listener.
func newIdleServer(t *testing.T) (*server, *Client, *net.UnixListener) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t.Context())
	c := NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		c.Close()
		_ = l.Close()
		s.close()
	})
	return s, c, l
}

// newTestServer runs a worker in this process, and returns it with a client.
func newTestServer(t *testing.T) (*server, *Client) {
	t.Helper()
	s, c, l := newIdleServer(t)
	go s.acceptAll(l)
	return s, c
}

// pod is a server that answers with its name and what it receives, over TCP after each line and over UDP after each datagram.
func pod(t *testing.T, name string) (to netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	to = addrPort(l.Addr())
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewScanner(conn)
				for in.Scan() {
					_, _ = fmt.Fprintf(conn, "%s: %s\n", name, in.Text())
				}
				_, _ = fmt.Fprintf(conn, "%s: end\n", name)
			}()
		}
	}()
	go func() {
		b := make([]byte, maxDatagram)
		for {
			n, from, err := u.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = u.WriteToUDPAddrPort(append([]byte(name+": "), b[:n]...), from)
		}
	}()
	return to
}

// freePort returns a port that no process uses.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return addrPort(l.Addr()).Port()
}

// forwardTo returns a port of the loopback that is forwarded to an address.
func forwardTo(protocol string, port uint16, to netip.AddrPort) Forward {
	return Forward{
		Port: Port{Protocol: protocol, Addr: netip.MustParseAddr("127.0.0.1"), Port: port},
		To:   []netip.Addr{to.Addr()}, ToPort: to.Port(),
	}
}

func dialPort(t *testing.T, f Forward) net.Conn {
	t.Helper()
	conn, err := net.Dial(networkOf(f.Protocol, f.Addr), netip.AddrPortFrom(f.Addr, f.Port.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// answer sends a line and returns the next one.
func answerOf(conn net.Conn) (string, error) {
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// TestTCP tests that connections are forwarded in both directions until each end is closed, that others go on when the ports of a pod are
// set again, and that they are reset when the pod has another address or the port is closed.
func TestTCP(t *testing.T) {
	_, c := newTestServer(t)
	first, second := pod(t, "first"), pod(t, "second")
	f := forwardTo(TCP, freePort(t), first)
	set := func(ports ...Forward) {
		t.Helper()
		if err := c.Set(t.Context(), "u", Network{}, ports); err != nil {
			t.Fatal(err)
		}
	}
	set(f)
	conn := dialPort(t, f)
	if got, err := answerOf(conn); err != nil || got != "first: hello" {
		t.Fatalf("%q, %v", got, err)
	}
	set(f)
	if got, err := answerOf(conn); err != nil || got != "first: hello" {
		t.Errorf("after the ports were set again: %q, %v", got, err)
	}
	closing := dialPort(t, f)
	if tcp, is := closing.(*net.TCPConn); !is || tcp.CloseWrite() != nil {
		t.Fatal("not closed")
	}
	if got, err := io.ReadAll(closing); err != nil || string(got) != "first: end\n" {
		t.Errorf("after the end of the client: %q, %v", got, err)
	}
	set(forwardTo(TCP, f.Port.Port, second))
	if got, err := answerOf(conn); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("a connection to the address of before: %q, %v", got, err)
	}
	conn = dialPort(t, f)
	if got, err := answerOf(conn); err != nil || got != "second: hello" {
		t.Errorf("%q, %v", got, err)
	}
	set()
	if got, err := answerOf(conn); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("a connection to a closed port: %q, %v", got, err)
	}
	if _, err := net.Dial("tcp4", conn.RemoteAddr().String()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a closed port: %v", err)
	}
}

// TestIdlePipes tests that connections that wait have no pipes, which the kernel limits for each user.
func TestIdlePipes(t *testing.T) {
	pipes := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			link, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name())) // it may be closed
			if strings.HasPrefix(link, "pipe:") {
				n++
			}
		}
		return n
	}
	_, c := newTestServer(t)
	f := forwardTo(TCP, freePort(t), pod(t, "pod"))
	if err := c.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil {
		t.Fatal(err)
	}
	before := pipes()
	const connections = 20
	for range connections {
		if got, err := answerOf(dialPort(t, f)); err != nil || got != "pod: hello" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	await(t, "pipes are closed", func() bool {
		runtime.GC() // closes those that are kept for the next bytes
		return pipes() < before+connections
	})
}

// TestConnectionLimit tests that connections through one port leave descriptors to the other ports, and that further ones wait until others
// are closed, or there are fewer ports.
func TestConnectionLimit(t *testing.T) {
	s, c := newTestServer(t)
	s.limits.descriptors = 4 * perConnection
	to := pod(t, "pod")
	a, b := forwardTo(TCP, freePort(t), to), forwardTo(TCP, freePort(t), to)
	for owner, f := range map[string]Forward{"a": a, "b": b} {
		if err := c.Set(t.Context(), owner, Network{}, []Forward{f}); err != nil {
			t.Fatal(err)
		}
	}
	answers := func(conn net.Conn) {
		t.Helper()
		if got, err := answerOf(conn); err != nil || got != "pod: hello" {
			t.Errorf("%q, %v", got, err)
		}
	}
	first := dialPort(t, a)
	answers(first)
	answers(dialPort(t, a))
	third, fourth, fifth := dialPort(t, a), dialPort(t, a), dialPort(t, a)
	waits := func(conn net.Conn) {
		t.Helper()
		if err := conn.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if got, err := answerOf(conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q, %v, want none yet", got, err)
		}
		if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
	}
	waits(third)
	answers(dialPort(t, b))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	answers(third)
	waits(fourth)
	if err := c.Set(t.Context(), "b", Network{}, nil); err != nil {
		t.Fatal(err)
	}
	answers(fourth)
	answers(fifth)
}

// TestNoServer tests that the client is disconnected if nothing listens in the pod.
func TestNoServer(t *testing.T) {
	_, c := newTestServer(t)
	from, none := freePort(t), freePort(t)
	for none == from {
		none = freePort(t)
	}
	f := forwardTo(TCP, from, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), none))
	if err := c.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp4", netip.AddrPortFrom(f.Addr, f.Port.Port).String())
	if errors.Is(err, unix.ECONNRESET) {
		return // before this process noticed that it was connected
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%q, %v", got, err)
	}
}

// flows returns the number of UDP flows.
func (s *server) flows() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bindings {
		if e, is := b.endpoint.(*udpEndpoint); is {
			e.mu.Lock()
			n += len(e.flows)
			e.mu.Unlock()
		}
	}
	return n
}

// TestUDP tests that replies reach each client from the address that it has used, and that flows are bounded and closed.
func TestUDP(t *testing.T) {
	s, c := newTestServer(t)
	s.limits = limits{time.Hour, 2, 1, 1 << 10}
	to := pod(t, "pod")
	every := forwardTo(UDP, freePort(t), to)
	every.Addr = netip.IPv4Unspecified()
	if err := c.Set(t.Context(), "u", Network{}, []Forward{every}); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"127.0.0.1", "127.0.0.7", "127.0.0.1"} {
		asked := every
		asked.Addr = netip.MustParseAddr(address)
		conn := dialPort(t, asked) // connected: it receives replies of this address only
		for range 2 {
			if got, err := answerOf(conn); err != nil || got != "pod: hello" {
				t.Errorf("%s: %q, %v", address, got, err)
			}
		}
	}
	if n := s.flows(); n != 2 {
		t.Errorf("%d flows, want at most 2", n)
	}
	if err := c.Set(t.Context(), "u", Network{}, nil); err != nil || s.flows() != 0 {
		t.Errorf("flows of a closed port: %d, %v", s.flows(), err)
	}
	s.mu.Lock()
	s.limits.udpIdle = 2 * time.Second // an answer takes less, also on a loaded host
	s.mu.Unlock()
	short := forwardTo(UDP, freePort(t), to)
	if err := c.Set(t.Context(), "u", Network{}, []Forward{short}); err != nil {
		t.Fatal(err)
	}
	conn := dialPort(t, short)
	if got, err := answerOf(conn); err != nil || got != "pod: hello" {
		t.Errorf("%q, %v", got, err)
	}
	await(t, "an idle flow is closed", func() bool { return s.flows() == 0 })
	if got, err := answerOf(conn); err != nil || got != "pod: hello" {
		t.Errorf("after its flow was closed: %q, %v", got, err)
	}
}

// TestBroadcast tests that a client that sends to a broadcast address gets replies.
func TestBroadcast(t *testing.T) {
	_, c := newTestServer(t)
	f := forwardTo(UDP, freePort(t), pod(t, "pod"))
	f.Addr = netip.IPv4Unspecified()
	if err := c.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenUDP("udp4", nil) // package net permits broadcasts
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	to := netip.AddrPortFrom(netip.MustParseAddr("127.255.255.255"), f.Port.Port)
	if _, err := conn.WriteToUDPAddrPort([]byte("hello"), to); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, maxDatagram)
	if n, from, err := conn.ReadFromUDPAddrPort(b); err != nil || string(b[:n]) != "pod: hello" || from.Addr().String() != "127.0.0.1" {
		t.Errorf("%q of %s, %v", b[:n], from, err)
	}
}

// TestClosedFlow tests that a datagram that was received before its port was closed opens no flow.
func TestClosedFlow(t *testing.T) {
	n, err := newPodNetwork(open(t, ownNetwork))
	if err != nil {
		t.Fatal(err)
	}
	e, err := openUDP(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), nil, target{n, pod(t, "pod")}, udpIdle,
		func() int { return maxFlows })
	if err != nil {
		t.Fatal(err)
	}
	u, is := e.(*udpEndpoint)
	if !is {
		t.Fatalf("%T", e)
	}
	e.close()
	key := flowKey{netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddr("127.0.0.1")}
	if f := u.flow(key); f != nil || len(u.flows) > 0 {
		t.Errorf("flows of a closed port: %v", u.flows)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestErrors tests the errors of ports, that a pod then has the ports of before, and that a port has one owner.
func TestErrors(t *testing.T) {
	s, c := newTestServer(t)
	to := pod(t, "pod")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	own, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	go new(first).answer(own)
	conn, err := net.FileConn(theirs)
	if err != nil {
		t.Fatal(err)
	}
	finder, isUnix := conn.(*net.UnixConn)
	if !isUnix {
		t.Fatalf("%T", conn)
	}
	s.finder = finder
	taken := forwardTo(TCP, addrPort(busy.Addr()).Port(), to)
	e, is := errors.AsType[*Error](c.Check(t.Context(), taken.Port))
	if !is || e.Errno != unix.EADDRINUSE || e.PID != os.Getpid() || e.Process == "" || e.Port != taken.Port {
		t.Errorf("a port of this process: %+v", e)
	}
	away := forwardTo(UDP, freePort(t), to)
	away.Addr = netip.MustParseAddr("192.0.2.9")
	if err := c.Check(t.Context(), away.Port); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("an address of another host: %v", err)
	}
	free := forwardTo(TCP, freePort(t), to)
	if err := c.Check(t.Context(), free.Port); err != nil {
		t.Error(err)
	}
	if err := c.Set(t.Context(), "a", Network{}, []Forward{free, taken}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("one of two ports is in use: %v", err)
	}
	if err := Check(free.Port); err != nil {
		t.Errorf("the other port is open: %v", err)
	}
	for _, owner := range []string{"a", "b"} {
		err := c.Set(t.Context(), owner, Network{}, []Forward{free})
		if (err == nil) != (owner == "a") || err != nil && !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("owner %s: %v", owner, err)
		}
	}
	if err := c.Replace(t.Context(), Network{}, map[string][]Forward{"b": {free}}); err != nil {
		t.Errorf("the port has another owner: %v", err)
	}
	if got, err := answerOf(dialPort(t, free)); err != nil || got != "pod: hello" {
		t.Errorf("%q, %v", got, err)
	}
	sctp := free
	sctp.Protocol = "SCTP"
	if err := c.Set(t.Context(), "c", Network{}, []Forward{sctp}); !errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Errorf("SCTP: %v", err)
	}
}

// TestAccept tests that a client that sends no network namespace is disconnected.
func TestAccept(t *testing.T) {
	_, c := newTestServer(t)
	conn, err := net.Dial("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); len(text) > 0 || err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("answer %q, %v", text, err)
	}
}

// TestSources tests which clients keep their address.
func TestSources(t *testing.T) {
	n := &podNetwork{}
	n.config.Store(&Network{Mark: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/24")}})
	to4, to6 := netip.MustParseAddrPort("10.77.0.2:80"), netip.MustParseAddrPort("[fd00::2]:80")
	for client, kept := range map[string]bool{
		"192.0.2.1:4000": true, "[2001:db8::1]:4000": true, "127.0.0.1:4000": false, "[::1]:4000": false, "10.77.0.9:4000": false,
		"[fe80::1]:4000": false, "169.254.1.2:4000": false,
	} {
		from, to := netip.MustParseAddrPort(client), to6
		if from.Addr().Is4() {
			to = to4
		}
		all := n.sources(from, to)
		if got := all[0] == from && len(all) == 2; got != kept || !kept && all[0].IsValid() {
			t.Errorf("%s: sources %v", client, all)
		}
	}
	n.config.Store(&Network{})
	if all := n.sources(netip.MustParseAddrPort("192.0.2.1:4000"), to4); len(all) != 1 || all[0].IsValid() {
		t.Errorf("without a mark: %v", all)
	}
}

// startForwarder starts the processes of a forwarder and returns the socket.
func startForwarder(t *testing.T) (socket string, first *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "ports.sock")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reports, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reports.Close()
	user, err := os.Open("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	first = exec.Command(self)
	first.Args, first.ExtraFiles = Args(filepath.Join(dir, program), socket), []*os.File{user, report}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	_ = report.Close()
	t.Cleanup(func() {
		_ = first.Process.Kill()
		_ = first.Wait()
		for _, pid := range Processes(socket) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	if text, err := io.ReadAll(reports); err != nil || string(text) != Ready {
		t.Fatalf("report %q, %v", text, err)
	}
	return socket, first
}

// workerOf returns the worker of a forwarder whose first process has an ID; 0: there is none.
func workerOf(socket string, first int) int {
	for _, pid := range Processes(socket) {
		if pid != first {
			return pid
		}
	}
	return 0
}

// TestRestored tests that ports are open again when the worker was killed, also if another process had them meanwhile, and that the worker
// goes on without the first process and without a client.
func TestRestored(t *testing.T) {
	socket, first := startForwarder(t)
	to := pod(t, "pod")
	f := forwardTo(TCP, freePort(t), to)
	c := NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	defer func() { c.Close() }()
	if err := c.Replace(t.Context(), Network{}, nil); err != nil || workerOf(socket, first.Process.Pid) != 0 {
		t.Errorf("a worker without ports: %v", err)
	}
	if err := c.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil {
		t.Fatal(err)
	}
	conn := dialPort(t, f)
	if got, err := answerOf(conn); err != nil || got != "pod: hello" {
		t.Fatalf("%q, %v", got, err)
	}
	c.Close()
	c = NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	if err := c.Replace(t.Context(), Network{}, map[string][]Forward{"u": {f}}); err != nil {
		t.Fatal(err)
	}
	if got, err := answerOf(conn); err != nil || got != "pod: hello" {
		t.Errorf("with another client: %q, %v", got, err)
	}

	// Another process has the port before the client connects again: that is at the earliest after firstRetry.
	c.sem <- struct{}{}
	killed := workerOf(socket, first.Process.Pid)
	if err := unix.Kill(killed, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the port is free", func() bool { return Check(f.Port) == nil })
	thief, err := net.Listen("tcp4", netip.AddrPortFrom(f.Addr, f.Port.Port).String())
	if err != nil {
		t.Fatal(err)
	}
	c.release()
	await(t, "another worker runs", func() bool { w := workerOf(socket, first.Process.Pid); return w != 0 && w != killed })
	if err := thief.Close(); err != nil {
		t.Fatal(err)
	}
	answers := func() bool {
		conn, err := net.Dial("tcp4", thief.Addr().String())
		if err != nil {
			return false
		}
		defer conn.Close()
		got, err := answerOf(conn)
		return err == nil && got == "pod: hello"
	}
	await(t, "the port is open again", answers)
	if err := unix.Kill(workerOf(socket, first.Process.Pid), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil { // it may not know yet that the worker was killed
		t.Errorf("after the worker was killed: %v", err)
	}
	await(t, "the port is open again", answers)

	if err := errors.Join(first.Process.Kill(), ignoreExit(first.Wait())); err != nil {
		t.Fatal(err)
	}
	if !answers() {
		t.Error("the worker does not forward alone")
	}
	other := forwardTo(TCP, freePort(t), to)
	if err := c.Set(t.Context(), "other", Network{}, []Forward{other}); err != nil {
		t.Errorf("the worker takes no port alone: %v", err)
	}
	if err := unix.Kill(workerOf(socket, 0), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "no process runs", func() bool { return Check(f.Port) == nil })
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	third := forwardTo(TCP, freePort(t), to)
	if err := c.Set(ctx, "third", Network{}, []Forward{third}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no process runs: %v", err)
	}
	if err := c.Set(ctx, "other", Network{}, nil); err != nil {
		t.Errorf("ports of no process are closed: %v", err)
	}
}

// ignoreExit returns an error, unless it is that of a process that was killed.
func ignoreExit(err error) error {
	if _, is := errors.AsType[*exec.ExitError](err); is {
		return nil
	}
	return err
}

// TestStale tests that a worker rejects the ports of a connection that waited and was given up, if a later one has set ports.
func TestStale(t *testing.T) {
	s, c, l := newIdleServer(t)
	to := pod(t, "pod")
	before, now := forwardTo(TCP, freePort(t), to), forwardTo(TCP, freePort(t), to)
	conn, err := c.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(conn).Encode(request{All: map[string][]Forward{"before": {before}}}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	stale, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- c.Replace(t.Context(), Network{}, map[string][]Forward{"now": {now}}) }()
	live, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	go s.serve(live, 2)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.serve(stale, 1)
	if err := Check(before.Port); err != nil {
		t.Errorf("the port of a stale request: %v", err)
	}
	if got, err := answerOf(dialPort(t, now)); err != nil || got != "pod: hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestGivenUp tests that the ports of a request that was given up are closed when the worker does it later: if the pod is removed, and
// without another request.
func TestGivenUp(t *testing.T) {
	for _, removed := range []bool{true, false} {
		t.Run(fmt.Sprintf("removed %v", removed), func(t *testing.T) {
			s, c, l := newIdleServer(t)
			f := forwardTo(TCP, freePort(t), pod(t, "pod"))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // enough to send the request
			defer cancel()
			if err := c.Set(ctx, "u", Network{}, []Forward{f}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			conn, err := l.AcceptUnix()
			if err != nil {
				t.Fatal(err)
			}
			s.serve(conn, 1)
			go s.acceptAll(l)
			if removed {
				if err := c.Set(t.Context(), "u", Network{}, nil); err != nil {
					t.Fatal(err)
				}
				if err := Check(f.Port); err != nil {
					t.Error(err)
				}
			}
			await(t, "the port is closed", func() bool { return Check(f.Port) == nil })
		})
	}
}

// TestWaiting tests that a request of one pod delays others only as long as these wish, and not those without ports.
func TestWaiting(t *testing.T) {
	_, c, _ := newIdleServer(t)
	f := forwardTo(TCP, freePort(t), pod(t, "pod"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Replace(ctx, Network{}, map[string][]Forward{"u": {f}}) }()
	await(t, "a request is sent", func() bool { return len(c.sem) > 0 && !c.needsNothing("u") })
	if err := c.Set(t.Context(), "without ports", Network{}, nil); err != nil {
		t.Error(err)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	for what, err := range map[string]error{
		"set": c.Set(short, "other", Network{}, []Forward{f}), "check": c.Check(short, f.Port), "replace": c.Replace(short, Network{}, nil),
	} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	select {
	case err := <-done:
		t.Errorf("the first request was answered: %v", err)
	default:
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestEarlierDaemon tests that a daemon without ports closes those of the daemon before, which was killed, and starts no worker for that.
func TestEarlierDaemon(t *testing.T) {
	socket, first := startForwarder(t)
	f := forwardTo(TCP, freePort(t), pod(t, "pod"))
	before := NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	if err := before.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil {
		t.Fatal(err)
	}
	before.Close()
	c := NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	defer c.Close()
	if err := errors.Join(c.Replace(t.Context(), Network{}, nil), Check(f.Port)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(first.Process.Kill(), ignoreExit(first.Wait())); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(workerOf(socket, 0), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "no process runs", func() bool { return len(Processes(socket)) == 0 })
	last := NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	defer last.Close()
	if err := last.Replace(t.Context(), Network{}, nil); err != nil {
		t.Errorf("no process runs: %v", err)
	}
}

// TestShort tests that the first process starts a worker later if it has no descriptors for that.
func TestShort(t *testing.T) {
	socket, first := startForwarder(t)
	f := forwardTo(TCP, freePort(t), pod(t, "pod"))
	c := NewClient(t.Context(), socket, ownNetwork, slog.New(slog.DiscardHandler))
	defer c.Close()
	if err := unix.Prlimit(first.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: 1 << 10}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Set(ctx, "u", Network{}, []Forward{f}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without descriptors: %v", err)
	}
	if err := unix.Prlimit(first.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 10}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), "u", Network{}, []Forward{f}); err != nil {
		t.Fatal(err)
	}
	if got, err := answerOf(dialPort(t, f)); err != nil || got != "pod: hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSourceWarning tests that it is logged once that the kernel does not permit to keep sources.
func TestSourceWarning(t *testing.T) {
	var log strings.Builder
	c := &Client{log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, reason := range []string{"", "not permitted", "not permitted"} {
		c.warn(reason)
	}
	if n := strings.Count(log.String(), "not permitted"); n != 1 {
		t.Errorf("%d warnings, want 1: %s", n, log.String())
	}
}
