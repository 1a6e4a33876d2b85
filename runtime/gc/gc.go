// Package gc controls the garbage collection of the container engine, which removes the writable layers of removed containers from disk.
package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/image"
)

const (
	// delay groups removals that follow each other into one collection.
	delay = 2 * time.Second
	// collectTimeout is for one collection, which unlinks files.
	collectTimeout = 2 * time.Minute
)

// Collector runs garbage collections on request. Without it, the engine does not notice removals during a collection until the next
// removal.
type Collector struct {
	leases    leases.Manager
	log       *slog.Logger
	requested chan struct{}
}

// New returns a collector. [Collector.Run] must be called.
func New(l leases.Manager, log *slog.Logger) *Collector {
	return &Collector{leases: l, log: log, requested: make(chan struct{}, 1)}
}

// Request requests a collection. It does not block.
func (c *Collector) Request() {
	select {
	case c.requested <- struct{}{}:
	default:
	}
}

// Run runs requested collections until ctx ends. The engine collects the rest at its next start.
func (c *Collector) Run(ctx context.Context) {
	for {
		select {
		case <-c.requested:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
		for range 2 { // the first may be one that was running before
			if err := c.collect(ctx); err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "cannot remove the layers of removed containers from disk", slog.Any("error", err))
			}
		}
	}
}

// collect runs one collection. The synchronous removal of a lease is the engine's only way to request one.
func (c *Collector) collect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	l, err := c.leases.Create(ctx, leases.WithRandomID(), leases.WithExpiration(collectTimeout))
	if err == nil {
		err = c.leases.Delete(ctx, l, leases.SynchronousDelete)
	}
	if err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	return nil
}

// DeleteLeases deletes the leases of an earlier daemon that was killed. They would keep unfinished containers for a day. It must be called
// before any other call to the engine.
func (c *Collector) DeleteLeases(ctx context.Context) error {
	list, err := c.leases.List(ctx)
	if err != nil {
		return fmt.Errorf("list leases: %w", err)
	}
	var errs []error
	for _, l := range list {
		if image.Owns(l) {
			continue // a pull that will be resumed
		}
		if err := c.leases.Delete(ctx, l); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete lease %s: %w", l.ID, err))
		}
	}
	return errors.Join(errs...)
}
