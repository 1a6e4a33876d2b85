package live

import (
	"context"
	"time"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/guard"
)

// retryInterval is the interval of attempts to reach the daemon.
const retryInterval = 500 * time.Millisecond

// pause waits, and reports whether the context is still active.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reach returns when the daemon responds or the context ends. It starts no daemon.
func reach(ctx context.Context, c *client.Client) error {
	for range guard.Every(ctx, retryInterval) {
		if _, err := c.Version(ctx); err == nil {
			return nil
		}
	}
	return context.Cause(ctx)
}
