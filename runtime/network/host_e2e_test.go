//go:build e2e

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/podstead/podstead/spec"
)

// "auto" avoids addresses and routes of the host, keeps its choice, and changes it only while no pod uses it.
func TestSubnetsAvoidHost(t *testing.T) {
	w := newWorld(t)
	in(t, w.host, func() error {
		h, err := Namespace{}.Netlink()
		if err != nil {
			return err
		}
		defer h.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "other0"
		return errors.Join(
			h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}), address(h, "other0", "10.77.65.1/24"),
			addRoute("10.78.0.0/16", outside4), addRoute("0.0.0.0/1", outside4),
			h.RouteAdd(&netlink.Route{Dst: ipNet(netip.MustParseAddr("10.79.64.0"), 24), Gw: net.ParseIP(outside4), Table: 77}),
		)
	})
	w.pod("web")
	first := w.subnets
	if want := candidateSubnets[3]; first[0] != want {
		t.Errorf("chose %s, want %s", first[0], want)
	}
	in(t, w.host, func() error { return addRoute(netip.PrefixFrom(first[0].Addr(), 25).String(), outside4) })
	w.pod("next")
	if w.subnets[0] != first[0] {
		t.Errorf("the subnet changed to %s while in use", w.subnets[0])
	}
	check(t, w.Reconcile(t.Context(), nil))
	eventually(t, w.leftovers)
	w.restart()
	if w.pod("third"); w.subnets[0] != candidateSubnets[4] {
		t.Errorf("chose %s after an overlap, want %s", w.subnets[0], candidateSubnets[4])
	}
	before := w.subnets
	check(t, w.Reconcile(t.Context(), nil))
	eventually(t, w.leftovers)
	w.restart()
	if w.pod("fourth"); w.subnets[0] != before[0] || w.subnets[1] != before[1] {
		t.Errorf("the subnets changed from %v to %v", before, w.subnets)
	}
}

// Pods have no IPv6 if the host has none, and links configured by router advertisements keep their addresses.
func TestSysctls(t *testing.T) {
	w := newWorld(t)
	w.pod("both")
	in(t, w.host, func() error {
		for name, want := range map[string]string{
			"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv6/conf/up0/accept_ra": "2",
			"ipv6/conf/podstead0/accept_ra": "0", "ipv4/conf/podstead0/route_localnet": "1", "ipv4/conf/all/route_localnet": "0",
		} {
			if got, err := readSysctl(name); got != want || err != nil {
				t.Errorf("%s is %q, %v; want %q", name, got, err, want)
			}
		}
		return nil
	})
	if w.base.mtu != 1400 {
		t.Errorf("MTU %d, want 1400 of the uplink", w.base.mtu)
	}
	check(t, w.Reconcile(t.Context(), nil))
	eventually(t, w.leftovers)
	in(t, w.host, func() error { return setSysctl("ipv6/conf/default/disable_ipv6", "1") })
	if p := w.pod("one"); len(p.IPs) != 1 || !p.IPs[0].Is4() {
		t.Errorf("addresses without IPv6: %v", p.IPs)
	}
}

