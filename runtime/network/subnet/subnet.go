package subnet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Candidates are the subnets that "auto" chooses from: 1,021 pods each, out of the way of what others use by default.
// Docker has 172.17 to 172.31 and 192.168; Podman 10.88 and up; CRI-O 10.85; k3s 10.42 and 10.43; CNI's examples 10.22,
// flannel 10.244, Weave 10.32 to 10.47, kubeadm 10.96 to 10.111, microk8s 10.1 and 10.152, nerdctl 10.4, libvirt
// 192.168.122, Tailscale 100.64/10, and homes and offices the lowest of 10, 172.16 and 192.168. The last two are for
// machines with a route to all of 10.0.0.0/8.
var Candidates = []netip.Prefix{
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

// Parse reads subnets as a person writes them: "auto" for none, else one of IPv4 and, after a comma, one of IPv6.
func Parse(text string) ([]netip.Prefix, error) {
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
	return subnets, Check(subnets)
}

// Check finds what cannot serve: one subnet of IPv4 is needed, and one of IPv6 may follow it. None is fine too.
func Check(subnets []netip.Prefix) error {
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

// Choose takes the first candidate that overlaps nothing in use, and with IPv6 a random subnet of unique local
// addresses (RFC 4193).
func Choose(used []netip.Prefix, ipv6 bool) ([]netip.Prefix, error) {
	i := slices.IndexFunc(Candidates, func(c netip.Prefix) bool { return !OverlapsAny(c, used) })
	if i < 0 {
		return nil, errors.New("choose subnet: the machine has addresses or routes in all that were tried; name a free one as subnets of [network]")
	}
	subnets := []netip.Prefix{Candidates[i]}
	for ipv6 && len(subnets) < 2 {
		var a [16]byte
		_, _ = rand.Read(a[1:6]) // never fails
		a[0] = 0xfd
		if s := netip.PrefixFrom(netip.AddrFrom16(a), 64); !OverlapsAny(s, used) {
			subnets = append(subnets, s)
		}
	}
	return subnets, nil
}

func OverlapsAny(p netip.Prefix, with []netip.Prefix) bool {
	return slices.ContainsFunc(with, p.Overlaps)
}
