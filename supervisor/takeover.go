package supervisor

import (
	"context"
	"errors"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// errNotTaken reports that a pod has changed since it was found suitable.
var errNotTaken = errors.New("the pod cannot be taken over")

// TakeOver gives a pod to another owner, whose session replaces the one that the pod has. It reports false if the existing pod of the name
// differs, is being stopped, has no session, or if the client that owns it is running.
func (s *Supervisor) TakeOver(ctx context.Context, pod *spec.Pod, owner state.Owner) (Snapshot, bool) {
	s.mu.Lock()
	l := s.pods[pod.Name]
	s.mu.Unlock()
	if owner.Session == "" || l == nil || !takeable(l.snapshot.Load(), pod) {
		return Snapshot{}, false
	}
	err := s.change(ctx, "take over", pod.Name, l.uid, func(l *loop, _ lifecycle.Instant) error {
		if !takeable(l.snapshot.Load(), pod) {
			return errNotTaken
		}
		l.owner = owner
		l.dirty = true
		return nil
	})
	if err != nil {
		return Snapshot{}, false
	}
	s.mu.Lock()
	s.watchSession(owner.Session)
	s.mu.Unlock()
	return *l.snapshot.Load(), true
}

// takeable reports whether an existing pod is the one of the file, and has lost its client.
func takeable(existing *Snapshot, pod *spec.Pod) bool {
	o := existing.Owner
	return o.Session != "" && !o.Process.Running() && (!o.Keep || !existing.AtRest) && existing.Facts.Stop.Requested.IsZero() &&
		existing.Pod.Hash == pod.Hash && existing.Pod.Dir == pod.Dir
}
