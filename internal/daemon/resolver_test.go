package daemon

import "testing"

// TestNameServer tests that name servers on loopback addresses are replaced, and no others.
func TestNameServer(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.53:53": "169.254.1.1:53", "[::1]:53": "169.254.1.1:53", "192.0.2.1:53": "192.0.2.1:53",
		"[2001:db8::1]:53":  "[2001:db8::1]:53",
		"[fe80::1%eth0]:53": "[fe80::1%eth0]:53",
	} {
		if got := nameServer(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
