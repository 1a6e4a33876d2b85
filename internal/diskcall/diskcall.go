// Package diskcall calls functions that access files on a disk or a file server that may not respond. It does not access files itself.
package diskcall

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/podstead/podstead/internal/guard"
)

const (
	// Timeout is the timeout of a call.
	Timeout = 10 * time.Second
	// Cleanup is how long a call may take after the end of its context.
	Cleanup = time.Second
)

// Disk calls functions that access files, one at a time. A function that hangs, as on a network file system whose server does not respond,
// is abandoned. Until it returns, all further calls fail at once, so that at most one goroutine hangs.
type Disk struct {
	busy chan struct{} // full while a function runs
	log  *slog.Logger
}

// New returns a disk. Panics of functions are logged.
func New(log *slog.Logger) *Disk { return &Disk{busy: make(chan struct{}, 1), log: log} }

// Idle reports whether no function runs.
func (d *Disk) Idle() bool { return len(d.busy) == 0 }

// UnresponsiveError reports that a file system does not respond.
type UnresponsiveError struct{}

// Error returns the message.
func (UnresponsiveError) Error() string {
	return fmt.Sprintf("the file system did not respond within %v", Timeout)
}

// Do calls do, which must not use anything that is changed after its timeout. If ctx ends before do returns, the error is that of ctx.
func Do[T any](ctx context.Context, d *Disk, do func() (T, error)) (T, error) {
	var none T
	select {
	case d.busy <- struct{}{}:
	default:
		return none, UnresponsiveError{}
	}
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	value, err := guard.Call(limited, Cleanup, d.log, func(context.Context) (T, error) {
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
