// Package keyedmutex provides mutual exclusion by key, such as the UID of a pod.
package keyedmutex

import (
	"context"
	"sync"
)

// Mutex is a set of locks, one for each key. The zero value is ready for use. A key without a holder uses no memory. A Mutex
// must not be copied after first use.
type Mutex struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is unlocked
}

// Lock locks a key. It blocks until the key is free, or returns the error of ctx when ctx ends first. The caller calls unlock
// exactly once. Waiters are not served in a particular order. A goroutine that locks a key that it holds blocks until ctx ends.
func (m *Mutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		m.mu.Lock()
		free, locked := m.held[key]
		if !locked {
			free = make(chan struct{})
			if m.held == nil {
				m.held = map[string]chan struct{}{}
			}
			m.held[key] = free
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				delete(m.held, key)
				close(free)
			}, nil
		}
		m.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
