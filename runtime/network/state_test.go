package network

import (
	"fmt"
	"net/netip"
	"testing"
)

func TestRemember(t *testing.T) {
	var s State
	ip := func(i int) netip.Addr { return addressAt(netip.MustParsePrefix("10.0.0.0/16"), uint32(i)) }
	for i := range maxRemembered + 5 {
		if !s.Remember(fmt.Sprint("pod", i), ip(i)) {
			t.Fatalf("pod %d: no change reported", i)
		}
	}
	if len(s.Addresses) != maxRemembered || s.Addresses[0].Pod != "pod5" {
		t.Errorf("%d addresses from %v, want %d from pod5", len(s.Addresses), s.Addresses[0], maxRemembered)
	}
	if s.Remember("pod5", ip(5)) || s.Addresses[0].Pod != "pod6" || s.Addresses[maxRemembered-1].Pod != "pod5" {
		t.Error("remembering pod5 again did not move it to the end, or reported a change")
	}
	if !s.Remember("other", ip(5)) || len(s.Addresses) != maxRemembered {
		t.Error("an address is remembered for two pods")
	}
}
