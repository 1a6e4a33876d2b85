package network

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// prefixOf converts an address with a mask to its subnet.
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

// ipNet returns an address with a prefix length, as netlink takes it.
func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}

// addressAt returns the address with a number in a subnet.
func addressAt(s netip.Prefix, number uint32) netip.Addr {
	raw := s.Addr().AsSlice()
	low := raw[len(raw)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)|number)
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// addressNumber is the inverse of addressAt.
func addressNumber(s netip.Prefix, a netip.Addr) uint32 {
	raw, first := a.AsSlice(), s.Addr().AsSlice()
	return binary.BigEndian.Uint32(raw[len(raw)-4:]) - binary.BigEndian.Uint32(first[len(first)-4:])
}

// gatewayNumber is the number of the host's address in each subnet.
const gatewayNumber = 1

// gatewaysOf returns the host's addresses on the bridge, IPv4 first. Pods reach the host there.
func gatewaysOf(subnets []netip.Prefix) []netip.Addr {
	var all []netip.Addr
	for _, s := range subnets {
		all = append(all, addressAt(s, gatewayNumber))
	}
	return all
}

// hardwareAddrOf returns the hardware address of a link with an IPv4 address. A pod that takes over the address of another
// also takes over the hardware address, so ARP caches stay valid.
func hardwareAddrOf(a netip.Addr) net.HardwareAddr {
	raw := a.As4()
	return append(net.HardwareAddr{0x0a, 0x58}, raw[:]...)
}
