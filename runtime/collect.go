package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
)

const (
	// collectDelay is how long what was removed together is waited for.
	collectDelay = 2 * time.Second
	// collectTimeout bounds one collection, which unlinks files.
	collectTimeout = 2 * time.Minute
)

// collector has the engine take the writable layers of containers that are gone off the disk. Left to itself, the engine forgets
// those that go while it is at it, until something else goes.
type collector struct{ wanted chan struct{} }

func newCollector() collector { return collector{wanted: make(chan struct{}, 1)} }

// want says that something is gone.
func (c collector) want() {
	select {
	case c.wanted <- struct{}{}:
	default:
	}
}

// collect takes away what is gone, until ctx ends; what is left then the next engine takes at its start.
func (r *Runtime) collect(ctx context.Context) {
	for {
		select {
		case <-r.gone.wanted:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(collectDelay):
		case <-ctx.Done():
			return
		}
		for range 2 { // the first may be one that had begun before
			if err := r.collectOnce(ctx); err != nil && ctx.Err() == nil {
				r.log.WarnContext(ctx, "layers of containers that are gone are left on the disk", slog.Any("error", err))
			}
		}
	}
}

// collectOnce returns after a collection: the end of a lease is how one is asked for.
func (r *Runtime) collectOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	l, err := r.client.LeasesService().Create(ctx, leases.WithRandomID(), leases.WithExpiration(collectTimeout))
	if err == nil {
		err = r.client.LeasesService().Delete(ctx, l, leases.SynchronousDelete)
	}
	if err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	return nil
}
