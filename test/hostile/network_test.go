//go:build e2e

package hostile

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
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
	f.until("loopback", "done", ended)
	f.compare("loopback", "c", []try{
		{fmt.Sprintf("dial tcp 127.0.0.1:%d", local), "ECONNREFUSED"},
		{fmt.Sprintf("dial tcp %s:%d", gateway, local), "ECONNREFUSED"},
		{fmt.Sprintf("dial tcp %s:%d", gateway, wide), "done"},
		{fmt.Sprintf("datagram 192.0.2.1 127.0.0.1 %d %s made-up", quiet, gateway), "done"},
	})
	for {
		select {
		case text := <-heard:
			if text == "last" {
				return
			}
			f.Errorf("the machine heard %q", text)
		case <-f.ctx().Done():
			f.Fatal("the machine heard nothing")
		}
	}
}

// TestImpersonation: a pod that pretends to be another is not heard, neither by packets that say to be of the other's address nor
// by telling neighbours that the address is its own.
func TestImpersonation(t *testing.T) {
	f := newFixture(t, options{})
	f.create("ally", fmt.Sprintf("\n[[containers]]\nname = \"c\"\nimage = %q\n", testserver))
	ally, victim := f.addressOf("ally"), f.addressOf(neighbour)
	f.until("ally", "ready", isReady)
	if _, err := f.ask("/fetch", "url", "http://"+ally+":8080/whoami"); err != nil { // each knows where the other is
		f.Fatal(err)
	}
	before := f.knows(ally)
	f.create("liar", "restartPolicy = \"Never\"\n"+play("c", "try", "claim "+ally+" "+victim, "claim "+f.gateway()+" "+victim))
	f.until("liar", "done", ended)
	if after := f.knows(ally); after != before {
		f.Errorf("the neighbour was made to believe that %s is at %s, not at %s", ally, after, before)
	}
}

// gateway is the machine's address in the pods' network.
func (f *fixture) gateway() string {
	f.Helper()
	bridge, err := netlink.LinkByName(f.Bridge())
	f.check(err)
	addresses, err := netlink.AddrList(bridge, netlink.FAMILY_V4)
	f.check(err)
	if len(addresses) != 1 {
		f.Fatalf("the bridge has the addresses %v", addresses)
	}
	return addresses[0].IP.String()
}

// listen has the machine listen on a port, which it returns.
func (f *fixture) listen(address string) (port int) {
	f.Helper()
	l, err := net.Listen("tcp4", net.JoinHostPort(address, "0"))
	f.check(err)
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
	f.check(err)
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
	f.check(err)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == address {
			return fields[3]
		}
	}
	f.Fatalf("the neighbour does not know %s:\n%s", address, text)
	return ""
}