// Setup and Check report conflicts with pods in the host network and with processes before anything is created.
func TestConflicts(t *testing.T) {
	w := newWorld(t)
	_, err := w.try(Request{UID: "host", PodName: "host", Names: []string{"alias"}, Ports: []Port{tcp(8080, 8080)}})
	check(t, err)
	serve(t, w.host, "host", "tcp4", host4+":22")
	serve(t, w.host, "host", "udp", ":53")
	path := w.pin("web")
	for _, c := range []struct {
		port Port
		want string
	}{
		{tcp(8080, 80), `host port 8080/TCP: in use by pod "host"`},
		{tcp(22, 80), "host port 22/TCP: in use by network.test (process " + fmt.Sprint(os.Getpid()) + ")"},
		{Port{HostPort: 53, ContainerPort: 53, Protocol: spec.ProtocolUDP}, "host port 53/UDP: in use by network.test"},
		{Port{HostIP: netip.MustParseAddr(host6), HostPort: 53, ContainerPort: 53, Protocol: spec.ProtocolUDP}, "in use by network.test"},
	} {
		r := Request{UID: "web", PodName: "web", NetnsPath: path, Ports: []Port{c.port}}
		_, atSetup := w.try(r)
		for _, err := range []error{w.Check(r), atSetup} {
			if _, ok := errors.AsType[*ConflictError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", c.port, err, c.want)
			}
		}
	}
	if _, err := w.links.LinkByName(DefaultBridge); !isLinkNotFound(err) {
		t.Errorf("bridge exists before the first pod that needs it: %v", err)
	}
	for _, port := range []Port{
		{HostIP: netip.MustParseAddr(second4), HostPort: 22, ContainerPort: 80},
		{HostIP: netip.MustParseAddr("203.0.113.5"), HostPort: 22, ContainerPort: 80},
		{HostPort: 53, ContainerPort: 80},
	} {
		check(t, w.Check(Request{UID: "web", PodName: "web", NetnsPath: path, Ports: []Port{port}}))
	}
	if got := Hosts(w.Peers(), ""); got != "" {
		t.Errorf("hosts without a bridge: %q", got)
	}
	w.pod("web")
	want := gatewaysOf(w.subnets)[0].String() + "\thost\talias\n" + gatewaysOf(w.subnets)[1].String() + "\thost\talias\n"
	if got := Hosts(w.Peers(), "web"); got != want {
		t.Errorf("hosts:\n%swant:\n%s", got, want)
	}
	if err := w.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "in use by pod") {
		t.Errorf("Remove while pods exist: %v", err)
	}
}

// Packets of a UDP sender reach a new pod, even if the kernel already tracks its flow to the host.
func TestEstablishedUDPFlow(t *testing.T) {
	w := newWorld(t)
	path := w.pin("dns")
	serve(t, path, "dns", "udp4", ":53")
	var c net.Conn
	in(t, w.outside, func() (err error) {
		c, err = net.Dial("udp", host4+":5353")
		return err
	})
	defer c.Close()
	query := func() (string, error) {
		if _, err := c.Write([]byte("?")); err != nil {
			return "", err
		}
		check(t, c.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
		buffer := make([]byte, 100)
		n, err := c.Read(buffer)
		return string(buffer[:n]), err
	}
	w.pod("first", Port{HostPort: 5353, ContainerPort: 53, Protocol: spec.ProtocolUDP}) // so that connection tracking is active
	check(t, w.Teardown(t.Context(), "first"))
	if got, err := query(); err == nil {
		t.Fatalf("answer without a pod: %q", got)
	}
	_, err := w.try(Request{
		UID: "dns", PodName: "dns", NetnsPath: path, Ports: []Port{{HostPort: 5353, ContainerPort: 53, Protocol: spec.ProtocolUDP}},
	})
	check(t, err)
	eventually(t, func() error {
		got, err := query()
		if err == nil && !strings.HasPrefix(got, "dns ") {
			return fmt.Errorf("answered %q", got)
		}
		return err
	})
}

// Two networks coexist on one host.
func TestTwoNetworks(t *testing.T) {
	w := newWorld(t)
	web := w.pod("web", tcp(8080, 80))
	serve(t, web.NetnsPath, "web", "tcp", ":80")
	o := w.opts
	o.Bridge, o.StateFile, o.LeaseFile = "podstead1", w.dir+"/state/two.json", w.dir+"/run/two.json"
	second, err := New(t.Context(), o)
	check(t, err)
	path := w.pin("second")
	result, err := second.Setup(t.Context(), Request{UID: "u", PodName: "db", NetnsPath: path, Ports: []Port{tcp(8081, 80)}})
	check(t, err)
	serve(t, path, "db", "tcp", ":80")
	if w.subnets[0].Contains(result.IPs[0]) {
		t.Errorf("%s is in the subnet of the first network", result.IPs[0])
	}
	wantAnswer(t, "first", w.outside, "tcp", host4+":8080", "web", "")
	wantAnswer(t, "second", w.outside, "tcp", host4+":8081", "db", "")
	wantAnswer(t, "first network from the second", path, "tcp", host4+":8080", "web", "")
	check(t, second.Reconcile(t.Context(), nil))
	check(t, second.Remove(t.Context()))
	check(t, second.Close())
	wantAnswer(t, "first", w.outside, "tcp", host4+":8080", "web", "")
}
