package wait

import (
	"context"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/guard"
)

// rolloutInterval is the interval of looks at a rollout. What became of a definition is not part of a pod, so a watch of pods does not
// report it.
const rolloutInterval = 250 * time.Millisecond

// RolledOut looks at the rollout of a pod until it is complete or has failed, and returns it. The function seen is called with each look.
// When the context ends, RolledOut returns the last rollout and the error of the context.
func RolledOut(ctx context.Context, d Daemon, look func(context.Context) (api.Rollout, error),
	seen func(*api.Rollout),
) (last api.Rollout, err error) {
	for range guard.Poll(ctx, rolloutInterval) {
		var r api.Rollout
		err := Retry(ctx, d.Connect, func() (err error) {
			r, err = look(ctx)
			return err
		})
		switch {
		case err == nil:
			last = r
			seen(&r)
			if r.State != api.RolloutProgressing {
				return r, nil
			}
		case ctx.Err() != nil:
			return last, ctx.Err()
		default:
			return last, err
		}
	}
	return last, ctx.Err()
}
