package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		used []netip.Prefix
		want string // "" for an error
	}{
		{nil, "10.77.64.0/22"},
		{subnetPrefixes("10.77.66.0/24", "10.78.64.1/32", "192.168.0.0/16"), "10.79.64.0/22"},
		{subnetPrefixes("10.0.0.0/8"), "172.16.212.0/22"},
		{subnetPrefixes("10.0.0.0/8", "172.16.0.0/12"), "192.168.212.0/22"},
		{subnetPrefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"), ""},
	} {
		got, err := chooseSubnets(c.used, true)
		if c.want == "" {
			if err == nil {
				t.Errorf("%v: chose %v", c.used, got)
			}
			continue
		}
		if err != nil || got[0].String() != c.want || checkSubnets(got) != nil || !got[1].Addr().IsPrivate() {
			t.Errorf("%v: got %v, %v, want %s and a unique local subnet", c.used, got, err, c.want)
		}
	}
	others := subnetPrefixes("172.17.0.0/16", "172.18.0.0/15", "172.20.0.0/14", "172.24.0.0/13", "192.168.0.0/20", "10.88.0.0/13",
		"10.96.0.0/11",
		"10.128.0.0/9", "10.85.0.0/16", "10.42.0.0/15", "10.22.0.0/16", "10.32.0.0/12", "10.0.0.0/13", "192.168.122.0/24", "100.64.0.0/10")
	for i, c := range candidateSubnets {
		if overlapsAny(c, others) || overlapsAny(c, candidateSubnets[:i]) || checkSubnets(candidateSubnets[i:i+1]) != nil {
			t.Errorf("invalid candidate %s", c)
		}
	}
}

func TestSubnetCheck(t *testing.T) {
	for _, c := range []struct {
		subnets []netip.Prefix
		valid   bool
	}{
		{nil, true},
		{subnetPrefixes("10.1.0.0/24"), true},
		{subnetPrefixes("10.1.0.0/24", "fd00::/64"), true},
		{subnetPrefixes("10.1.0.1/24"), false},
		{subnetPrefixes("10.1.0.0/30"), false},
		{subnetPrefixes("fd00::/64"), false},
		{subnetPrefixes("10.1.0.0/24", "10.2.0.0/24"), false},
		{subnetPrefixes("10.1.0.0/24", "fd00::/112"), false},
		{subnetPrefixes("10.1.0.0/24", "fd00::/64", "fd01::/64"), false},
		{[]netip.Prefix{{}}, false},
	} {
		if err := checkSubnets(c.subnets); (err == nil) != c.valid {
			t.Errorf("%v: %v", c.subnets, err)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"auto": "[]", "10.90.0.0/22": "[10.90.0.0/22]", "10.90.0.0/22, fd00:90::/64": "[10.90.0.0/22 fd00:90::/64]",
		"": "must be an address", "10.90.0.0": "must be an address", "10.90.0.1/22": "must be the first address",
		"fd00:90::/64":              "must be IPv4",
		"10.90.0.0/22,10.91.0.0/22": "must be IPv6", "10.90.0.0/22,fd00:90::/64,fd00:91::/64": "at most one",
	} {
		subnets, err := ParseSubnets(text)
		got := fmt.Sprint(subnets)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func subnetPrefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}
