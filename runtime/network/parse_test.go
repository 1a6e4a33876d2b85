package network

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseSubnets(t *testing.T) {
	for text, want := range map[string]string{
		"auto": "[]", "10.90.0.0/22": "[10.90.0.0/22]", "10.90.0.0/22, fd00:90::/64": "[10.90.0.0/22 fd00:90::/64]",
		"": "want an address", "10.90.0.0": "want an address", "10.90.0.1/22": "not the first address", "fd00:90::/64": "must be of IPv4",
		"10.90.0.0/22,10.91.0.0/22": "must be of IPv6", "10.90.0.0/22,fd00:90::/64,fd00:91::/64": "at most",
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
