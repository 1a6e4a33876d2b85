package container

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// This file controls the garbage collection of the container engine, which removes the writable layers of removed containers from disk.

const (
	// delay groups removals that follow each other into one collection.
	delay = 2 * time.Second
	// minRetry and maxRetry are the first and the longest delay before another collection if layers are left. The disk may be full or
	// frozen.
	minRetry, maxRetry = 10 * time.Second, 5 * time.Minute
	// collectTimeout is for one collection, which unlinks files.
	collectTimeout = 2 * time.Minute
)

// LayerCollector runs garbage collections on request. Without it, the engine does not notice removals during a collection until the next
// removal.
type LayerCollector struct {
	engine    func(context.Context) error // collects garbage
	layers    Layers
	log       *slog.Logger
	requested chan struct{}
}

// NewLayerCollector returns a collector that calls collect for a collection. [LayerCollector.Run] must be called.
func NewLayerCollector(collect func(context.Context) error, layers Layers, log *slog.Logger) *LayerCollector {
	return &LayerCollector{engine: collect, layers: layers, log: log, requested: make(chan struct{}, 1)}
}

// Request requests a collection. It does not block.
func (c *LayerCollector) Request() {
	select {
	case c.requested <- struct{}{}:
	default:
	}
}

// Run runs requested collections until ctx ends. The engine collects the rest at its next start.
func (c *LayerCollector) Run(ctx context.Context) {
	var retry <-chan time.Time // nil: nothing is left
	wait := minRetry
	for {
		select {
		case <-c.requested:
			wait = minRetry
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				return
			}
		case <-retry:
			wait = min(2*wait, maxRetry)
			if err := c.touch(ctx); err != nil && ctx.Err() == nil {
				c.log.DebugContext(ctx, "cannot remove layers yet", slog.Any("error", err))
			}
		case <-ctx.Done():
			return
		}
		if err := c.collect(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "cannot remove the layers of removed containers from disk", slog.Any("error", err))
		}
		retry = nil
		if c.incomplete(ctx) {
			retry = time.After(wait)
		}
	}
}

// incomplete reports whether layers are left, or it is not known.
func (c *LayerCollector) incomplete(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	left, err := c.layers.left(ctx)
	return left > 0 || err != nil
}

func (c *LayerCollector) touch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	return c.layers.touch(ctx)
}

func (c *LayerCollector) collect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	if err := c.engine(ctx); err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	return nil
}
