package volume

import (
	"context"
	"sync"
)

// locks are locks by name. The zero value is ready for use.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the lock is free
}

// acquire waits for the lock of this name, or for the end of ctx. The caller calls release once.
func (l *locks) acquire(ctx context.Context, name string) (release func(), err error) {
	for {
		free := l.try(name)
		if free == nil {
			return func() { l.release(name) }, nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try takes the lock, or returns what is closed when it is free.
func (l *locks) try(name string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if free, taken := l.held[name]; taken {
		return free
	}
	if l.held == nil {
		l.held = map[string]chan struct{}{}
	}
	l.held[name] = make(chan struct{})
	return nil
}

func (l *locks) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held[name])
	delete(l.held, name)
}
