//go:build e2e

package hostile

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
)

// TestNetworkControl: a container cannot change the links, addresses, routes and rules of its pod's network.
func TestNetworkControl(t *testing.T) {
	f := newFixture(t, options{})
	f.intrude("control", "", Control(f.addressOf(neighbour)))
}

// TestHostLoopback: what listens on the host's loopback cannot be reached from a pod: not through the pod's loopback, not through the
// host's address in the pod network, and not by crafted packets, although host ports need route_localnet. What listens on all addresses
// can be reached, as with Docker.
func TestHostLoopback(t *testing.T) {
	f := newFixture(t, options{})
	gateway := f.gateway()
	local, wide := f.listen("127.0.0.1"), f.listen("0.0.0.0")
	heard := make(chan string, 16)
	quiet, loud := f.hear("127.0.0.1", heard), f.hear(gateway, heard)
	f.create("loopback", "restartPolicy = \"Never\"\n"+Play("c", "try",
		fmt.Sprintf("dial tcp 127.0.0.1:%d", local), fmt.Sprintf("dial tcp %s:%d", gateway, local),
		fmt.Sprintf("dial tcp %s:%d", gateway, wide),
		// Packets take the same path, so none arrives after the last.
		fmt.Sprintf("datagram 192.0.2.1 127.0.0.1 %d %s made-up", quiet, gateway),
		fmt.Sprintf("datagram 127.0.0.1 127.0.0.1 %d %s from-itself", quiet, gateway),
		fmt.Sprintf("datagram 127.0.0.1 %s %d %s from-loopback", gateway, loud, gateway),
		"own-datagram "+fmt.Sprintf("%s %d last", gateway, loud)))
	f.Until("loopback", "done", ended)
	f.compare("loopback", "c", []Try{
		{fmt.Sprintf("dial tcp 127.0.0.1:%d", local), "ECONNREFUSED"},
		{fmt.Sprintf("dial tcp %s:%d", gateway, local), "ECONNREFUSED"},
		{fmt.Sprintf("dial tcp %s:%d", gateway, wide), "done"},
		{fmt.Sprintf("datagram 192.0.2.1 127.0.0.1 %d %s made-up", quiet, gateway), "done"},
	})
	f.hears(heard)
}

// TestImpersonation: a pod cannot impersonate another one, neither by packets with the other's address nor by claiming that address.
func TestImpersonation(t *testing.T) {
	f := newFixture(t, options{})
	f.create("ally", fmt.Sprintf("\n[[containers]]\nname = \"c\"\nimage = %q\n", testserver))
	ally, victim := f.addressOf("ally"), f.addressOf(neighbour)
	f.Await(func() error { // so that each has a neighbour entry for the other
		_, err := f.ask("/fetch", "url", "http://"+ally+":8080/whoami")
		return err
	})
	before := f.neighbourEntry(ally)
	ally6 := f.address6Of("ally")
	f.Await(func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(ally6, "8080"), time.Second)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	before6 := f.hostNeighbourEntry(ally6)
	heard := make(chan string, 16)
	gateway := f.gateway()
	port := f.hear(gateway, heard)
	link := f.linkOf(before6)
	f.create("impostor", "restartPolicy = \"Never\"\n"+Play("c", "try", "spoof-arp "+ally+" "+victim, "spoof-arp "+gateway+" "+victim,
		"spoof-ndp "+ally6+" "+f.gateway6()+" "+gateway,
		"spoof-mac "+ally+" fe80::1", "spoof-mac "+ally+" ::",
		fmt.Sprintf("datagram %s %s %d %s as-ally", ally, gateway, port, gateway),
		fmt.Sprintf("datagram 192.0.2.1 %s %d %s as-stranger", gateway, port, gateway),
		fmt.Sprintf("own-datagram %s %d last", gateway, port)))
	f.Until("impostor", "done", ended)
	f.hears(heard)
	f.compare("impostor", "c", []Try{
		{"spoof-ndp " + ally6 + " " + f.gateway6() + " " + gateway, "done"},
		{"spoof-mac " + ally + " fe80::1", "done"},
		{"spoof-mac " + ally + " ::", "done"},
	})
	if after := f.linkOf(before6); after != link {
		f.Errorf("the bridge forwards for %s to link %d, want %d", ally, after, link)
	}
	if after := f.hostNeighbourEntry(ally6); after != before6 {
		f.Errorf("neighbour entry of the host for %s is %s, want %s", ally6, after, before6)
	}
	if after := f.neighbourEntry(ally); after != before {
		f.Errorf("neighbour entry of the other pod for %s is %s, want %s", ally, after, before)
	}
}

