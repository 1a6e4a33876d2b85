package supervisor

import (
	"context"
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

// Stop asks a pod to end, and returns when readers see that it is about to and a supervisor after this one will know. It does not
// wait for the end. Asked again it can shorten the grace period, and add the deletion. One that has ended stays as it is, unless
// it is to be deleted, and one that is gone is [ErrNotFound]. After [ErrLeaving] the next supervisor has to be asked; after the
// context's error the pod may have heard it.
func (s *Supervisor) Stop(ctx context.Context, name string, o StopOptions) error {
	return s.change(ctx, "stop", name, o.UID, func(l *loop, now lifecycle.Instant) error {
		if l.status.Phase.Terminal() && !o.Delete {
			return nil // it has ended before, and not because somebody asked
		}
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, o.Grace), Delete: o.Delete, By: o.By, At: now}, now)
		return nil
	})
}
