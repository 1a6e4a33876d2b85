package ruleset

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"

	"github.com/podstead/podstead/runtime/network/hostport"
	"github.com/podstead/podstead/spec"
)

func TestElement(t *testing.T) {
	for i, ip := range []string{"10.77.64.2", "fd00::2"} {
		want := hostport.Port{HostIP: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.IPv6Unspecified()}[i], HostPort: 0x1234, ContainerPort: 0x5678, Protocol: spec.ProtocolSCTP}
		got, at, ok := parseElement(families[i], element(families[i], want, netip.MustParseAddr(ip)))
		if diff := cmp.Diff(want, got, compareAddr); diff != "" || at.String() != ip || !ok {
			t.Errorf("to %s, %v (-want +got):\n%s", at, ok, diff)
		}
		if _, _, ok := parseElement(families[i], nftables.SetElement{Key: []byte{1}, Val: []byte{2}}); ok {
			t.Error("a truncated element was accepted")
		}
	}
}

var compareAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
