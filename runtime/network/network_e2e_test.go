//go:build e2e

package network

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// All paths to a pod work with and without br_netfilter, which applies address translation to packets that stay on the
// bridge.
func TestReachability(t *testing.T) {
	for _, bridgeNetfilter := range []string{"0", "1"} {
		t.Run("bridge-nf-call="+bridgeNetfilter, func(t *testing.T) {
			w := newWorld(t)
			w.setBridgeNetfilter(bridgeNetfilter)
			web := w.pod("web", tcp(8080, 80), Port{HostPort: 5353, ContainerPort: 53, Protocol: spec.ProtocolUDP},
				Port{HostIP: netip.MustParseAddr(second4), HostPort: 9090, ContainerPort: 80},
				Port{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: 7070, ContainerPort: 80})
			other := w.pod("other")
			for _, a := range []string{"tcp4 0.0.0.0:80", "tcp6 [::]:80", "udp4 0.0.0.0:53", "udp6 [::]:53"} {
				network, addr, _ := strings.Cut(a, " ")
				serve(t, web.NetnsPath, "web", network, addr)
			}
			serve(t, w.outside, "out", "tcp", "[::]:1234")
			if len(web.IPs) != 2 || !web.IPs[0].Is4() || !web.IPs[1].Is6() {
				t.Fatalf("addresses %v, want one of each family", web.IPs)
			}
			web4, web6 := web.IPs[0].String(), web.IPs[1].String()
			other4, other6 := other.IPs[0].String(), other.IPs[1].String()
			wantAnswer(t, "pod to pod", other.NetnsPath, "tcp", net.JoinHostPort(web4, "80"), "web", other4)
			wantAnswer(t, "pod to pod", other.NetnsPath, "tcp", net.JoinHostPort(web6, "80"), "web", other6)
			wantAnswer(t, "host to pod", w.host, "tcp", net.JoinHostPort(web4, "80"), "web", "")
			wantAnswer(t, "host to pod", w.host, "tcp", net.JoinHostPort(web6, "80"), "web", "")
			wantAnswer(t, "pod to outside", other.NetnsPath, "tcp", outside4+":1234", "out", host4)
			wantAnswer(t, "pod to outside", other.NetnsPath, "tcp", "["+outside6+"]:1234", "out", host6)
			gateway := gatewaysOf(w.subnets)[0].String()
			for _, p := range []struct{ network, port string }{{"tcp", "8080"}, {"udp", "5353"}} {
				for _, host := range []string{host4, second4, host6, gateway} {
					addr := net.JoinHostPort(host, p.port)
					from := map[bool]string{true: outside6, false: outside4}[host == host6]
					if host != gateway {
						wantAnswer(t, "host port from outside", w.outside, p.network, addr, "web", from)
					}
					wantAnswer(t, "host port from the host", w.host, p.network, addr, "web", "")
					wantAnswer(t, "host port from another pod", other.NetnsPath, p.network, addr, "web", "")
					wantAnswer(t, "host port from the pod itself", web.NetnsPath, p.network, addr, "web", "")
				}
				wantAnswer(t, "host port from loopback", w.host, p.network, "127.0.0.1:"+p.port, "web", "")
				wantAnswer(t, "host port from loopback", w.host, p.network, "127.1.2.3:"+p.port, "web", "")
			}
			wantAnswer(t, "port on one address", w.outside, "tcp", second4+":9090", "web", outside4)
			wantRefused(t, "port on one address via another", w.outside, "tcp", host4+":9090")
			wantRefused(t, "port on one address via loopback", w.host, "tcp", "127.0.0.1:9090")
			wantAnswer(t, "port on loopback", w.host, "tcp", "127.0.0.1:7070", "web", "")
			wantRefused(t, "port on loopback via another address", w.host, "tcp", host4+":7070")
			wantRefused(t, "[::1]", w.host, "tcp", "[::1]:8080")
			wantRefused(t, "[::1]", w.host, "udp", "[::1]:5353")
		})
	}
}

// Ports that are not published cannot be reached from outside, even with a route to the pods.
func TestUnpublishedPorts(t *testing.T) {
	w := newWorld(t)
	web := w.pod("web", tcp(8080, 80))
	serve(t, web.NetnsPath, "web", "tcp", ":80")
	for i, s := range w.subnets {
		in(t, w.outside, func() error { return addRoute(s.String(), []string{host4, host6}[i]) })
	}
	wantSilence(t, "pod from outside", w.outside, "tcp", net.JoinHostPort(web.IPs[0].String(), "80"))
	wantSilence(t, "pod from outside", w.outside, "tcp", net.JoinHostPort(web.IPs[1].String(), "80"))
	wantAnswer(t, "host port", w.outside, "tcp", host4+":8080", "web", "")
}

