package daemon

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// TestReturnMemory expects that unused memory is returned when pods have rested, once for each rest, and only if it is worth it.
func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		change, unused, freed := make(chan struct{}), uint64(minUnused), 0
		go returnMemory(ctx, func() <-chan struct{} { return change }, func() uint64 { return unused }, func() { freed++ })
		after := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if freed != want {
				t.Errorf("memory was returned %d times, want %d", freed, want)
			}
			freed = 0
		}
		changed := func() {
			old := change
			change = make(chan struct{})
			close(old)
			synctest.Wait()
		}
		after(restDelay, 1) // of the start of the daemon
		after(24*time.Hour, 0)
		for range 10 {
			changed()
			after(restDelay/2, 0)
		}
		after(restDelay, 1)
		unused = minUnused - 1
		changed()
		after(time.Hour, 0)
		changed()
		cancel()
		unused = minUnused
		after(time.Hour, 0)
	})
}

var sink []byte

// TestUnusedMemory expects that garbage counts as unused, also after a collection, but not after it was returned.
func TestUnusedMemory(t *testing.T) {
	const size = 64 << 20
	debug.FreeOSMemory()
	before := unusedMemory()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	sink = make([]byte, size)
	sink = nil
	if got := unusedMemory(); got < before+size*9/10 {
		t.Errorf("%d bytes unused after garbage of %d bytes, %d before", got, size, before)
	}
	debug.FreeOSMemory()
	if got := unusedMemory(); got > before+size/2 {
		t.Errorf("%d bytes unused after they were returned", got)
	}
}
