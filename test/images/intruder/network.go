package main

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
)

// networkAttempts are attempts on the network and on listeners, by ordinary means.
var networkAttempts = map[string]attempt{
	"dial":       words(2, dial),
	"listen":     words(2, listen),
	"add-link":   words(0, addLink),
	"link-down":  words(1, linkDown),
	"add-ip":     words(2, addAddress),
	"add-route":  words(2, addRoute),
	"firewall":   words(0, addTable),
	"raw-socket": words(0, rawSocket),

	"own-datagram": words(3, ownDatagram),
}

// reach is the timeout of a connection. A firewall that drops packets sends no response.
const dialTimeout = 2 * time.Second

// dial connects to an address: "tcp 10.0.0.1:80", "unix /path", "unix @abstract".
func dial(w []string) (string, error) {
	c, err := net.DialTimeout(w[0], w[1], dialTimeout)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "no answer", nil
	}
	if err != nil {
		return "", err
	}
	return "", c.Close()
}

// ownDatagram sends an ordinary datagram: "own-datagram ADDRESS PORT TEXT".
func ownDatagram(w []string) (string, error) {
	c, err := net.DialTimeout("udp", net.JoinHostPort(w[0], w[1]), dialTimeout)
	if err != nil {
		return "", err
	}
	_, err = c.Write([]byte(w[2]))
	return "", errors.Join(err, c.Close())
}

// listen listens on an address until the program exits.
func listen(w []string) (string, error) {
	l, err := net.Listen(w[0], w[1])
	if err == nil {
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_ = c.Close()
			}
		}()
	}
	return "", err
}

func addLink([]string) (string, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "intruder0"
	return "", netlink.LinkAdd(&netlink.Dummy{LinkAttrs: attrs})
}

func linkDown(w []string) (string, error) {
	link, err := netlink.LinkByName(w[0])
	if err != nil {
		return "", err
	}
	return "", netlink.LinkSetDown(link)
}

// addAddress adds an address to a link: "eth0 10.0.0.2/32".
func addAddress(w []string) (string, error) {
	link, err := netlink.LinkByName(w[0])
	if err != nil {
		return "", err
	}
	a, err := netlink.ParseAddr(w[1])
	if err != nil {
		return "", err
	}
	return "", netlink.AddrAdd(link, a)
}

// addRoute adds a route for a subnet through a link: "127.0.0.0/8 eth0".
func addRoute(w []string) (string, error) {
	_, subnet, err := net.ParseCIDR(w[0])
	if err != nil {
		return "", err
	}
	link, err := netlink.LinkByName(w[1])
	if err != nil {
		return "", err
	}
	return "", netlink.RouteAdd(&netlink.Route{Dst: subnet, LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK})
}

func addTable([]string) (string, error) {
	c, err := nftables.New()
	if err != nil {
		return "", err
	}
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "intruder"})
	return "", c.Flush()
}