// hears fails the test for each datagram that the host receives before the last one, which must arrive.
func (f *fixture) hears(heard <-chan string) {
	f.Helper()
	over := f.Ctx().Done()
	for {
		select {
		case text := <-heard:
			if text == "last" {
				return
			}
			f.Errorf("the host received %q", text)
		case <-over:
			f.Fatal("the host received nothing")
		}
	}
}

// gateway returns the host's address in the pod network, gateway6 the IPv6 one.
func (f *fixture) gateway() string  { return f.bridgeAddress(netlink.FAMILY_V4) }
func (f *fixture) gateway6() string { return f.bridgeAddress(netlink.FAMILY_V6) }

func (f *fixture) bridgeAddress(family int) string {
	f.Helper()
	bridge, err := netlink.LinkByName(f.Bridge())
	f.Check(err)
	addresses, err := netlink.AddrList(bridge, family)
	f.Check(err)
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() {
			return a.IP.String()
		}
	}
	f.Fatalf("addresses of the bridge: %v", addresses)
	return ""
}

// address6Of returns the IPv6 address of a pod.
func (f *fixture) address6Of(pod string) string {
	f.Helper()
	p := f.Until(pod, "in the network", func(p *api.Pod) bool { return len(p.Status.PodIPs) == 2 })
	return p.Status.PodIPs[1].IP
}

// hostNeighbourEntry returns the hardware address in the host's neighbour table for a pod's address.
func (f *fixture) hostNeighbourEntry(address string) string {
	f.Helper()
	bridge, err := netlink.LinkByName(f.Bridge())
	f.Check(err)
	list, err := netlink.NeighList(bridge.Attrs().Index, netlink.FAMILY_V6)
	f.Check(err)
	for _, n := range list {
		if n.IP.String() == address {
			return n.HardwareAddr.String()
		}
	}
	f.Fatalf("the host has no neighbour entry for %s: %v", address, list)
	return ""
}

// linkOf returns the index of the link to which the bridge forwards for a hardware address.
func (f *fixture) linkOf(hardware string) int {
	f.Helper()
	bridge, err := netlink.LinkByName(f.Bridge())
	f.Check(err)
	list, err := netlink.NeighList(0, unix.AF_BRIDGE)
	f.Check(err)
	for _, n := range list {
		if n.MasterIndex == bridge.Attrs().Index && n.HardwareAddr.String() == hardware {
			return n.LinkIndex
		}
	}
	f.Fatalf("the bridge has no entry for %s: %v", hardware, list)
	return 0
}

// listen listens on a TCP port of the host and returns it.
func (f *fixture) listen(address string) (port int) {
	f.Helper()
	l, err := net.Listen("tcp4", net.JoinHostPort(address, "0"))
	f.Check(err)
	f.Cleanup(func() {
		if err := l.Close(); err != nil {
			f.Error(err)
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

// hear listens for datagrams on a UDP port of the host and returns it.
func (f *fixture) hear(address string, heard chan<- string) (port int) {
	f.Helper()
	c, err := net.ListenPacket("udp4", net.JoinHostPort(address, "0"))
	f.Check(err)
	f.Cleanup(func() {
		if err := c.Close(); err != nil {
			f.Error(err)
		}
	})
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, _, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			heard <- string(buffer[:n])
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// neighbourEntry returns the hardware address in the neighbour pod's ARP table for an address.
func (f *fixture) neighbourEntry(address string) string {
	f.Helper()
	text, err := f.ask("/file", "path", "/proc/net/arp")
	f.Check(err)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == address {
			return fields[3]
		}
	}
	f.Fatalf("the neighbour pod has no entry for %s:\n%s", address, text)
	return ""
}
