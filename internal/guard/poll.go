package guard

import (
	"context"
	"time"
)

// Poll returns a sequence for a loop that checks something: at once, and after each interval until ctx ends.
func Poll(ctx context.Context, interval time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		if yield() {
			Every(ctx, interval)(yield)
		}
	}
}

// Every returns a sequence for a loop that does something after each interval until ctx ends.
func Every(ctx context.Context, interval time.Duration) func(yield func() bool) {
	return func(yield func() bool) {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if !yield() {
				return
			}
		}
	}
}
