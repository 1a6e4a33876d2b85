package network

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// candidates are the subnets that "auto" chooses from: 1,021 pods each, out of the way of what others use by default.
// Docker has 172.17 to 172.31 and 192.168; Podman 10.88 and up; CRI-O 10.85; k3s 10.42 and 10.43; CNI's examples 10.22,
// flannel 10.244, Weave 10.32 to 10.47, kubeadm 10.96 to 10.111, microk8s 10.1 and 10.152, nerdctl 10.4, libvirt
// 192.168.122, Tailscale 100.64/10, and homes and offices the lowest of 10, 172.16 and 192.168. The last two are for
// machines with a route to all of 10.0.0.0/8.
var candidates = []netip.Prefix{
	netip.MustParsePrefix("10.77.64.0/22"),
	netip.MustParsePrefix("10.78.64.0/22"),
	netip.MustParsePrefix("10.79.64.0/22"),
	netip.MustParsePrefix("10.73.64.0/22"),
	netip.MustParsePrefix("10.69.64.0/22"),
	netip.MustParsePrefix("10.66.64.0/22"),
	netip.MustParsePrefix("10.62.64.0/22"),
	netip.MustParsePrefix("10.57.64.0/22"),
	netip.MustParsePrefix("10.53.64.0/22"),
	netip.MustParsePrefix("172.16.212.0/22"),
	netip.MustParsePrefix("192.168.212.0/22"),
}

// broadest is the length of prefix from which on a route says where something is. Shorter ones, such as 0.0.0.0/1 of a
// VPN, only say where all the rest is.
const broadest = 4

// ParseSubnets reads subnets as a person writes them: "auto" for none, else one of IPv4 and, after a comma, one of IPv6.
func ParseSubnets(text string) ([]netip.Prefix, error) {
	if text == "auto" {
		return nil, nil
	}
	var subnets []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		s, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("subnet %q: want an address and a length, such as 10.90.0.0/22", strings.TrimSpace(part))
		}
		subnets = append(subnets, s)
	}
	return subnets, checkSubnets(subnets)
}

// checkSubnets finds what cannot serve: one subnet of IPv4 is needed, and one of IPv6 may follow it. None is fine too.
func checkSubnets(subnets []netip.Prefix) error {
	for i, s := range subnets {
		switch {
		case !s.IsValid() || s != s.Masked() || s.Addr().Is4In6():
			return fmt.Errorf("subnet %s: not the first address of a subnet with its length", s)
		case i == 0 && (!s.Addr().Is4() || s.Bits() < 8 || s.Bits() > 29):
			return fmt.Errorf("subnet %s: the first must be of IPv4, with a length from 8 to 29", s)
		case i == 1 && (!s.Addr().Is6() || s.Bits() < 32 || s.Bits() > 96):
			return fmt.Errorf("subnet %s: the second must be of IPv6, with a length from 32 to 96", s)
		case i > 1:
			return fmt.Errorf("subnet %s: there is one of IPv4 and one of IPv6 at most", s)
		}
	}
	return nil
}

// chooseSubnets takes the first candidate that overlaps nothing in use, and with IPv6 a random subnet of unique local
// addresses (RFC 4193).
func chooseSubnets(used []netip.Prefix, ipv6 bool) ([]netip.Prefix, error) {
	i := slices.IndexFunc(candidates, func(c netip.Prefix) bool { return !anyOverlap(c, used) })
	if i < 0 {
		return nil, errors.New("choose subnet: the machine has addresses or routes in all that were tried; name a free one as subnets of [network]")
	}
	subnets := []netip.Prefix{candidates[i]}
	for ipv6 && len(subnets) < 2 {
		var a [16]byte
		_, _ = rand.Read(a[1:6]) // never fails
		a[0] = 0xfd
		if s := netip.PrefixFrom(netip.AddrFrom16(a), 64); !anyOverlap(s, used) {
			subnets = append(subnets, s)
		}
	}
	return subnets, nil
}

func anyOverlap(p netip.Prefix, with []netip.Prefix) bool {
	return slices.ContainsFunc(with, p.Overlaps)
}

// usedPrefixes are the subnets of all addresses and routes of the machine but those of the bridge.
func usedPrefixes(h *netlink.Handle, bridge string) ([]netip.Prefix, error) {
	own := -1
	if link, err := h.LinkByName(bridge); err == nil {
		own = link.Attrs().Index
	} else if !isNotFound(err) {
		return nil, fmt.Errorf("look for bridge %s: %w", bridge, err)
	}
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if p, ok := prefixOf(n); ok && p.Bits() >= broadest {
			used = append(used, p)
		}
	}
	addresses, err := whole(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_ALL) })
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
	routes, err := whole(func() ([]netlink.Route, error) {
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

// whole repeats a listing that was interrupted by a change, a few times.
func whole[T any](list func() ([]T, error)) ([]T, error) {
	for range 5 {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return list()
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[netlink.LinkNotFoundError](err)
	return ok || errors.Is(err, unix.ENODEV)
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	ones, bits := n.Mask.Size()
	if a = a.Unmap(); a.BitLen() != bits {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, ones).Masked(), true
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}

// at is the address with this number in a subnet.
func at(s netip.Prefix, number uint32) netip.Addr {
	raw := s.Addr().AsSlice()
	low := raw[len(raw)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)|number)
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// numberOf is the inverse of at.
func numberOf(s netip.Prefix, a netip.Addr) uint32 {
	raw, first := a.AsSlice(), s.Addr().AsSlice()
	return binary.BigEndian.Uint32(raw[len(raw)-4:]) - binary.BigEndian.Uint32(first[len(first)-4:])
}

// gatewayNumber is the machine's in each subnet.
const gatewayNumber = 1

// gateways are the machine's addresses on the bridge.
func gateways(subnets []netip.Prefix) []netip.Addr {
	var all []netip.Addr
	for _, s := range subnets {
		all = append(all, at(s, gatewayNumber))
	}
	return all
}

// allocate finds addresses for a pod: those with its last number where that is free, else the first number that no pod had
// last, else the one that was used longest ago. An address has the same number in both subnets.
func allocate(subnets []netip.Prefix, pod string, taken func(netip.Addr) bool, last []lastAddress) ([]netip.Addr, error) {
	v4 := subnets[0]
	end := uint32(1)<<(32-v4.Bits()) - 1 // the broadcast address
	usable := func(a netip.Addr) bool {
		if !v4.Contains(a) || taken(a) {
			return false
		}
		n := numberOf(v4, a)
		return n > gatewayNumber && n < end
	}
	remembered := map[netip.Addr]bool{}
	for _, l := range last {
		if l.Pod == pod && usable(l.IP) {
			return pair(subnets, numberOf(v4, l.IP)), nil
		}
		remembered[l.IP] = true
	}
	for n := uint32(gatewayNumber + 1); n < end; n++ {
		if a := at(v4, n); !remembered[a] && !taken(a) {
			return pair(subnets, n), nil
		}
	}
	for _, l := range last {
		if usable(l.IP) {
			return pair(subnets, numberOf(v4, l.IP)), nil
		}
	}
	return nil, fmt.Errorf("find an address: all of %s are taken", v4)
}

func pair(subnets []netip.Prefix, number uint32) []netip.Addr {
	var all []netip.Addr
	for _, s := range subnets {
		all = append(all, at(s, number))
	}
	return all
}
