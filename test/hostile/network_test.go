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

// TestNetworkControl: the links, addresses, routes and rules of a pod's network are not its containers' to change.
func TestNetworkControl(t *testing.T) {
	f := newFixture(t, options{})
	f.intrude("control", "", []try{
		{"add-link", "EPERM"},
		{"link-down eth0", "EPERM"},
		{"add-ip eth0 " + f.addressOf(neighbour) + "/32", "EPERM"},
		{"add-route 127.0.0.0/8 eth0", "EPERM"},
		{"add-route 198.51.100.0/24 eth0", "EPERM"},
		{"firewall", "EPERM"},
		{"write /proc/sys/net/ipv4/conf/all/route_localnet", "EROFS"},
		{"listen tcp 127.0.0.1:80", "done"}, // of its own
		{"raw-socket", "done"},              // CAP_NET_RAW is in the default set, as with Docker and the kubelet
	})
}

// TestLoopbackOfTheMachine: what listens on the machine's loopback alone is not reached from a pod: not by its own loopback, not by
// the machine's address in the pods' network, and not by packets that are made for it, although host ports need route_localnet.
// What listens on all addresses is reached, as with Docker.
func TestLoopbackOfTheMachine(t *testing.T) {
	f := newFixture(t, options{})
	gateway := f.gateway()
	local, wide := f.listen("127.0.0.1"), f.listen("0.0.0.0")
	heard := make(chan string, 16)
	quiet, loud := f.hear("127.0.0.1", heard), f.hear(gateway, heard)
	f.create("loopback", "restartPolicy = \"Never\"\n"+play("c", "try",
		fmt.Sprintf("dial tcp 127.0.0.1:%d", local), fmt.Sprintf("dial tcp %s:%d", gateway, local), fmt.Sprintf("dial tcp %s:%d", gateway, wide),
		// A packet that comes can only come before the last, which takes the same way.
		fmt.Sprintf("datagram 192.0.2.1 127.0.0.1 %d %s made-up", quiet, gateway),
		fmt.Sprintf("datagram 127.0.0.1 127.0.0.1 %d %s from-itself", quiet, gateway),
		fmt.Sprintf("datagram 127.0.0.1 %s %d %s from-loopback", gateway, loud, gateway),
		"own-datagram "+fmt.Sprintf("%s %d last", gateway, loud)))
	f.Until("loopback", "done", ended)
	f.compare("loopback", "c", []try{
		{fmt.Sprintf("dial tcp 127.0.0.1:%d", local), "ECONNREFUSED"},
		{fmt.Sprintf("dial tcp %s:%d", gateway, local), "ECONNREFUSED"},
		{fmt.Sprintf("dial tcp %s:%d", gateway, wide), "done"},
		{fmt.Sprintf("datagram 192.0.2.1 127.0.0.1 %d %s made-up", quiet, gateway), "done"},
	})
	f.hears(heard)
}

// TestImpersonation: a pod that pretends to be another is not heard, neither by packets that say to be of the other's address nor
// by telling neighbours that the address is its own.
func TestImpersonation(t *testing.T) {
	f := newFixture(t, options{})
	f.create("ally", fmt.Sprintf("\n[[containers]]\nname = \"c\"\nimage = %q\n", testserver))
	ally, victim := f.addressOf("ally"), f.addressOf(neighbour)
	f.Await(func() error { // each knows then where the other is
		_, err := f.ask("/fetch", "url", "http://"+ally+":8080/whoami")
		return err
	})
	before := f.knows(ally)
	ally6 := f.address6Of("ally")
	f.Await(func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(ally6, "8080"), time.Second)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	before6 := f.machineKnows(ally6)
	heard := make(chan string, 16)
	gateway := f.gateway()
	port := f.hear(gateway, heard)
	place := f.placeOf(before6)
	f.create("liar", "restartPolicy = \"Never\"\n"+play("c", "try", "claim "+ally+" "+victim, "claim "+gateway+" "+victim,
		"claim6 "+ally6+" "+f.gateway6()+" "+gateway,
		"wear "+ally+" fe80::1", "wear "+ally+" ::",
		fmt.Sprintf("datagram %s %s %d %s as-ally", ally, gateway, port, gateway),
		fmt.Sprintf("datagram 192.0.2.1 %s %d %s as-stranger", gateway, port, gateway),
		fmt.Sprintf("own-datagram %s %d last", gateway, port)))
	f.Until("liar", "done", ended)
	f.hears(heard)
	f.compare("liar", "c", []try{
		{"claim6 " + ally6 + " " + f.gateway6() + " " + gateway, "done"},
		{"wear " + ally + " fe80::1", "done"},
		{"wear " + ally + " ::", "done"},
	})
	if after := f.placeOf(before6); after != place {
		f.Errorf("the bridge was made to believe that %s is behind link %d, not behind %d", ally, after, place)
	}
	if after := f.machineKnows(ally6); after != before6 {
		f.Errorf("the machine was made to believe that %s is at %s, not at %s", ally6, after, before6)
	}
	if after := f.knows(ally); after != before {
		f.Errorf("the neighbour was made to believe that %s is at %s, not at %s", ally, after, before)
	}
}

// hears fails the test for everything that the machine hears before the last, which must come.
func (f *fixture) hears(heard <-chan string) {
	f.Helper()
	over := f.Ctx().Done()
	for {
		select {
		case text := <-heard:
			if text == "last" {
				return
			}
			f.Errorf("the machine heard %q", text)
		case <-over:
			f.Fatal("the machine heard nothing")
		}
	}
}

// gateway is the machine's address in the pods' network, and gateway6 that of IPv6.
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
	f.Fatalf("the bridge has the addresses %v", addresses)
	return ""
}

// address6Of is the IPv6 address of a pod.
func (f *fixture) address6Of(pod string) string {
	f.Helper()
	p := f.Until(pod, "in the network", func(p *api.Pod) bool { return len(p.Status.PodIPs) == 2 })
	return p.Status.PodIPs[1].IP
}

// machineKnows is the hardware address that the machine believes a pod's address to have.
func (f *fixture) machineKnows(address string) string {
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
	f.Fatalf("the machine does not know %s: %v", address, list)
	return ""
}

// placeOf is the index of the link behind which the bridge believes a hardware address to be, by what it has learned.
func (f *fixture) placeOf(hardware string) int {
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
	f.Fatalf("the bridge does not know %s: %v", hardware, list)
	return 0
}

// listen has the machine listen on a port, which it returns.
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

// hear has the machine listen for datagrams on a port, which it returns.
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

// knows is the hardware address that the neighbour believes an address to have.
func (f *fixture) knows(address string) string {
	f.Helper()
	text, err := f.ask("/file", "path", "/proc/net/arp")
	f.Check(err)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == address {
			return fields[3]
		}
	}
	f.Fatalf("the neighbour does not know %s:\n%s", address, text)
	return ""
}
