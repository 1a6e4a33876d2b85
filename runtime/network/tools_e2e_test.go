//go:build e2e

package network

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addRoute adds a route in the namespace of the calling thread.
func addRoute(dst, via string) error {
	h, err := Namespace{}.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	p := netip.MustParsePrefix(dst)
	return h.RouteAdd(&netlink.Route{Dst: ipNet(p.Addr(), p.Bits()), Gw: net.ParseIP(via)})
}

// freeBind allows a socket to bind to an address that is not local.
func freeBind(_, _ string, c syscall.RawConn) error {
	var err error
	refused := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
	})
	return errors.Join(refused, err)
}

// routeLoopbackTo makes the namespace of the calling thread send packets for 127.0.0.1 to a neighbour.
func routeLoopbackTo(via string) error {
	h, err := Namespace{}.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Attrs().Name != "lo" {
			if err := setSysctl("ipv4/conf/"+l.Attrs().Name+"/route_localnet", "1"); err != nil {
				return err
			}
		}
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	local := &netlink.Route{Table: unix.RT_TABLE_LOCAL, LinkIndex: lo.Attrs().Index}
	routes, err := h.RouteListFiltered(unix.AF_INET, local, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
	if err != nil {
		return err
	}
	for _, r := range routes {
		if err := h.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return h.RouteReplace(&netlink.Route{Dst: ipNet(netip.MustParseAddr("127.0.0.1"), 32), Gw: net.ParseIP(via)})
}
