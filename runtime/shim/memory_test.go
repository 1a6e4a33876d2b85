package shim

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestFreeMemory expects no collection if there was none since the last time: the first one makes a shim larger.
func TestFreeMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no other collections
	count := func() int64 {
		var stats debug.GCStats
		debug.ReadGCStats(&stats)
		return stats.NumGC
	}
	before := count()
	if got := freeMemory(before); got != before || count() != before {
		t.Errorf("returned %d, %d collections, want %d", got, count(), before)
	}
	if got := freeMemory(before - 1); got != before+1 || count() != before+1 {
		t.Errorf("after a collection: returned %d, %d collections, want %d", got, count(), before+1)
	}
}

// TestFirstCollection expects frequent collections after the first one.
func TestFirstCollection(t *testing.T) {
	const before = 100
	defer debug.SetGCPercent(debug.SetGCPercent(before))
	postponeCollection()
	percent := func() int {
		now := debug.SetGCPercent(before)
		debug.SetGCPercent(now)
		return now
	}
	if got := percent(); got != before {
		t.Errorf("%d%% before the first collection, want %d%%", got, before)
	}
	for end := time.Now().Add(time.Minute); percent() != gcPercent; {
		if time.Now().After(end) {
			t.Fatalf("%d%% after a collection, want %d%%", percent(), gcPercent)
		}
		runtime.GC()
	}
}
