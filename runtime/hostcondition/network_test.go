package hostcondition

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestOffline(t *testing.T) {
	const up = unix.IFF_UP | unix.IFF_RUNNING
	link := func(index int, raw uint32, flags net.Flags) netlink.Link {
		return &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: index, RawFlags: raw, Flags: flags}}
	}
	address := func(index int, cidr string, flags int) netlink.Addr {
		ip, prefix, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		return netlink.Addr{LinkIndex: index, IPNet: &net.IPNet{IP: ip, Mask: prefix.Mask}, Flags: flags}
	}
	route := func(family, index int, to string) netlink.Route {
		r := netlink.Route{Family: family, LinkIndex: index, Type: unix.RTN_UNICAST}
		if to != "" {
			_, r.Dst, _ = net.ParseCIDR(to)
		}
		return r
	}
	multipath := func(flags int) netlink.Route {
		r := route(netlink.FAMILY_V4, 0, "")
		r.MultiPath = []*netlink.NexthopInfo{{LinkIndex: 3, Flags: unix.RTNH_F_LINKDOWN}, {LinkIndex: 2, Flags: flags}}
		return r
	}
	down, unreachable := route(netlink.FAMILY_V4, 2, ""), route(netlink.FAMILY_V6, 1, "::/0")
	down.Flags, unreachable.Type = unix.RTNH_F_LINKDOWN, unix.RTN_UNREACHABLE
	lo, eth, noCarrier, bridge := link(1, up, net.FlagLoopback), link(2, up, 0), link(2, unix.IFF_UP, 0), link(3, up, 0)
	v4, v6 := route(netlink.FAMILY_V4, 2, "0.0.0.0/0"), route(netlink.FAMILY_V6, 2, "::/0")
	usable := address(2, "192.0.2.7/24", 0)
	for name, test := range map[string]struct {
		routes    []netlink.Route
		links     []netlink.Link
		addresses []netlink.Addr
		want      string
	}{
		"nothing":              {nil, []netlink.Link{lo}, []netlink.Addr{address(1, "127.0.0.1/8", 0)}, "no default route"},
		"online":               {[]netlink.Route{v4}, []netlink.Link{lo, eth}, []netlink.Addr{usable}, ""},
		"destination is nil":   {[]netlink.Route{route(netlink.FAMILY_V4, 2, "")}, []netlink.Link{eth}, []netlink.Addr{usable}, ""},
		"IPv6":                 {[]netlink.Route{v6}, []netlink.Link{eth}, []netlink.Addr{address(2, "2001:db8::7/64", 0)}, ""},
		"unique local address": {[]netlink.Route{v6}, []netlink.Link{eth}, []netlink.Addr{address(2, "fd00::7/64", 0)}, ""},
		"private address":      {[]netlink.Route{v4}, []netlink.Link{eth}, []netlink.Addr{address(2, "10.1.2.3/8", 0)}, ""},
		"multipath":            {[]netlink.Route{multipath(0)}, []netlink.Link{eth, bridge}, []netlink.Addr{usable}, ""},
		"address on loopback":  {[]netlink.Route{v4}, []netlink.Link{lo, eth}, []netlink.Addr{address(1, "192.0.2.1/32", 0)}, ""},
		"no carrier":           {[]netlink.Route{v4}, []netlink.Link{noCarrier}, []netlink.Addr{usable}, "no default route"},
		"route is down":        {[]netlink.Route{down}, []netlink.Link{eth}, []netlink.Addr{usable}, "no default route"},
		"all next hops are down": {
			[]netlink.Route{multipath(unix.RTNH_F_DEAD)}, []netlink.Link{eth, bridge}, []netlink.Addr{usable}, "no default route",
		},
		"only another destination": {
			[]netlink.Route{route(netlink.FAMILY_V4, 2, "192.0.2.0/24")}, []netlink.Link{eth}, []netlink.Addr{usable}, "no default route",
		},
		"half of the addresses": {
			[]netlink.Route{route(netlink.FAMILY_V4, 2, "128.0.0.0/1")}, []netlink.Link{eth}, []netlink.Addr{usable}, "no default route",
		},
		"unreachable route": {
			[]netlink.Route{unreachable}, []netlink.Link{lo}, []netlink.Addr{address(1, "2001:db8::7/128", 0)}, "no default route",
		},
		"no address": {[]netlink.Route{v4}, []netlink.Link{eth}, nil, "no address"},
		"link-local address": {
			[]netlink.Route{v4}, []netlink.Link{eth}, []netlink.Addr{address(2, "169.254.3.4/16", 0)}, "no address",
		},
		"IPv6 link-local address": {[]netlink.Route{v6}, []netlink.Link{eth}, []netlink.Addr{address(2, "fe80::1/64", 0)}, "no address"},
		"address of another link": {
			[]netlink.Route{v4}, []netlink.Link{eth, bridge}, []netlink.Addr{address(3, "10.88.0.1/22", 0)}, "no address",
		},
		"loopback address": {
			[]netlink.Route{v4}, []netlink.Link{lo, eth}, []netlink.Addr{address(1, "127.0.0.1/8", 0)}, "no address",
		},
		"another family": {[]netlink.Route{v6}, []netlink.Link{eth}, []netlink.Addr{usable}, "no address"},
		"tentative address": {
			[]netlink.Route{v6}, []netlink.Link{eth}, []netlink.Addr{address(2, "2001:db8::7/64", unix.IFA_F_TENTATIVE)}, "no address",
		},
	} {
		if got := offline(test.routes, test.links, test.addresses); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestOnline lists what this host has.
func TestOnline(t *testing.T) {
	if unmet, err := online(); err != nil {
		t.Error(err)
	} else {
		t.Logf("this host: %q", unmet)
	}
}
