package units

import (
	"context"
	"time"
)

// Changes calls turn at once, and again after changes, until ctx ends. Turn is called at most once per interval; changes during the
// interval are one. Changed returns a channel that is closed at the next change.
func Changes(ctx context.Context, interval time.Duration, changed func() <-chan struct{}, turn func()) {
	for {
		next := changed()
		turn()
		pause := time.After(interval)
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return
		}
	}
}
