// Package guard keeps callers from waiting for others without limit: for functions that panic or hang, such as calls to a container engine
// ([Call]), for holders of a lock ([KeyedMutex]), for a container that holds a file ([OpenFile], [UseFile]), and for a state that is
// checked at intervals ([Poll]).
package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// WithTimeout is [context.WithTimeoutCause], where 0 means no timeout.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %v", timeout))
}

// Call calls do in a goroutine of its own and returns its result. It logs a panic and returns it as an error. If do does not return within
// the cleanup time after the end of ctx, Call abandons it: the goroutine leaks until do returns. An error after the end of ctx wraps the
// cause of that.
func Call[T any](ctx context.Context, cleanup time.Duration, log *slog.Logger, do func(context.Context) (T, error)) (T, error) {
	type returned struct {
		value T
		err   error
	}
	done := make(chan returned, 1)
	go func() {
		value, err := Catch(ctx, log, do)
		done <- returned{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(cleanup):
		var none T
		return none, fmt.Errorf("%w, and did not return after its cancellation", context.Cause(ctx))
	}
}

// Catch returns the result of do. It logs a panic and returns it as an error. An error after the end of ctx wraps the cause of that.
func Catch[T any](ctx context.Context, log *slog.Logger, do func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			log.LogAttrs(ctx, slog.LevelError, "an effect panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if value, err = do(ctx); err != nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return value, err
}

// Go calls do in a goroutine, and left when do has returned. If do does not return within the cleanup time after the end of ctx, Go calls
// left then, and the goroutine leaks until do returns.
func Go(ctx context.Context, cleanup time.Duration, do, left func()) {
	left = sync.OnceFunc(left)
	returned := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(cleanup)
		defer late.Stop()
		select {
		case <-returned:
		case <-late.C:
			left()
		}
	})
	go func() {
		defer left()
		defer stop()
		defer close(returned)
		do()
	}()
}
