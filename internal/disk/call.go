// Package disk is for disks that are full or do not respond: calls that are abandoned ([Call]), space that is kept for what must be written
// although the disk is full ([Reserve]), and the free space in bytes. It decides neither what is written nor what follows from a failure.
package disk

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/podstead/podstead/internal/guard"
)

const (
	// CallTimeout is the timeout of a call.
	CallTimeout = 10 * time.Second
	// CallCleanup is how long a call may take after the end of its context.
	CallCleanup = time.Second
)

// Caller calls functions that access files, one at a time. A function that hangs, as on a network file system whose server does not
// respond, is abandoned. Until it returns, all further calls fail at once, so that at most one goroutine hangs.
type Caller struct {
	busy chan struct{} // full while a function runs
	log  *slog.Logger
}

// NewCaller returns a caller for the files of one disk. Panics of functions are logged.
func NewCaller(log *slog.Logger) *Caller { return &Caller{busy: make(chan struct{}, 1), log: log} }

// Idle reports whether no function runs.
func (c *Caller) Idle() bool { return len(c.busy) == 0 }

// UnresponsiveError reports that a file system does not respond.
type UnresponsiveError struct{}

// Error returns the message.
func (UnresponsiveError) Error() string {
	return fmt.Sprintf("the file system did not respond within %v", CallTimeout)
}

// Call calls do, which must not use anything that is changed after its timeout. If ctx ends before do returns, the error is that of ctx.
func Call[T any](ctx context.Context, c *Caller, do func() (T, error)) (T, error) {
	var none T
	select {
	case c.busy <- struct{}{}:
	default:
		return none, UnresponsiveError{}
	}
	limited, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	value, err := guard.Call(limited, CallCleanup, c.log, func(context.Context) (T, error) {
		defer func() { <-c.busy }()
		return do()
	})
	switch {
	case len(c.busy) == 0: // it has returned
		return value, err
	case ctx.Err() != nil:
		return none, context.Cause(ctx)
	}
	return none, UnresponsiveError{}
}
