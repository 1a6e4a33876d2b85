package supervisor

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// held returns a pod that is not supervised. The reason and why become its status.
func held(pod *spec.Pod, f lifecycle.Facts, reason lifecycle.Reason, why string) *heldPod {
	return &heldPod{
		snapshot: Snapshot{
			Pod: pod, Facts: f,
			Status: lifecycle.Status{
				Phase: lifecycle.PhaseUnknown, Reason: reason, Message: NotSupervised + why,
				Conditions: []lifecycle.Condition{}, QOSClass: pod.QOS(),
			},
		},
		why: why,
	}
}

// holdNewer holds the pod of a state file of a later version. Its definition, apart from the name, is that of its containers.
func (s *Supervisor) holdNewer(u *state.Unusable, found lifecycle.Found) {
	pod := found.Pod
	if pod == nil || pod.Name != u.Name {
		pod = unknownPod(u.Name)
	}
	uid := u.UID
	if uid == "" {
		uid = found.UID
	}
	if uid == "" {
		uid = uuid.NewString()
	}
	facts := lifecycle.Facts{UID: uid, Accepted: s.shared.now()}
	h := held(pod, facts, lifecycle.ReasonNewerState, "its state file was "+u.Err.Error())
	h.takeUp = s.takeUpFound(pod, uid, found)
	h.takeUpForced = h.takeUp
	s.hold(h)
}

// unknownPod returns a pod whose definition is unknown.
func unknownPod(name string) *spec.Pod {
	return &spec.Pod{Name: name, RestartPolicy: spec.RestartNever}
}

// takeUpFound returns a function that starts the loop of a pod with only what the engine has of it, without its saved state.
func (s *Supervisor) takeUpFound(pod *spec.Pod, uid string, found lifecycle.Found) func(initialize) *loop {
	return func(then initialize) *loop {
		now := s.shared.now()
		facts := lifecycle.Facts{UID: uid, Accepted: now}
		return s.startLoop(state.Pod{Pod: pod, Facts: facts.CatchUp(found, now)}, then)
	}
}

func (s *Supervisor) hold(h *heldPod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked[h.snapshot.Pod.Name] = h
}

// holdsNewer reports whether there is a pod of a later version.
func (s *Supervisor) holdsNewer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.blocked {
		if h.newer() {
			return true
		}
	}
	return false
}

// stopHeld stops a pod that is not supervised, which supervises it again. The error is a [*NotSupervisedError] for the pod of a later
// version, unless the options request a forced deletion: its state file is replaced. A forced deletion uses neither the saved state, the
// definition nor the containers of a suspect or a pod in quarantine, because its recovery may be what crashed the daemon: the pod is only
// removed.
func (s *Supervisor) stopHeld(ctx context.Context, h *heldPod, o StopOptions) error {
	name, uid := h.snapshot.Pod.Name, h.snapshot.Facts.UID
	switch {
	case o.UID != "" && o.UID != uid:
		return fmt.Errorf("stop pod %q: %w", name, ErrNotFound)
	case h.newer() && !o.forced():
		return &NotSupervisedError{Pod: name, Why: h.why, Reason: lifecycle.ReasonNewerState}
	}
	if !s.release(h) {
		return s.stopReleased(ctx, h, o)
	}
	takeUp := h.takeUp
	if o.forced() {
		takeUp = h.takeUpForced
	}
	requested := make(chan *state.Write, 1)
	l := takeUp(func(l *loop, now lifecycle.Instant) {
		l.fold(lifecycle.StopRequested{Grace: lifecycle.EffectiveGrace(l.pod, o.Grace), Delete: o.Delete, By: o.By, At: now}, now)
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

// stopReleased stops a pod that another call supervises again.
func (s *Supervisor) stopReleased(ctx context.Context, h *heldPod, o StopOptions) error {
	for {
		changed := s.Changed()
		s.mu.Lock()
		l, present := s.pods[h.snapshot.Pod.Name]
		leaving := s.leaving
		s.mu.Unlock()
		switch {
		case leaving:
			return ErrLeaving
		case l != nil && l.uid == h.snapshot.Facts.UID:
			return s.request(ctx, "stop", l, func(l *loop, now lifecycle.Instant) error { return l.stop(o, now) })
		case l != nil, !present:
			return fmt.Errorf("stop pod %q: %w", h.snapshot.Pod.Name, ErrNotFound)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release reserves the name of a held pod for its loop. It reports false if the pod is no longer held, or is being released.
func (s *Supervisor) release(h *heldPod) bool {
	name := h.snapshot.Pod.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, releasing := s.pods[name]; releasing || s.blocked[name] != h || s.leaving {
		return false
	}
	s.pods[name] = nil
	return true
}

func (h *heldPod) newer() bool { return h.snapshot.Status.Reason == lifecycle.ReasonNewerState }

// nameTaken returns why a new pod cannot have its name, which the loop has. A nil loop is that of a pod that is being created.
func nameTaken(l *loop, pod *spec.Pod) *NameTakenError {
	if l == nil {
		return &NameTakenError{Name: pod.Name, Holder: "it is being created"}
	}
	p := l.snapshot.Load()
	e := &NameTakenError{
		Name: pod.Name, Holder: holder(p, pod), File: p.Owner.File,
		Deleting: p.Facts.Stop.Delete, Different: p.Pod.Hash != pod.Hash || p.Pod.Dir != pod.Dir,
	}
	running := p.Owner.Process.Running()
	lost := p.Owner.Session != "" && !p.Owner.Keep && !running // a pod that its client keeps is not deleted
	if !e.Different && !p.Facts.Stop.Requested.IsZero() && (p.Facts.Stop.Delete || lost) {
		e.Stopping = p.Facts.UID
	}
	// The file may have changed since: the next run of it replaces the pod, as a job does that a timer runs every night.
	if p.Owner.Keep && !running && p.AtRest && p.Status.Phase.Terminal() && p.Pod.Dir == pod.Dir {
		e.Terminated = p.Facts.UID
	}
	return e
}

// holder describes the pod that has a name, for the [NameTakenError] of a new pod.
func holder(p *Snapshot, pod *spec.Pod) string {
	text := "created earlier"
	if p.Owner.By != "" {
		text = "created by " + p.Owner.String()
	}
	switch {
	case p.Facts.Stop.Delete:
		text = "it is being deleted, " + text
	case !p.Facts.Stop.Requested.IsZero() && !p.AtRest:
		text = "it is being stopped, " + text
	}
	switch {
	case p.Pod.Hash != pod.Hash:
		text += " from a different pod file with " + containersOf(p.Pod)
	case p.Pod.Dir != pod.Dir:
		text += " from a pod file in " + p.Pod.Dir
	}
	return text
}

// containersOf lists the first containers of a pod with their images.
func containersOf(pod *spec.Pod) string {
	const most = 3
	var list []string
	for i := range pod.Containers[:min(len(pod.Containers), most)] {
		list = append(list, fmt.Sprintf("%s (%s)", pod.Containers[i].Name, pod.Containers[i].Image))
	}
	if more := len(pod.Containers) - most; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	noun := "container "
	if len(pod.Containers) > 1 {
		noun = "containers "
	}
	return noun + strings.Join(list, ", ")
}
