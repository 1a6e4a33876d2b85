package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/pkg/gc"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/log"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"

	"github.com/podstead/podstead/internal/guard"
)

// The collector runs containerd's garbage collection. It replaces containerd's plug-in for that, which wakes up several times per
// second, and writes to the disk for each request: the only way to request a collection there is the deletion of a lease.
//
// A collection removes what nothing refers to, also a layer whose container has no record yet. containerd creates a lease for that time,
// and deletes it, which are two writes to the disk. Here [garbageCollector.Hold] delays collections instead.

const (
	// startDelay is the time from the start of the engine to a collection of what an earlier engine has left.
	startDelay = 100 * time.Millisecond
	// delay groups removals that follow each other into one collection.
	delay = 2 * time.Second
	// retryDelay is the time until the next collection after one that failed.
	retryDelay = 10 * time.Second
	// maxChanges is the number of changes after which there is a collection without a removal, for leases that expire.
	maxChanges = 100
	// pollInterval is the interval of attempts to get a lock whose holder can be slow.
	pollInterval = 20 * time.Millisecond
)

// garbage is the part of the engine's metadata that collects.
type garbage interface {
	GarbageCollect(context.Context) (gc.Stats, error)
}

// garbageCollector collects garbage some seconds after something was removed, and on request. It is safe for concurrent use.
type garbageCollector struct {
	db garbage
	// held is locked during a collection, and for reading by those who delay collections.
	held sync.RWMutex

	mu       sync.Mutex
	timer    *time.Timer // of the scheduled collection
	due      bool        // something was removed since the start of the last collection
	changes  int         // since the start of the last collection
	canceled bool        // the engine stops: no more collections
}

// registerCollector registers the plug-in. It must be called once, before the engine starts.
func registerCollector() {
	registry.Register(&plugin.Registration{
		Type:     plugins.GCPlugin,
		ID:       "scheduler",
		Requires: []plugin.Type{plugins.MetadataPlugin},
		InitFn: func(ic *plugin.InitContext) (any, error) {
			db, err := ic.GetSingle(plugins.MetadataPlugin)
			if err != nil {
				return nil, err
			}
			m, ok := db.(*metadata.DB)
			if !ok {
				return nil, fmt.Errorf("metadata have the unexpected type %T", db)
			}
			c := start(ic.Context, m)
			m.RegisterMutationCallback(c.changed)
			return c, nil
		},
	})
}

// start starts a collector that runs until ctx ends.
func start(ctx context.Context, db garbage) *garbageCollector {
	c := &garbageCollector{db: db, due: true, timer: time.NewTimer(startDelay)}
	go c.run(ctx)
	return c
}

// run runs scheduled collections until ctx ends.
func (c *garbageCollector) run(ctx context.Context) {
	defer c.cancel()
	for {
		select {
		case <-c.timer.C:
			if err := c.collect(ctx, ctx); err != nil && ctx.Err() == nil {
				log.G(ctx).WithError(err).Error("garbage collection failed")
			}
		case <-ctx.Done():
			return
		}
	}
}

// changed is called after each change of the metadata, which it must not block.
func (c *garbageCollector) changed(removed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	if c.due || !removed && c.changes < maxChanges {
		return
	}
	c.due = true
	c.schedule(delay)
}

// schedule schedules a collection. The caller holds mu.
func (c *garbageCollector) schedule(after time.Duration) {
	if !c.canceled {
		c.timer.Reset(after)
	}
}

// collect runs a collection, unless nothing was removed since the last one. It waits for one that is running, and for those who delay
// collections, until waiting ends. Then the collection is scheduled instead.
func (c *garbageCollector) collect(waiting, ctx context.Context) error {
	if err := poll(waiting, c.held.TryLock); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.due {
			c.schedule(delay)
		}
		return err
	}
	defer c.held.Unlock()
	c.mu.Lock()
	due := c.due && !c.canceled
	c.due = false
	if due {
		c.changes = 0
		c.timer.Stop()
	}
	c.mu.Unlock()
	if !due {
		return nil
	}
	_, err := c.db.GarbageCollect(ctx)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.due = true
		c.schedule(retryDelay)
	}
	return err
}

// Collect waits for a collection, unless nothing was removed since the last one. The collection starts at once. When ctx ends it returns at
// once. The collection continues, or starts when no caller delays it.
func (c *garbageCollector) Collect(ctx context.Context) error { return c.wait(ctx, 0) }

// ScheduleAndWait is [Collector.Collect] with the delay of others. Leases that are deleted synchronously call it, when containerd may still
// be cleaning up after a pull that failed.
func (c *garbageCollector) ScheduleAndWait(ctx context.Context) (gc.Stats, error) {
	return nil, c.wait(ctx, c.request())
}

// wait waits for a collection that starts after a delay.
func (c *garbageCollector) wait(ctx context.Context, after time.Duration) error {
	collected := make(chan error, 1)
	go func() {
		<-time.After(after)
		collected <- c.collect(ctx, context.WithoutCancel(ctx))
	}()
	select {
	case err := <-collected:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request returns when the caller must start a collection, in place of the one that is scheduled.
func (c *garbageCollector) request() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.due {
		return 0
	}
	c.timer.Stop()
	return delay
}

// Stop ends collections and waits for one that is running, until the timeout.
func (c *garbageCollector) Stop(timeout time.Duration) error {
	c.cancel()
	late := time.NewTimer(timeout)
	defer late.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !c.held.TryRLock() { // those who delay collections are not waited for
		select {
		case <-tick.C:
		case <-late.C:
			return errors.New("a garbage collection is still running")
		}
	}
	c.held.RUnlock()
	return nil
}

// cancel prevents that another collection starts.
func (c *garbageCollector) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled = true
	c.timer.Stop()
}

// Hold delays collections until release is called. The error is that of ctx, if a collection takes too long.
func (c *garbageCollector) Hold(ctx context.Context) (release func(), err error) {
	if err := poll(ctx, c.held.TryRLock); err != nil {
		return nil, fmt.Errorf("wait for garbage collection: %w", err)
	}
	return c.held.RUnlock, nil
}

// poll calls try until it succeeds. A lock cannot be waited for with a context.
func poll(ctx context.Context, try func() bool) error {
	for range guard.Poll(ctx, pollInterval) {
		if try() {
			return nil
		}
	}
	return ctx.Err()
}
