package podfiles

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/podstead/podstead/internal/guard"
)

const (
	// diskTimeout is the timeout of a listing with the files that it reads, and of writing a file.
	diskTimeout = 10 * time.Second
	// diskCleanup is how long an access may take after the end of its context.
	diskCleanup = time.Second
)

// disk calls functions that access files, one at a time. A function that hangs, as on a network file system whose server does not respond, is
// abandoned. Until it returns, all further calls fail at once, so that at most one goroutine hangs.
type disk struct {
	busy chan struct{} // full while a function runs
	log  *slog.Logger
}

func newDisk(log *slog.Logger) *disk { return &disk{busy: make(chan struct{}, 1), log: log} }

// UnresponsiveError reports that a file system does not respond.
type UnresponsiveError struct{}

func (UnresponsiveError) Error() string {
	return fmt.Sprintf("the file system did not respond within %v", diskTimeout)
}

// onDisk calls do, which must not use anything that is changed after its timeout. If ctx ends before do returns, the error is that of ctx.
func onDisk[T any](ctx context.Context, d *disk, do func() (T, error)) (T, error) {
	var none T
	select {
	case d.busy <- struct{}{}:
	default:
		return none, UnresponsiveError{}
	}
	limited, cancel := context.WithTimeout(ctx, diskTimeout)
	defer cancel()
	value, err := guard.Call(limited, diskCleanup, d.log, func(context.Context) (T, error) {
		defer func() { <-d.busy }()
		return do()
	})
	switch {
	case len(d.busy) == 0: // it has returned
		return value, err
	case ctx.Err() != nil:
		return none, context.Cause(ctx)
	}
	return none, UnresponsiveError{}
}

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
