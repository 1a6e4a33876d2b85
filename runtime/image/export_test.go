package image

import (
	"testing"
	"time"
)

// WaitForWaiters waits until n callers share the work that is under way.
func WaitForWaiters(t *testing.T, s *Store, n int) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		waiting := 0
		s.flights.mu.Lock()
		for _, fl := range s.flights.air {
			waiting += fl.waiters
		}
		s.flights.mu.Unlock()
		if waiting == n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d callers wait, want %d", waiting, n)
		}
	}
}
