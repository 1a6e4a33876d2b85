package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
)

// ErrUnresponsive is the error of a call to a monitor or shim that does not respond. [errdefs.IsUnavailable] holds for it.
var ErrUnresponsive = fmt.Errorf("the monitor of the containers does not respond: %w", errdefs.ErrUnavailable)

const (
	// watchInterval is the time between two requests of [Engine.WatchShim]. They are most of what an idle host does. Those to all shims are
	// at the same time, so that the processes wake up together.
	watchInterval = 15 * time.Second
	// statusTimeout is the time for a shim to respond before the caller of another method gets [ErrUnresponsive]. It is longer than
	// checkTimeout, because no call may fail only since the host is loaded.
	statusTimeout = 10 * time.Second
)

// reported is the set of sandboxes that [Engine.WatchShim] has reported, by ID.
type reported struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (r *reported) set(id string, unresponsive bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if unresponsive {
		r.ids[id] = true
	} else {
		delete(r.ids, id)
	}
}

// Unresponsive reports whether the shim of a sandbox is known not to respond. It does not block.
func (e *Engine) Unresponsive(id string) bool {
	if e.aside.get(id) != nil {
		return true
	}
	e.reported.mu.Lock()
	defer e.reported.mu.Unlock()
	return e.reported.ids[id]
}

// AwaitLoaded waits until containerd has loaded the tasks of a sandbox. Until then, which is as long as its shim does not respond
// after the start of the engine, containerd returns NotFound for them, although their processes run.
func (e *Engine) AwaitLoaded(ctx context.Context, id string) error {
	loaded := e.aside.get(id)
	if loaded == nil {
		return nil
	}
	select {
	case <-loaded:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnresponsive, ctx.Err())
	}
}

// AwaitResponse waits until the shim of a sandbox responds or has exited, if it is known not to respond.
func (e *Engine) AwaitResponse(ctx context.Context, id string) error {
	if !e.Unresponsive(id) {
		return nil
	}
	ctx = namespaces.WithNamespace(ctx, Namespace)
	if err := e.AwaitLoaded(ctx, id); err != nil {
		return err
	}
	_, err := e.statusWithin(ctx, id, 0)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// WatchShim calls report when the shim of a sandbox stops responding, and when it responds again. It returns nil when the shim has
// exited, or the error of ctx.
func (e *Engine) WatchShim(ctx context.Context, id string, report func(responds bool)) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	next := time.NewTimer(watchInterval)
	defer next.Stop()
	for {
		// The request has no timeout: it returns as soon as the shim responds, and there is never more than one.
		answered := make(chan error, 1)
		go func() {
			err := e.AwaitLoaded(ctx, id)
			if err == nil {
				_, err = e.statusWithin(ctx, id, 0)
			}
			answered <- err
		}()
		err := e.awaitAnswer(ctx, id, answered, report)
		if errdefs.IsNotFound(err) {
			return nil
		}
		next.Reset(untilRound(time.Now(), watchInterval))
		select {
		case <-next.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// untilRound returns the time until the next multiple of an interval.
func untilRound(now time.Time, interval time.Duration) time.Duration {
	return now.Truncate(interval).Add(interval).Sub(now)
}

// awaitAnswer returns what answered receives. It calls report if that takes too long, and again if the shim has responded then.
func (e *Engine) awaitAnswer(ctx context.Context, id string, answered <-chan error, report func(responds bool)) error {
	limit := checkTimeout
	if e.aside.get(id) != nil {
		limit = 0 // it had that time
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-answered:
		return err
	case <-timer.C:
	}
	e.reported.set(id, true)
	defer e.reported.set(id, false)
	report(false)
	err := <-answered
	if err == nil && ctx.Err() == nil {
		e.reported.set(id, false) // before a reader acts on the report
		report(true)
	}
	return err
}

// CheckShim returns [ErrUnresponsive] if the shim of a sandbox exists and does not respond.
func (e *Engine) CheckShim(ctx context.Context, id string) error {
	_, err := e.statusWithin(namespaces.WithNamespace(ctx, Namespace), id, checkTimeout)
	if errors.Is(err, ErrUnresponsive) {
		return err
	}
	return nil
}

// statusWithin is status with another timeout; 0: none.
func (e *Engine) statusWithin(ctx context.Context, id string, timeout time.Duration) (sandbox.ControllerStatus, error) {
	if e.aside.get(id) != nil {
		return sandbox.ControllerStatus{}, ErrUnresponsive
	}
	limited, cancel := context.WithCancel(ctx)
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	s, err := e.askStatus(limited, id)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return s, ErrUnresponsive
	}
	return s, err
}

// KillShim kills the shim of a sandbox, whether it responds or not, and returns when containerd has cleaned up. The containers of
// the sandbox must have been killed. It succeeds if there is no shim.
func (e *Engine) KillShim(ctx context.Context, id string) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	for _, s := range e.shimProcesses() {
		if s.id != id {
			continue
		}
		if err := e.killShim(ctx, s); err != nil {
			return err
		}
	}
	if err := e.AwaitLoaded(ctx, id); err != nil {
		return err
	}
	return e.awaitReleased(ctx, id)
}
