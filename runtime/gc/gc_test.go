package gc

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
)

// counter counts collections.
type counter struct {
	leases.Manager
	deleted atomic.Int32
}

func (c *counter) Create(context.Context, ...leases.Opt) (leases.Lease, error) {
	return leases.Lease{}, nil
}

func (c *counter) Delete(context.Context, leases.Lease, ...leases.DeleteOpt) error {
	c.deleted.Add(1)
	return nil
}

func TestRequestsAreGrouped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		engine := &counter{}
		c := New(engine, slog.Default())
		go c.Run(ctx)
		for range 10 {
			c.Request()
		}
		synctest.Wait()
		if engine.deleted.Load() != 0 {
			t.Errorf("%d collections before the delay", engine.deleted.Load())
		}
		c.Request() // during the delay: needs another collection
		time.Sleep(3 * delay)
		synctest.Wait()
		if engine.deleted.Load() != 4 {
			t.Errorf("%d collections, want 4: two for each group of requests", engine.deleted.Load())
		}
		cancel()
		synctest.Wait()
	})
}
