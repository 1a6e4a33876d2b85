package network

import (
	"fmt"
	"net/netip"
)

// allocateAddresses selects the addresses of a pod. It prefers the pod's last address, then the first address that no pod had
// last, then the least recently used one. Addresses of one pod have the same number in both subnets.
func allocateAddresses(subnets []netip.Prefix, pod string, taken func(netip.Addr) bool, last []LastAddress) ([]netip.Addr, error) {
	v4 := subnets[0]
	end := uint32(1)<<(32-v4.Bits()) - 1 // the broadcast address
	usable := func(a netip.Addr) bool {
		if !v4.Contains(a) || taken(a) {
			return false
		}
		n := addressNumber(v4, a)
		return n > gatewayNumber && n < end
	}
	remembered := map[netip.Addr]bool{}
	for _, l := range last {
		if l.Pod == pod && usable(l.IP) {
			return pairOf(subnets, addressNumber(v4, l.IP)), nil
		}
		remembered[l.IP] = true
	}
	for n := uint32(gatewayNumber + 1); n < end; n++ {
		if a := addressAt(v4, n); !remembered[a] && !taken(a) {
			return pairOf(subnets, n), nil
		}
	}
	for _, l := range last {
		if usable(l.IP) {
			return pairOf(subnets, addressNumber(v4, l.IP)), nil
		}
	}
	return nil, fmt.Errorf("allocate address: all addresses in %s are in use", v4)
}

func pairOf(subnets []netip.Prefix, number uint32) []netip.Addr {
	var all []netip.Addr
	for _, s := range subnets {
		all = append(all, addressAt(s, number))
	}
	return all
}
