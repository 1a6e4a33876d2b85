package wait

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
)

// TestRolledOut checks when the wait for a rollout ends.
func TestRolledOut(t *testing.T) {
	failure := errors.New("permission denied")
	for name, test := range map[string]struct {
		looks []any // states and errors; the last one repeats
		seen  []api.RolloutState
		want  error
	}{
		"complete": {
			[]any{api.RolloutProgressing, api.RolloutComplete}, []api.RolloutState{api.RolloutProgressing, api.RolloutComplete}, nil,
		},
		"failed":      {[]any{api.RolloutFailed}, []api.RolloutState{api.RolloutFailed}, nil},
		"daemon away": {[]any{api.ErrUnavailable, api.RolloutComplete}, []api.RolloutState{api.RolloutComplete}, nil},
		"error":       {[]any{failure}, nil, failure},
		"timeout": {
			[]any{api.RolloutProgressing, context.DeadlineExceeded}, []api.RolloutState{api.RolloutProgressing}, context.DeadlineExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var seen []api.RolloutState
				n := 0
				r, err := RolledOut(ctx, watch{}, func(ctx context.Context) (api.Rollout, error) {
					look := test.looks[n]
					n++
					switch look := look.(type) {
					case api.RolloutState:
						return api.Rollout{State: look}, nil
					case error:
						if errors.Is(look, context.DeadlineExceeded) {
							<-ctx.Done()
						}
						return api.Rollout{}, look
					}
					return api.Rollout{}, nil
				}, func(r *api.Rollout) { seen = append(seen, r.State) })
				if !errors.Is(err, test.want) || !slices.Equal(seen, test.seen) {
					t.Errorf("%v, seen %v; want %v, %v", err, seen, test.want, test.seen)
				}
				if n := len(test.seen); n > 0 && r.State != test.seen[n-1] {
					t.Errorf("returned %s, want the last one seen", r.State)
				}
			})
		})
	}
}
