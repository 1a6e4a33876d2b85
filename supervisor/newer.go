package supervisor

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// NewerStateError reports that a pod cannot be changed because a later version has written its state file.
type NewerStateError struct{ Pod, Why string }

func (e *NewerStateError) Error() string {
	return fmt.Sprintf("pod %q is not supervised: its state file was %s", e.Pod, e.Why)
}

// newNewerPod returns the pod of a state file of a later version. Its definition, apart from the name, is that of its containers.
func newNewerPod(u *state.Unusable, found lifecycle.Found, now lifecycle.Instant) *newerPod {
	pod := &spec.Pod{Name: u.Name, RestartPolicy: spec.RestartNever}
	if found.Pod != nil && found.Pod.Name == u.Name {
		pod = found.Pod
	}
	uid := u.UID
	if uid == "" {
		uid = found.UID
	}
	if uid == "" {
		uid = uuid.NewString()
	}
	return &newerPod{
		snapshot: Snapshot{
			Pod: pod, Facts: lifecycle.Facts{UID: uid, Accepted: now},
			Status: lifecycle.Status{
				Phase: lifecycle.PhaseUnknown, Reason: lifecycle.ReasonNewerState, Message: "The state file was " + u.Err.Error(),
				Conditions: []lifecycle.Condition{}, QOSClass: pod.QOS(),
			},
		},
		found: found, why: u.Err.Error(),
	}
}

// stopNewer deletes a pod whose state file a later version has written, without a grace period. The state file is replaced, so that a
// supervisor that is restarted continues. The error is a [*NewerStateError] unless the options request a forced deletion.
func (s *Supervisor) stopNewer(ctx context.Context, p *newerPod, o StopOptions) error {
	name, uid := p.snapshot.Pod.Name, p.snapshot.Facts.UID
	switch {
	case o.UID != "" && o.UID != uid:
		return fmt.Errorf("stop pod %q: %w", name, ErrNotFound)
	case !o.Delete || o.Grace == nil || *o.Grace > 0:
		return &NewerStateError{Pod: name, Why: p.why}
	}
	s.mu.Lock()
	_, deleting := s.pods[name]
	if !deleting {
		s.pods[name] = nil
	}
	s.mu.Unlock()
	if deleting {
		return nil
	}
	requested := make(chan *state.Write, 1)
	saved := state.Pod{Pod: p.snapshot.Pod, Facts: p.snapshot.Facts.CatchUp(p.found, s.shared.now())}
	l := s.startLoop(saved, func(l *loop, now lifecycle.Instant) {
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, o.Grace), Delete: true, By: o.By, At: now}, now)
		requested <- l.writer.Put(l.state(now))
	})
	if l == nil {
		return ErrLeaving
	}
	select {
	case written := <-requested:
		written.Wait(ctx, saveTimeout)
	case <-l.ended:
	}
	return nil
}
