package network

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

func TestElement(t *testing.T) {
	for i, ip := range []string{"10.77.64.2", "fd00::2"} {
		want := Port{
			HostIP: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.IPv6Unspecified()}[i], HostPort: 0x1234, ContainerPort: 0x5678,
			Protocol: spec.ProtocolSCTP,
		}
		got, at, ok := parseElement(families[i], element(families[i], want, netip.MustParseAddr(ip)))
		if diff := cmp.Diff(want, got, rulesetCompareAddr); diff != "" || at.String() != ip || !ok {
			t.Errorf("to %s, %v (-want +got):\n%s", at, ok, diff)
		}
		if _, _, ok := parseElement(families[i], nftables.SetElement{Key: []byte{1}, Val: []byte{2}}); ok {
			t.Error("a truncated element was accepted")
		}
	}
}

var rulesetCompareAddr = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// TestOnce: a flush that times out has the same error for each message.
func TestOnce(t *testing.T) {
	timeout := errors.New("netlink receive: i/o timeout")
	err := once(fmt.Errorf("conn.Receive: %w", errors.Join(timeout, timeout, timeout, unix.ENOENT)))
	if want := "conn.Receive: netlink receive: i/o timeout\nno such file or directory"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if !errors.Is(staleError(err), errStale) {
		t.Error("the causes are lost")
	}
}
