package engine

import (
	"testing"
	"time"
)

// TestUntilRound expects that waits that begin at different times end at the same time.
func TestUntilRound(t *testing.T) {
	round := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, offset := range []time.Duration{0, 1, time.Second, 14 * time.Second, 15*time.Second - 1} {
		now := round.Add(offset)
		wait := untilRound(now, 15*time.Second)
		if end := now.Add(wait); wait <= 0 || !end.Equal(round.Add(15*time.Second)) {
			t.Errorf("from %v after: %v", offset, wait)
		}
	}
}
