package subnet

import (
	"encoding/binary"
	"net"
	"net/netip"
)

func PrefixOf(n *net.IPNet) (netip.Prefix, bool) {
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

func IPNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}

// at is the address with this number in a subnet.
func At(s netip.Prefix, number uint32) netip.Addr {
	raw := s.Addr().AsSlice()
	low := raw[len(raw)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)|number)
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// Number is the inverse of at.
func Number(s netip.Prefix, a netip.Addr) uint32 {
	raw, first := a.AsSlice(), s.Addr().AsSlice()
	return binary.BigEndian.Uint32(raw[len(raw)-4:]) - binary.BigEndian.Uint32(first[len(first)-4:])
}

// GatewayNumber is the machine's in each subnet.
const GatewayNumber = 1

// Gateways are the machine's addresses on the bridge.
func Gateways(subnets []netip.Prefix) []netip.Addr {
	var all []netip.Addr
	for _, s := range subnets {
		all = append(all, At(s, GatewayNumber))
	}
	return all
}

// HardwareAddr is that of the link with an address of IPv4. A pod that takes the address of another has its hardware
// address too, so that no neighbour's ARP cache is wrong.
func HardwareAddr(a netip.Addr) net.HardwareAddr {
	raw := a.As4()
	return append(net.HardwareAddr{0x0a, 0x58}, raw[:]...)
}
