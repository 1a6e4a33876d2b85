package follow

import (
	"context"
	"slices"

	"github.com/podstead/podstead/api"
)

// showProgress calls Progress with the changes of the pods until the context ends.
func (r *run) showProgress(ctx context.Context) {
	if r.Progress == nil {
		return
	}
	defer r.Progress(nil)
	_ = r.retry(ctx, func() error { // printOutput handles connection errors
		defer r.Progress(nil)
		for c, err := range r.Daemon.Watch(ctx) {
			if err != nil {
				return err
			}
			of := func(p api.Pod) bool { return p.Metadata.UID == c.Object.Metadata.UID }
			if c.Type == api.Listed || !slices.ContainsFunc(r.pods, of) {
				continue
			}
			if c.Type == api.Deleted {
				c.Object.Status.Pulling = nil
			}
			r.Progress(&c.Object)
		}
		return ctx.Err()
	})
}
