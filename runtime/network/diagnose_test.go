package network

import (
	"os"
	"strings"
	"testing"
)

func TestLegacyFinding(t *testing.T) {
	target := diagnosis{Bridge: "podstead0"}
	for _, c := range []struct {
		rules   string
		listErr error
		bad     bool
	}{
		{"", nil, false},
		{"-P FORWARD ACCEPT\n", nil, false},
		{"-P FORWARD DROP\n", nil, true},
		{"-P FORWARD ACCEPT\n-A FORWARD -j REJECT --reject-with icmp-host-prohibited\n", nil, true},
		{"-P FORWARD DROP\n-A FORWARD -i podstead0 -j ACCEPT\n", nil, false},
		{"-P FORWARD ACCEPT\n-A FORWARD -i eth0 -j ACCEPT\n", nil, false},
		{"", os.ErrNotExist, true},
	} {
		if got, bad := target.legacyFinding("iptables-legacy", c.rules, c.listErr); bad != c.bad ||
			bad && (got.Problem == "" || !strings.Contains(got.Hint, "podstead0")) {
			t.Errorf("%q, %v: %v, %+v", c.rules, c.listErr, bad, got)
		}
	}
}