// Neither the outside nor a pod can reach the host's loopback, whatever their routes: neither a host port on it nor a
// process of the host. Replies would have no route back, so the test checks what arrives.
func TestLoopbackGuard(t *testing.T) {
	w := newWorld(t)
	udp := func(host, container uint16) Port {
		return Port{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: host, ContainerPort: container, Protocol: spec.ProtocolUDP}
	}
	web, hostile := w.pod("web", udp(7070, 53)), w.pod("hostile")
	in(t, w.host, func() error { // otherwise the kernel itself would drop packets with a local source
		return setSysctl("ipv4/conf/"+DefaultBridge+"/accept_local", "1")
	})
	for _, c := range []struct{ listens, addr, target string }{
		{web.NetnsPath, ":53", "127.0.0.1:7070"},
		{w.host, "127.0.0.1:2222", "127.0.0.1:2222"},
		{w.host, ":2223", gatewaysOf(w.subnets)[0].String() + ":2223"}, // with the spoofed source 127.0.0.1
	} {
		var arrive net.PacketConn
		in(t, c.listens, func() (err error) {
			arrive, err = net.ListenPacket("udp4", c.addr)
			return err
		})
		for _, from := range []struct{ path, via string }{{w.outside, host4}, {hostile.NetnsPath, gatewaysOf(w.subnets)[0].String()}} {
			if from.path == w.outside && !strings.HasPrefix(c.target, "127.") {
				continue // it has no route to the pods
			}
			in(t, from.path, func() error {
				return errors.Join(routeLoopbackTo(from.via), send("127.0.0.1", c.target, "bad"))
			})
			in(t, w.host, func() error { return send("", c.target, "good") })
			buffer := make([]byte, 100)
			check(t, arrive.SetReadDeadline(time.Now().Add(time.Minute)))
			if n, _, err := arrive.ReadFrom(buffer); err != nil || string(buffer[:n]) != "good" {
				t.Errorf("%s received %q via %s, %v; want only the packet of the host", c.target, buffer[:n], from.via, err)
			}
		}
		check(t, arrive.Close())
	}
}

// send sends a packet from the namespace of the calling thread, and from an address unless it is empty.
func send(from, addr, text string) error {
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}, Control: freeBind}
	c, err := d.Dial("udp4", addr)
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(text))
	return errors.Join(err, c.Close())
}

// A repeated Setup changes nothing. After a restart, pods are reachable as before, and Reconcile removes pods that are
// not live.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	web, stale := w.pod("web", tcp(8080, 80)), w.pod("stale", tcp(8081, 80))
	serve(t, web.NetnsPath, "web", "tcp", ":80")
	for range 2 {
		again, err := w.try(web.Request)
		check(t, err)
		if diff := cmp.Diff(web.Result, again.Result, compareAddr); diff != "" {
			t.Errorf("Setup again (-first +second):\n%s", diff)
		}
		w.restart()
		check(t, w.Reconcile(t.Context(), []string{"web"}))
		wantAnswer(t, "after a restart", w.outside, "tcp", host4+":8080", "web", "")
		if peers := w.Peers(); len(peers) != 1 || peers[0].UID != "web" {
			t.Errorf("peers %v, want web", peers)
		}
	}
	wantSilence(t, "host port of a deleted pod", w.outside, "tcp", host4+":8081")
	eventually(t, func() error {
		release, err := w.lock(t.Context())
		check(t, err)
		defer release()
		if w.takenAddresses()(stale.IPs[0]) {
			return errors.New("the address of the deleted pod is still in use")
		}
		return nil
	})
}

// A new sandbox of a pod gets a new link and keeps its address.
func TestNewSandbox(t *testing.T) {
	w := newWorld(t)
	web := w.pod("web", tcp(8080, 80))
	next := web.Request
	next.NetnsPath = w.pin("web2")
	again, err := w.try(next)
	check(t, err)
	if diff := cmp.Diff(web.Result, again.Result, compareAddr); diff != "" {
		t.Errorf("in a new sandbox (-old +new):\n%s", diff)
	}
	serve(t, next.NetnsPath, "new", "tcp", ":80")
	wantAnswer(t, "new sandbox", w.outside, "tcp", host4+":8080", "new", "")

	check(t, w.Teardown(t.Context(), "web"))
	next.NetnsPath = w.pin("web3")
	third, err := w.try(next)
	check(t, err)
	if diff := cmp.Diff(web.Result, third.Result, compareAddr); diff != "" {
		t.Errorf("after Teardown (-old +new):\n%s", diff)
	}
}

