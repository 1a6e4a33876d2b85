package network

import (
	"net/netip"
	"testing"

	"github.com/podstead/podstead/spec"
)

func TestOverlaps(t *testing.T) {
	port := func(ip string, number uint16, protocol spec.Protocol) Port {
		p := Port{HostPort: number, ContainerPort: 80, Protocol: protocol}
		if ip != "" {
			p.HostIP = netip.MustParseAddr(ip)
		}
		return p
	}
	for _, c := range []struct {
		a, b Port
		want bool
	}{
		{port("", 80, ""), port("", 80, spec.ProtocolTCP), true},
		{port("", 80, ""), port("", 81, ""), false},
		{port("", 80, ""), port("", 80, spec.ProtocolUDP), false},
		{port("", 80, ""), port("192.0.2.1", 80, ""), true},
		{port("", 80, ""), port("2001:db8::1", 80, ""), true},
		{port("0.0.0.0", 80, ""), port("192.0.2.1", 80, ""), true},
		{port("0.0.0.0", 80, ""), port("::", 80, ""), false},
		{port("::", 80, ""), port("2001:db8::1", 80, ""), true},
		{port("192.0.2.1", 80, ""), port("192.0.2.2", 80, ""), false},
		{port("192.0.2.1", 80, ""), port("192.0.2.1", 80, ""), true},
	} {
		if c.a.Overlaps(c.b) != c.want || c.b.Overlaps(c.a) != c.want {
			t.Errorf("%s and %s: want overlap %v", c.a, c.b, c.want)
		}
	}
}
