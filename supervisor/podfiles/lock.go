package podfiles

import "context"

// lock is a mutex that can be awaited with a context.
type lock chan struct{}

// Lock locks. The lock is held for one listing and one change of files at most.
func (l lock) Lock() { l <- struct{}{} }

// LockContext locks, unless ctx ends first.
func (l lock) LockContext(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock unlocks.
func (l lock) Unlock() { <-l }