// A pod that replaces another gets its address, and ARP caches stay valid.
func TestReplacement(t *testing.T) {
	w := newWorld(t)
	old, other := w.pod("db"), w.pod("other")
	serve(t, old.NetnsPath, "old", "tcp", ":80")
	addr := net.JoinHostPort(old.IPs[0].String(), "80")
	wantAnswer(t, "the old pod", other.NetnsPath, "tcp", addr, "old", "")
	w.pod("third")
	check(t, w.Teardown(t.Context(), "db"))
	w.restart() // the address of the pod name is saved
	next, err := w.try(Request{UID: "another", PodName: "db", NetnsPath: w.pin("new")})
	check(t, err)
	if diff := cmp.Diff(old.IPs, next.IPs, compareAddr); diff != "" {
		t.Errorf("addresses (-old +new):\n%s", diff)
	}
	serve(t, next.NetnsPath, "new", "tcp", ":80")
	wantAnswer(t, "the new pod", other.NetnsPath, "tcp", addr, "new", "")
}

// Teardown does not wait for the removal of the link. The address is not reused before that.
func TestTeardownDoesNotWait(t *testing.T) {
	w := newWorld(t)
	first := w.pod("first", tcp(8080, 80))
	unblock := make(chan struct{})
	w.fault = func(step string) error {
		if step == "remove link" {
			<-unblock
		}
		return nil
	}
	check(t, w.Teardown(t.Context(), "first"))
	w.state.Addresses = nil                  // so that only the lease reserves the address
	second := w.pod("second", tcp(8080, 80)) // the host port is free at once
	if second.IPs[0] == first.IPs[0] {
		t.Errorf("%s was reused before its link was removed", first.IPs[0])
	}
	close(unblock)
	eventually(t, func() error {
		release, err := w.lock(t.Context())
		check(t, err)
		defer release()
		if w.leases["first"] != nil {
			return errors.New("the lease of the deleted pod is left")
		}
		return nil
	})
	w.state.Addresses = nil
	if third := w.pod("third"); third.IPs[0] != first.IPs[0] {
		t.Errorf("third pod: address %s, want %s", third.IPs[0], first.IPs[0])
	}
}

// Leases of another boot are ignored.
func TestReboot(t *testing.T) {
	w := newWorld(t)
	web := w.pod("web", tcp(8080, 80))
	check(t, w.Teardown(t.Context(), "web"))
	eventually(t, w.leftovers)
	check(t, w.Remove(t.Context()))
	w.setLease("web", &attachment{Lease: Lease{Pod: "web", IPs: web.IPs, Link: "psgone", Ports: web.Ports}}) // as after a power failure
	w.subnets = w.state.Subnets
	check(t, w.saveLeases())
	w.opts.BootID = "the next boot"
	w.restart()
	if peers := w.Peers(); len(peers) != 0 {
		t.Errorf("peers after a reboot: %v", peers)
	}
	check(t, w.Check(Request{UID: "new", PodName: "new", NetnsPath: w.host, Ports: web.Ports}))
	again := w.pod("web")
	if diff := cmp.Diff(web.IPs, again.IPs, compareAddr); diff != "" {
		t.Errorf("addresses after a reboot (-before +after):\n%s", diff)
	}
}

// Without the lease file, leases of running pods are recovered from the host.
func TestRecoverLeases(t *testing.T) {
	for _, content := range []string{"", "{", `{"version":1,"bootID":"this boot"}`} {
		t.Run("file "+content, func(t *testing.T) {
			w := newWorld(t)
			ports := []Port{
				{HostPort: 8080, ContainerPort: 80, Protocol: spec.ProtocolTCP},
				{HostIP: netip.IPv4Unspecified(), HostPort: 81, ContainerPort: 80, Protocol: spec.ProtocolTCP},
				{HostIP: netip.MustParseAddr(host6), HostPort: 82, ContainerPort: 80, Protocol: spec.ProtocolTCP},
			}
			web := w.pod("web", ports...)
			w.pod("stale", tcp(8081, 80))
			serve(t, web.NetnsPath, "web", "tcp", ":80")
			if content == "" {
				check(t, os.Remove(w.opts.LeaseFile))
			} else {
				check(t, os.WriteFile(w.opts.LeaseFile, []byte(content), 0o600))
			}
			w.restart()
			check(t, w.Reconcile(t.Context(), []string{"web"}))
			wantAnswer(t, "pod without a lease file", w.outside, "tcp", host4+":8080", "web", "")
			wantAnswer(t, "pod without a lease file", w.outside, "tcp", host4+":81", "web", "")
			wantAnswer(t, "pod without a lease file", w.outside, "tcp", "["+host6+"]:82", "web", "")
			wantSilence(t, "host port of a deleted pod", w.outside, "tcp", host4+":8081")
			for _, p := range ports {
				if err := w.Check(Request{UID: "x", PodName: "x", Ports: []Port{p}}); err == nil {
					t.Errorf("host port %s is not reserved", p)
				}
			}
			again, err := w.try(web.Request)
			check(t, err)
			if diff := cmp.Diff(web.Result, again.Result, compareAddr); diff != "" {
				t.Errorf("Setup again (-first +second):\n%s", diff)
			}
			if peers := w.Peers(); len(peers) != 1 || peers[0].PodName != "web" {
				t.Errorf("peers %v, want web", peers)
			}
		})
	}
}
