package guard

import (
	"context"
	"sync"
)

// KeyedMutex is a set of locks, one for each key. The zero value is ready for use. A key without a holder uses no memory. A KeyedMutex
// must not be copied after first use.
type KeyedMutex struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is unlocked
}

// Lock locks a key. It blocks until the key is free, or returns the error of ctx when ctx ends first. The caller calls unlock
// exactly once. Waiters are not served in a particular order. A goroutine that locks a key that it holds blocks until ctx ends.
func (m *KeyedMutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		unlock, free := m.try(key)
		if unlock != nil {
			return unlock, nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryLock locks a key if it is free. Otherwise unlock is nil.
func (m *KeyedMutex) TryLock(key string) (unlock func()) {
	unlock, _ = m.try(key)
	return unlock
}

// try locks a key if it is free. Otherwise unlock is nil, and free is closed when the key is unlocked.
func (m *KeyedMutex) try(key string) (unlock func(), free <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if free, locked := m.held[key]; locked {
		return nil, free
	}
	if m.held == nil {
		m.held = map[string]chan struct{}{}
	}
	unlocked := make(chan struct{})
	m.held[key] = unlocked
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.held, key)
		close(unlocked)
	}, nil
}
