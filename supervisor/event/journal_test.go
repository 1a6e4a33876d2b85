package event

import (
	"testing"

	"github.com/podstead/podstead/api"
)

// TestRecorderSkipsRestoredEvents expects that restored events are not written again.
func TestRecorderSkipsRestoredEvents(t *testing.T) {
	ring := NewRing(16)
	ring.Restore([]Event{{Seq: 5, Kind: api.EventPodAccepted, Pod: "p"}})
	r := &Recorder{ring: ring, pods: func() []string { return nil }}
	events, _ := ring.Since(r.seq)
	if !r.record(events) {
		t.Error("record failed")
	}
	if again, _ := ring.Since(r.seq); len(again) > 0 {
		t.Errorf("%v would be processed again", again)
	}
}
