package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// StopOptions say how a pod is to end.
type StopOptions struct {
	UID    string         // if set, only this pod, not another of the same name
	Grace  *time.Duration // nil: the pod's own; 0: by force
	Delete bool           // take everything of it away afterwards
	By     string         // who asks
}

// Stop asks a pod to end and returns at once. Asked again it can shorten the grace period, and add the deletion. One that has
// ended stays as it is, unless it is to be deleted. After [ErrLeaving] the next supervisor has to be asked; after the context's
// error the pod may have heard it.
func (s *Supervisor) Stop(ctx context.Context, name string, o StopOptions) error {
	s.mu.Lock()
	l := s.pods[name]
	s.mu.Unlock()
	if l == nil || (o.UID != "" && l.snapshot.Load().Facts.UID != o.UID) {
		return fmt.Errorf("stop pod %q: %w", name, ErrNotFound)
	}
	heard, err := l.demand(ctx, func(now lifecycle.Instant) {
		if l.status.Phase.Terminal() && !o.Delete {
			return // it has ended before, and not because somebody asked
		}
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, o.Grace), Delete: o.Delete, By: o.By, At: now}, now)
	})
	switch {
	case err != nil:
		return fmt.Errorf("stop pod %q: %w", name, err)
	case !heard && s.ctx.Err() != nil:
		return ErrLeaving
	}
	return nil // heard, or about to be gone
}
