package supervisor

import (
	"context"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// reserveChange reserves what the new definition of a pod needs, in addition to what the old one uses, until release is called. Images
// are those that containers get. The definition is the old one if the pod is started. It waits until other requests that change or start
// the pod have been answered. It reserves nothing for a pod that stays stopped or completed: its start is checked. starts is for requests
// that start the pod in any case.
func (s *Supervisor) reserveChange(
	ctx context.Context, pod *spec.Pod, images map[string]lifecycle.Image, starts bool,
) (release func(), err error) {
	allocatable := s.shared.runtime.Allocatable()
	if err := s.lockUnchanging(ctx, pod.Name); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.pods[pod.Name]
	if l == nil { // not known: the request is answered without a reservation
		return func() {}, nil
	}
	var needed *spec.Pod
	if starts || s.shared.runsWith(l.snapshot.Load(), withEphemerals(pod, nil), images) {
		if refusals := s.conflicts(pod, allocatable); len(refusals) > 0 {
			return nil, &RefusedError{Pod: pod.Name, Refusals: refusals}
		}
		needed = pod
	}
	released := make(chan struct{})
	s.changing[pod.Name] = reservation{needed, released}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changing, pod.Name)
		close(released)
	}, nil
}

// lockUnchanging locks s.mu when no request changes or starts a pod. If ctx ends before, it does not lock.
func (s *Supervisor) lockUnchanging(ctx context.Context, name string) error {
	for {
		s.mu.Lock()
		r, changing := s.changing[name]
		if !changing {
			return nil
		}
		s.mu.Unlock()
		select {
		case <-r.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// runsWith reports whether a pod needs what a new definition with these images needs: it runs, the change starts it again, or a new pod
// replaces it.
func (s *shared) runsWith(now *Snapshot, to *spec.Pod, images map[string]lifecycle.Image) bool {
	from := withEphemerals(now.Pod, nil)
	changes := s.changes(from, to, now.Facts, images)
	if !lifecycle.Terminating(from, now.Facts) || change.Largest(changes) == change.ReplacePod {
		return true
	}
	e := lifecycle.DefinitionChanged{From: from, To: to, Images: map[string]lifecycle.Image{}, At: s.now()}
	for _, name := range affected(from, to, changes) {
		e.Images[name] = lifecycle.Image{}
	}
	return startsAgain(now.Facts, e)
}

// startsAgain reports whether a change starts the pod again: it has completed, failed or is being evicted, and a container was changed or
// the new definition does not let the pod end, for example with another restart policy. A pod that was stopped by a user stays stopped.
func startsAgain(f lifecycle.Facts, e lifecycle.DefinitionChanged) bool {
	if f.Stop.ByUser || !lifecycle.Terminating(e.From, f) {
		return false
	}
	return len(e.Images) > 0 || !lifecycle.Terminating(e.To, f.Apply(e))
}
