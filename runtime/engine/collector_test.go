package engine

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/v2/pkg/gc"
)

var errDisk = errors.New("disk full")

// fakeDB counts collections, and can fail or take time.
type fakeDB struct {
	changed     func(removed bool)
	collections atomic.Int32
	fails       atomic.Bool
	takes       atomic.Int64
}

func (f *fakeDB) GarbageCollect(context.Context) (gc.Stats, error) {
	f.collections.Add(1)
	time.Sleep(time.Duration(f.takes.Load()))
	if f.fails.Load() {
		return nil, errDisk
	}
	return nil, nil
}

// started runs a test with a collector whose first collection is over. The function after expects a number of collections in a time.
func started(t *testing.T, test func(t *testing.T, c *garbageCollector, db *fakeDB, after func(d time.Duration, collections int32))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		db := &fakeDB{}
		c := start(ctx, db)
		db.changed = c.changed
		after := func(d time.Duration, want int32) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := db.collections.Swap(0); got != want {
				t.Errorf("%d collections, want %d", got, want)
			}
		}
		after(startDelay, 1)
		test(t, c, db, after)
		time.Sleep(time.Minute)
		db.collections.Store(0)
		db.changed(true)
		cancel()
		synctest.Wait()
		db.changed(true)
		after(time.Hour, 0) // the engine is stopped
	})
}

// TestIdle expects no collections without removals, however long it takes.
func TestIdle(t *testing.T) {
	started(t, func(_ *testing.T, _ *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		after(24*time.Hour, 0)
		db.changed(false)
		after(24*time.Hour, 0)
	})
}

func TestRemovalsAreGrouped(t *testing.T) {
	started(t, func(_ *testing.T, _ *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		for range 5 {
			db.changed(true)
			after(delay/10, 0)
		}
		after(delay, 1)
		after(time.Hour, 0)
		db.changed(true)
		after(delay, 1)
	})
}

// TestManyChanges expects a collection after many changes, because leases may have expired.
func TestManyChanges(t *testing.T) {
	started(t, func(_ *testing.T, _ *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		for range maxChanges - 1 {
			db.changed(false)
		}
		after(time.Hour, 0)
		db.changed(false)
		after(time.Hour, 1)
	})
}

func TestRequest(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		request := func() {
			t.Helper()
			if _, err := c.ScheduleAndWait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		request()
		after(time.Hour, 0) // there is nothing to collect
		db.changed(true)
		request()
		after(0, 1)
		after(time.Hour, 0) // the request was the scheduled one
	})
}

// TestRemovalsOneByOne expects a collection for each removal that is waited for, without a delay, and one for several that are waited for
// at the same time.
func TestRemovalsOneByOne(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		began := time.Now()
		for range 10 {
			db.changed(true)
			if err := c.Collect(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("ten removals took %v, want no delay", took)
		}
		after(time.Hour, 10)
		db.takes.Store(int64(time.Minute))
		for range 10 {
			db.changed(true)
			go func() { _ = c.Collect(t.Context()) }()
			synctest.Wait() // the first collection runs, and the others wait
		}
		after(time.Hour, 2)
	})
}

// TestRequestWaits expects that a request during a collection returns after that, and is not lost if something was removed meanwhile.
func TestRequestWaits(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		db.takes.Store(int64(time.Minute))
		db.changed(true)
		go func() { _, _ = c.ScheduleAndWait(context.Background()) }()
		time.Sleep(delay)
		synctest.Wait()
		db.changed(true)
		began := time.Now()
		if _, err := c.ScheduleAndWait(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 2*time.Minute {
			t.Errorf("returned after %v, want the ends of two collections", took)
		}
		after(0, 2)
		db.changed(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.ScheduleAndWait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the end of the context", err)
		}
		after(time.Hour, 1) // it has continued
	})
}

func TestFailedCollectionIsRepeated(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		db.fails.Store(true)
		db.changed(true)
		if _, err := c.ScheduleAndWait(t.Context()); !errors.Is(err, errDisk) {
			t.Errorf("error %v", err)
		}
		after(0, 1)
		db.fails.Store(false)
		after(retryDelay, 1)
		after(time.Hour, 0)
	})
}

// TestHold expects no collection while it is delayed, and no wait without end for one that hangs.
func TestHold(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		first, err := c.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db.changed(true)
		after(delay+time.Minute, 0)
		second, err := c.Hold(t.Context()) // does not wait for the first one
		if err != nil {
			t.Fatal(err)
		}
		first()
		after(time.Minute, 0)
		second()
		db.takes.Store(int64(time.Hour))
		after(time.Second, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the end of the context", err)
		}
		after(2*time.Hour, 0)
	})
}

// TestRequestWhileDelayed expects that requests whose callers have given up leave nothing behind while collections are delayed, for
// example by a disk that hangs, and that the collection is not lost.
func TestRequestWhileDelayed(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		release, err := c.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db.changed(true)
		before := runtime.NumGoroutine()
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.ScheduleAndWait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want the end of the context", err)
			}
			cancel()
		}
		after(time.Minute, 0)
		if left := runtime.NumGoroutine() - before; left > 0 {
			t.Errorf("%d goroutines are left of requests", left)
		}
		release()
		after(delay+pollInterval, 1)
		after(time.Hour, 0)
	})
}

// TestStopWhileDelayed expects that the end of the engine does not wait for those who delay collections.
func TestStopWhileDelayed(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		release, err := c.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		db.changed(true)
		after(time.Minute, 0)
		began := time.Now()
		if err := c.Stop(time.Hour); err != nil || time.Since(began) > 0 {
			t.Errorf("error %v after %v, want none at once", err, time.Since(began))
		}
		release()
		after(time.Hour, 0)
	})
}

// TestStop expects that the end of the engine waits for a collection that is running, but not without end.
func TestStop(t *testing.T) {
	started(t, func(t *testing.T, c *garbageCollector, db *fakeDB, after func(time.Duration, int32)) {
		db.takes.Store(int64(time.Minute))
		db.changed(true)
		after(delay, 1)
		if err := c.Stop(time.Second); err == nil {
			t.Error("no error after the timeout")
		}
		began := time.Now()
		if err := c.Stop(time.Hour); err != nil || time.Since(began) < 50*time.Second {
			t.Errorf("error %v after %v, want the end of the collection", err, time.Since(began))
		}
		db.changed(true)
		after(time.Hour, 0)
	})
}
