package runtime

import (
	"context"
	"sync"
)

// locks are locks by name, so that an action that is repeated does not meet its first attempt at work. The zero value
// is ready for use.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the lock is free
}

// acquire waits for the lock of this name, or for the end of ctx. The caller calls release once.
func (l *locks) acquire(ctx context.Context, name string) (release func(), err error) {
	for {
		l.mu.Lock()
		free, taken := l.held[name]
		if !taken {
			free = make(chan struct{})
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			l.held[name] = free
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.held, name)
				close(free)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
