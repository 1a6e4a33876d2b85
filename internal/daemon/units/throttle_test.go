package units

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestChanges checks the first call, the call after a quiet time, the single call for the changes of an interval, and the end.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		next := make(chan struct{})
		change := func() {
			mu.Lock()
			defer mu.Unlock()
			close(next)
			next = make(chan struct{})
		}
		changed := func() <-chan struct{} {
			mu.Lock()
			defer mu.Unlock()
			return next
		}
		var turns []time.Duration
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Changes(ctx, time.Second, changed, func() { turns = append(turns, time.Since(start)) })
		}()
		for _, after := range []time.Duration{5 * time.Second, 100 * time.Millisecond, 100 * time.Millisecond, 10 * time.Second} {
			time.Sleep(after)
			synctest.Wait()
			change()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []time.Duration{0, 5 * time.Second, 6 * time.Second, 15200 * time.Millisecond}; !slices.Equal(turns, want) {
			t.Errorf("turns at %v, want %v", turns, want)
		}
		cancel()
		<-done
	})
}
