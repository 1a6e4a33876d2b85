package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// DumpLinks repeats a listing that was interrupted by a concurrent change, at most five times.
func DumpLinks[T any](list func() ([]T, error)) ([]T, error) {
	for range 5 {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return list()
}

// isLinkNotFound reports whether a netlink error means that the link does not exist.
func isLinkNotFound(err error) bool {
	_, ok := errors.AsType[netlink.LinkNotFoundError](err)
	return ok || errors.Is(err, unix.ENODEV)
}

// usedPrefixes returns the subnets of all addresses and routes except those of the bridge.
func usedPrefixes(h *netlink.Handle, bridge string) ([]netip.Prefix, error) {
	own := -1
	if link, err := h.LinkByName(bridge); err == nil {
		own = link.Attrs().Index
	} else if !isLinkNotFound(err) {
		return nil, fmt.Errorf("get link %s: %w", bridge, err)
	}
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if p, ok := prefixOf(n); ok && p.Bits() >= shortestPrefix {
			used = append(used, p)
		}
	}
	addresses, err := DumpLinks(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		if a.LinkIndex != own {
			add(a.IPNet)
			add(a.Peer)
		}
	}
	every := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
	routes, err := DumpLinks(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_ALL, every, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if r.LinkIndex != own && r.Dst != nil && !r.Dst.IP.IsMulticast() {
			add(r.Dst)
		}
	}
	return used, nil
}

// shortestPrefix is the shortest prefix of a route that counts as used. Shorter ones, such as 0.0.0.0/1 of a VPN, are
// default routes.
const shortestPrefix = 4

// isNotFound reports whether a netlink error means that the object does not exist.
func isNotFound(err error) bool {
	return isLinkNotFound(err) || errors.Is(err, unix.ENOENT)
}
