package daemon

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestReturnMemory expects that unused memory is returned when pods have rested, once for each rest, and only if it is worth it. The
// heap has its small target from then until the next change.
func TestReturnMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var change atomic.Pointer[chan struct{}]
		var unused, freed atomic.Uint64
		var target atomic.Int64
		target.Store(busyPercent)
		renew := func() *chan struct{} { c := make(chan struct{}); return change.Swap(&c) }
		renew()
		unused.Store(minUnused)
		go returnMemory(ctx, func() <-chan struct{} { return *change.Load() }, unused.Load, func() {
			if target.Load() != restPercent {
				t.Error("memory was returned with the target of a busy daemon")
			}
			freed.Add(1)
		}, func(percent int) { target.Store(int64(percent)) })
		after := func(d time.Duration, want uint64) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := freed.Swap(0); got != want {
				t.Errorf("memory was returned %d times, want %d", got, want)
			}
		}
		changed := func() {
			close(*renew())
			synctest.Wait()
			if target.Load() != busyPercent {
				t.Errorf("target %d%% after a change", target.Load())
			}
		}
		after(restDelay, 1) // of the start of the daemon
		after(24*time.Hour, 0)
		for range 10 {
			changed()
			after(restDelay/2, 0)
		}
		after(restDelay, 1)
		changed()
		for range int(busyLimit / (restDelay / 2)) {
			after(restDelay/2, 0)
			close(*renew())
		}
		if after(0, 0); target.Load() != restPercent {
			t.Errorf("target %d%% of a daemon that was busy for %v", target.Load(), busyLimit)
		}
		after(restDelay, 1)
		unused.Store(minUnused - 1)
		changed()
		after(time.Hour, 0)
		changed()
		cancel()
		unused.Store(minUnused)
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
