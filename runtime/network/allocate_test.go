package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestAllocate(t *testing.T) {
	small := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/29"), netip.MustParsePrefix("fd00::/64")} // usable: .2 to .6
	last := func(entries ...string) []LastAddress {
		var all []LastAddress
		for _, e := range entries {
			pod, ip, _ := strings.Cut(e, "=")
			all = append(all, LastAddress{pod, netip.MustParseAddr(ip)})
		}
		return all
	}
	for _, c := range []struct {
		name  string
		taken string
		last  []LastAddress
		want  string // "" for an error
	}{
		{"first address", "", nil, "10.0.0.2 fd00::2"},
		{"first free address", "10.0.0.2 10.0.0.3", nil, "10.0.0.4 fd00::4"},
		{"last address", "10.0.0.2", last("a=10.0.0.2", "web=10.0.0.5"), "10.0.0.5 fd00::5"},
		{"last address is in use", "10.0.0.5", last("web=10.0.0.5"), "10.0.0.2 fd00::2"},
		{"last address is in another subnet", "", last("web=192.0.2.7"), "10.0.0.2 fd00::2"},
		{"last address is the gateway", "", last("web=10.0.0.1"), "10.0.0.2 fd00::2"},
		{"last address is IPv6", "", last("web=fd00::2"), "10.0.0.2 fd00::2"},
		{"unused before last address of another pod", "", last("a=10.0.0.2", "b=10.0.0.3"), "10.0.0.4 fd00::4"},
		{"least recently used", "10.0.0.2 10.0.0.3 10.0.0.4", last("b=10.0.0.6", "a=10.0.0.5"), "10.0.0.6 fd00::6"},
		{"all in use", "10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6", nil, ""},
	} {
		taken := func(a netip.Addr) bool { return strings.Contains(c.taken, a.String()) }
		got, err := allocateAddresses(small, "web", taken, c.last)
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %s, %v; want %s", c.name, text, err, c.want)
		}
	}
}
