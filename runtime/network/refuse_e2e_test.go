//go:build e2e

package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// Where no pod can answer on a host port, connections are refused at once: on [::1], on ports on which the pod does not
// listen, and at each step of Setup and Teardown.
func TestHostPortRefused(t *testing.T) {
	for _, bridgeNetfilter := range []string{"0", "1"} {
		t.Run("bridge-nf-call="+bridgeNetfilter, func(t *testing.T) {
			w := newWorld(t)
			w.setBridgeNetfilter(bridgeNetfilter)
			other := w.pod("other")
			gateway := gatewaysOf(w.subnets)[0].String()
			refused := func(when string) {
				for _, c := range []struct{ from, path, host string }{
					{"host", w.host, "127.0.0.1"},
					{"host", w.host, "::1"},
					{"host", w.host, host4},
					{"host", w.host, host6},
					{"outside", w.outside, host4},
					{"outside", w.outside, host6},
					{"another pod", other.NetnsPath, gateway},
				} {
					what := "from " + c.from + " " + when
					wantRefused(t, what, c.path, "tcp", net.JoinHostPort(c.host, "8080"))
					wantRefused(t, what, c.path, "udp", net.JoinHostPort(c.host, "5353"))
				}
			}
			w.fault = func(step string) error {
				if step != "remove link" { // in a goroutine of its own
					refused("before " + step)
				}
				return nil
			}
			w.pod("web", tcp(8080, 80), Port{HostPort: 5353, ContainerPort: 53, Protocol: spec.ProtocolUDP})
			refused("after Setup")
			check(t, w.Teardown(t.Context(), "web"))
			refused("after Teardown")
		})
	}
}

// After Teardown, open connections to a host port are reset, and UDP packets of old flows are rejected, both before and
// after the removal of the pod's link.
func TestConnectionsToRemovedPod(t *testing.T) {
	for _, bridgeNetfilter := range []string{"0", "1"} {
		for _, linkRemoved := range []bool{false, true} {
			t.Run(fmt.Sprintf("bridge-nf-call=%s/link removed=%v", bridgeNetfilter, linkRemoved), func(t *testing.T) {
				w := newWorld(t)
				w.setBridgeNetfilter(bridgeNetfilter)
				other := w.pod("other")
				web := w.pod("web", tcp(8080, 80), Port{HostPort: 5353, ContainerPort: 53, Protocol: spec.ProtocolUDP})
				hold(t, web.NetnsPath, ":80")
				serve(t, web.NetnsPath, "web", "udp", ":53")
				var clients []net.Conn
				for _, c := range []struct{ path, host string }{
					{w.host, "127.0.0.1"},
					{w.host, host4},
					{w.host, host6},
					{w.outside, host4},
					{w.outside, host6},
					{other.NetnsPath, gatewaysOf(w.subnets)[0].String()},
				} {
					if c.path == other.NetnsPath && bridgeNetfilter == "1" {
						continue // the kernel does not translate the addresses of a reset on the bridge (nf_send_reset)
					}
					for _, a := range []struct{ network, port string }{{"tcp", "8080"}, {"udp", "5353"}} {
						clients = append(clients, dial(t, c.path, a.network, net.JoinHostPort(c.host, a.port)))
					}
				}
				unblock := make(chan struct{})
				w.fault = func(step string) error {
					if step == "remove link" {
						<-unblock
					}
					return nil
				}
				if linkRemoved {
					close(unblock)
				}
				check(t, w.Teardown(t.Context(), "web"))
				if linkRemoved {
					eventually(t, w.workersIdle)
				}
				for _, c := range clients {
					if err := rejected(c); err != nil {
						t.Errorf("%s connection from %s to %s: %v", c.LocalAddr().Network(), c.LocalAddr(), c.RemoteAddr(), err)
					}
				}
				if !linkRemoved {
					close(unblock)
				}
			})
		}
	}
}

// The number of a host port can be the client's port of another connection on [::1].
func TestClientPortEqualsHostPort(t *testing.T) {
	w := newWorld(t)
	w.pod("web", tcp(8080, 80))
	serve(t, w.host, "host", "tcp", "[::1]:1234")
	in(t, w.host, func() error {
		d := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.IPv6loopback, Port: 8080}}
		c, err := d.Dial("tcp", "[::1]:1234")
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// setBridgeNetfilter enables or disables br_netfilter.
func (w *world) setBridgeNetfilter(value string) {
	w.t.Helper()
	in(w.t, w.host, func() error {
		return errors.Join(setSysctl("bridge/bridge-nf-call-ip6tables", value), setSysctl("bridge/bridge-nf-call-iptables", value))
	})
}

// hold accepts connections in a namespace and keeps them open until the test ends.
func hold(t *testing.T, path, addr string) {
	t.Helper()
	in(t, path, func() error {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { _ = c.Close() })
			}
		}()
		return nil
	})
}

// dial opens a connection from a namespace. A UDP connection has had an answer.
func dial(t *testing.T, path, network, addr string) net.Conn {
	t.Helper()
	var c net.Conn
	in(t, path, func() (err error) {
		c, err = net.DialTimeout(network, addr, time.Minute)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	if network == "udp" {
		_, err := c.Write([]byte("?"))
		check(t, err)
		check(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err = c.Read(make([]byte, 100))
		check(t, err)
	}
	return c
}

// wantRefused expects a TCP RST for a new connection, or ICMP "port unreachable" for a UDP packet.
func wantRefused(t *testing.T, what, path, network, addr string) {
	t.Helper()
	var c net.Conn
	in(t, path, func() (err error) {
		c, err = net.DialTimeout(network, addr, time.Minute)
		for begun := time.Now(); errors.Is(err, syscall.EHOSTUNREACH) && time.Since(begun) < time.Minute; {
			c, err = net.DialTimeout(network, addr, time.Minute) // on a busy host, a neighbour may not answer within the 3 s of the kernel
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if err == nil && network == "tcp" {
			err = errors.Join(errors.New("connected"), c.Close())
		}
		if err != nil {
			t.Errorf("%s: %s %s: %v, want connection refused", what, network, addr, err)
		}
		return nil
	})
	if network != "udp" || c == nil {
		return
	}
	if err := errors.Join(rejected(c), c.Close()); err != nil {
		t.Errorf("%s: %s %s: %v", what, network, addr, err)
	}
}

// rejected sends on a connection until the kernel reports that it was rejected. It repeats that, since the kernel limits
// the rate of ICMP messages. UDP packets of the host itself are rejected with EPERM or with ECONNREFUSED.
func rejected(c net.Conn) error {
	want := []error{syscall.ECONNRESET}
	if c.LocalAddr().Network() == "udp" {
		want = []error{syscall.ECONNREFUSED, syscall.EPERM}
	}
	for end := time.Now().Add(time.Minute); ; {
		_, err := c.Write([]byte("?"))
		if err == nil {
			if err = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err == nil {
				_, err = c.Read(make([]byte, 100))
			}
		}
		switch {
		case slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end):
		default:
			return fmt.Errorf("%w, want one of %v", err, want)
		}
	}
}
