package supervisor

import (
	"context"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// hookRef names one hook of one run.
type hookRef struct {
	lifecycle.Ref
	kind lifecycle.HookKind
}

// hook runs a hook beside the loop, within the limit (0: none).
func (l *loop) hook(ctx context.Context, a lifecycle.Action, h hookRef, limit time.Duration) {
	c, address := l.pod.Container(h.Container), l.address()
	handler := c.Lifecycle.PostStart
	if h.kind == lifecycle.PreStop {
		handler = c.Lifecycle.PreStop
	}
	l.hooks[h] = l.effect(ctx, limit, a, func(ctx context.Context) (outcome, error) {
		warning, err := l.shared.hooks.Run(ctx, l.uid, address, c, h.Ref, handler)
		return func(now lifecycle.Instant) lifecycle.Event {
			if warning != "" {
				l.tell(now, HookWarned, h.Container, fields{"warning": warning})
			}
			return lifecycle.HookFinished{Ref: h.Ref, Hook: h.kind, At: now}
		}, err
	})
}
