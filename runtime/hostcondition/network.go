package hostcondition

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/network"
)

// groups are the multicast groups of rtnetlink(7) for what [online] depends on.
const groups = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1) |
	1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV6_ROUTE-1)

// waitForNetwork waits until the host is online.
func (h *Host) waitForNetwork(ctx context.Context, report func(string)) error {
	changes, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink socket: %w", err)
	}
	defer unix.Close(changes)
	if err := unix.Bind(changes, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return fmt.Errorf("follow changes of the network: %w", err)
	}
	p, err := newPoller(ctx, unix.PollFd{Fd: int32(changes), Events: unix.POLLIN})
	if err != nil {
		return err
	}
	defer p.close()
	return p.until(ctx, h.online, report, func() { drain(changes) })
}

// online returns why the host is not online; empty if it is.
func online() (unmet string, err error) {
	routes, err := network.DumpLinks(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return "", fmt.Errorf("list routes: %w", err)
	}
	links, err := network.DumpLinks(netlink.LinkList)
	if err != nil {
		return "", fmt.Errorf("list links: %w", err)
	}
	addresses, err := network.DumpLinks(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return "", fmt.Errorf("list addresses: %w", err)
	}
	return offline(routes, links, addresses), nil
}

// offline returns why a host is not online; empty if it is. It is online if it has a default route over a link that is running, and an
// address of the family of that route, neither link-local nor loopback, on that link or on the loopback link.
// systemd-networkd-wait-online(8) calls this state "routable".
func offline(routes []netlink.Route, links []netlink.Link, addresses []netlink.Addr) (unmet string) {
	running := map[int]bool{}
	loopback := map[int]bool{}
	for _, l := range links {
		a := l.Attrs()
		running[a.Index] = a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&unix.IFF_RUNNING != 0
		loopback[a.Index] = a.Flags&net.FlagLoopback != 0
	}
	unmet = "no default route"
	for i := range routes {
		r := &routes[i]
		for _, link := range outgoing(r) {
			if !isDefault(r) || !running[link] || loopback[link] {
				continue
			}
			unmet = "no address"
			if slices.ContainsFunc(addresses, func(a netlink.Addr) bool {
				return (a.LinkIndex == link || loopback[a.LinkIndex]) && isUsable(&a, r.Family)
			}) {
				return ""
			}
		}
	}
	return unmet
}

// outgoing returns the indexes of the links of a route, without those of its next hops that are down.
func outgoing(r *netlink.Route) []int {
	const down = unix.RTNH_F_DEAD | unix.RTNH_F_LINKDOWN
	if len(r.MultiPath) == 0 {
		if r.Flags&down != 0 {
			return nil
		}
		return []int{r.LinkIndex}
	}
	var links []int
	for _, hop := range r.MultiPath {
		if hop.Flags&down == 0 {
			links = append(links, hop.LinkIndex)
		}
	}
	return links
}

func isDefault(r *netlink.Route) bool {
	if r.Type != 0 && r.Type != unix.RTN_UNICAST {
		return false
	}
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0 && r.Dst.IP.IsUnspecified()
}

// isUsable reports whether packets can be sent from an address: duplicate address detection has succeeded, and it reaches other networks.
func isUsable(a *netlink.Addr, family int) bool {
	if a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 || (a.IP.To4() != nil) != (family == netlink.FAMILY_V4) {
		return false
	}
	return a.IP.IsGlobalUnicast() // not link-local, loopback, multicast or unspecified
}
