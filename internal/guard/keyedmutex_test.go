package guard

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m KeyedMutex
		unlock, err := m.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Lock(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("lock a locked key: %v, want context.DeadlineExceeded", err)
		}
		holders := 0
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				unlock, err := m.Lock(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				if holders++; holders != 1 {
					t.Errorf("%d goroutines hold the same key", holders)
				}
				time.Sleep(time.Millisecond)
				holders--
				unlock()
			})
		}
		unlock()
		group.Wait()
		if len(m.held) > 0 {
			t.Errorf("keys without a holder are still locked: %v", m.held)
		}
	})
}

func TestTryLock(t *testing.T) {
	var m KeyedMutex
	unlock := m.TryLock("a")
	if unlock == nil || m.TryLock("a") != nil {
		t.Fatal("a key was not locked by TryLock, or twice")
	}
	m.TryLock("b")()
	unlock()
	if unlock = m.TryLock("a"); unlock == nil {
		t.Fatal("a key that was unlocked is still locked")
	}
	unlock()
	if _, err := m.Lock(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
