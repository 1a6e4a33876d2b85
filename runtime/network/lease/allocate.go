package lease

import (
	"fmt"
	"net/netip"

	"github.com/podstead/podstead/runtime/network/subnet"
)

// Allocate selects the addresses of a pod. It prefers the pod's last address, then the first address that no pod had
// last, then the least recently used one. Addresses of one pod have the same number in both subnets.
func Allocate(subnets []netip.Prefix, pod string, taken func(netip.Addr) bool, last []LastAddress) ([]netip.Addr, error) {
	v4 := subnets[0]
	end := uint32(1)<<(32-v4.Bits()) - 1 // the broadcast address
	usable := func(a netip.Addr) bool {
		if !v4.Contains(a) || taken(a) {
			return false
		}
		n := subnet.Number(v4, a)
		return n > subnet.GatewayNumber && n < end
	}
	remembered := map[netip.Addr]bool{}
	for _, l := range last {
		if l.Pod == pod && usable(l.IP) {
			return pair(subnets, subnet.Number(v4, l.IP)), nil
		}
		remembered[l.IP] = true
	}
	for n := uint32(subnet.GatewayNumber + 1); n < end; n++ {
		if a := subnet.At(v4, n); !remembered[a] && !taken(a) {
			return pair(subnets, n), nil
		}
	}
	for _, l := range last {
		if usable(l.IP) {
			return pair(subnets, subnet.Number(v4, l.IP)), nil
		}
	}
	return nil, fmt.Errorf("allocate address: all addresses in %s are in use", v4)
}

func pair(subnets []netip.Prefix, number uint32) []netip.Addr {
	var all []netip.Addr
	for _, s := range subnets {
		all = append(all, subnet.At(s, number))
	}
	return all
}
