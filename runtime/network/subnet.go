package network

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// candidateSubnets are the subnets that "auto" chooses from, with 1,021 pods each. They avoid the defaults of other software:
// Docker (172.17 to 172.31, 192.168), Podman (10.88 and up), CRI-O (10.85), k3s (10.42, 10.43), CNI examples (10.22),
// flannel (10.244), Weave (10.32 to 10.47), kubeadm (10.96 to 10.111), microk8s (10.1, 10.152), nerdctl (10.4), libvirt
// (192.168.122), Tailscale (100.64/10), and the lowest subnets of 10, 172.16 and 192.168, which are common in homes and
// offices. The last two are for hosts with a route to all of 10.0.0.0/8.
var candidateSubnets = []netip.Prefix{
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

// ParseSubnets parses the subnets of a network: "auto" for none, or one IPv4 subnet and optionally, after a comma, one IPv6 subnet.
func ParseSubnets(text string) ([]netip.Prefix, error) {
	if text == "auto" {
		return nil, nil
	}
	var subnets []netip.Prefix
	for part := range strings.SplitSeq(text, ",") {
		s, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("subnet %q: must be an address and a prefix length, such as 10.90.0.0/22", strings.TrimSpace(part))
		}
		subnets = append(subnets, s)
	}
	return subnets, checkSubnets(subnets)
}

// checkSubnets validates subnets: one of IPv4, and optionally one of IPv6. An empty list is valid.
func checkSubnets(subnets []netip.Prefix) error {
	for i, s := range subnets {
		switch {
		case !s.IsValid() || s != s.Masked() || s.Addr().Is4In6():
			return fmt.Errorf("subnet %s: must be the first address of a subnet and its prefix length", s)
		case i == 0 && (!s.Addr().Is4() || s.Bits() < 8 || s.Bits() > 29):
			return fmt.Errorf("subnet %s: first subnet must be IPv4 with a prefix length from 8 to 29", s)
		case i == 1 && (!s.Addr().Is6() || s.Bits() < 32 || s.Bits() > 96):
			return fmt.Errorf("subnet %s: second subnet must be IPv6 with a prefix length from 32 to 96", s)
		case i > 1:
			return fmt.Errorf("subnet %s: must be at most one IPv4 and one IPv6 subnet", s)
		}
	}
	return nil
}

// chooseSubnets returns the first candidate that overlaps no used subnet, and with ipv6 also a random unique local subnet (RFC
// 4193).
func chooseSubnets(used []netip.Prefix, ipv6 bool) ([]netip.Prefix, error) {
	i := slices.IndexFunc(candidateSubnets, func(c netip.Prefix) bool { return !overlapsAny(c, used) })
	if i < 0 {
		return nil, errors.New("choose subnet: all candidates overlap addresses or routes of the host; set subnets in [network]")
	}
	subnets := []netip.Prefix{candidateSubnets[i]}
	for ipv6 && len(subnets) < 2 {
		var a [16]byte
		_, _ = rand.Read(a[1:6]) // never fails
		a[0] = 0xfd
		if s := netip.PrefixFrom(netip.AddrFrom16(a), 64); !overlapsAny(s, used) {
			subnets = append(subnets, s)
		}
	}
	return subnets, nil
}

// overlapsAny reports whether p overlaps one of the prefixes.
func overlapsAny(p netip.Prefix, with []netip.Prefix) bool {
	return slices.ContainsFunc(with, p.Overlaps)
}
