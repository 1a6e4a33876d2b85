package supervisor

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func newLoop(sh *shared, p state.Pod, changed func()) *loop {
	l := &loop{
		name: p.Pod.Name, pod: withEphemerals(p.Pod, nil), uid: p.Facts.UID, owner: p.Owner, shared: sh, changed: func() {},
		log:     sh.log.With(slog.String("pod", p.Pod.Name)),
		mailbox: make(mailbox, 16),
		ended:   make(chan struct{}),
		ready:   make(chan struct{}),
		pulling: map[string]lifecycle.Progress{},
	}
	l.events = emit.New(l.pod, l.uid, sh.ring, sh.restored[l.uid])
	l.effects = newEffects(sh, l.uid, &l.fullPod, l.mailbox, l.log)
	l.facts = p.Facts.Apply(lifecycle.EngineAvailable{At: sh.now()}) // the engine counts as available until it does not answer
	l.updateFullPod()
	l.markReady = sync.OnceFunc(func() { close(l.ready) })
	l.status.Conditions = p.Conditions
	l.writer = state.NewWriter(sh.store, sh.checkpoints, l.uid)
	l.publish(sh.now()) // without a notification: the pod is not in the set yet
	l.changed = changed
	return l
}

// startLoop starts the loop of a pod, whose name must be free or reserved. It returns nil if the supervisor is shutting down.
func (s *Supervisor) startLoop(p state.Pod, prepare initialize) *loop {
	l := newLoop(s.shared, p, s.notify)
	defer s.notify()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.adding, p.Pod.Name)
	if s.leaving {
		delete(s.pods, p.Pod.Name)
		return nil
	}
	s.pods[p.Pod.Name] = l
	delete(s.blocked, p.Pod.Name)
	s.watchSession(p.Owner.Session)
	ready, handled := l.markReady, s.shared.quarantine.Begin(l.uid, p.Pod.Name)
	l.markReady = sync.OnceFunc(func() {
		ready()
		handled()
	})
	s.loops.Go(func() {
		removed := l.run(s.ctx, startup{func(now lifecycle.Instant) { prepare(l, now) }})
		if !removed {
			return
		}
		s.mu.Lock()
		delete(s.pods, p.Pod.Name)
		final := *l.snapshot.Load()
		if watched := s.sessions[final.Owner.Session]; watched != nil && final.Owner.Process.Running() {
			watched.final[final.Facts.UID] = final
		}
		s.mu.Unlock()
		s.notify()
	})
	return l
}

// Add accepts a pod and starts it. When it returns, the pod is saved, unless writing failed or took longer than 3 s. The error
// is a [*NameTakenError] if the name is in use. It is a [*RefusedError] if the admission policy, the host or another pod prevents the pod
// from running.
func (s *Supervisor) Add(pod *spec.Pod, owner state.Owner) (Snapshot, error) {
	return s.AddStaged(pod, owner, Staged{})
}

// AddStaged is [Supervisor.Add] for a pod whose images were staged.
func (s *Supervisor) AddStaged(pod *spec.Pod, owner state.Owner, staged Staged) (Snapshot, error) {
	if err := s.reserve(pod, owner, staged.Refused); err != nil {
		return Snapshot{}, err
	}
	p := state.Pod{Pod: pod, Owner: owner, Facts: lifecycle.Facts{UID: uuid.NewString(), Accepted: s.shared.now()}}
	p.Facts.Trial = s.shared.trial(pod, staged.RollsBack, p.Facts.Accepted)
	for name, image := range staged.Images {
		p.Facts.Stage(name, image, p.Facts.Accepted)
	}
	accepted := make(chan *state.Write, 1)
	l := s.startLoop(p, func(l *loop, now lifecycle.Instant) {
		l.emit(now, event.PodAccepted, "", event.Fields{"by": owner.By})
		l.shadowed(staged, staged.Images, now)
		accepted <- l.writer.Put(l.state(now))
	})
	if l == nil {
		return Snapshot{}, ErrLeaving
	}
	select {
	case saved := <-accepted:
		saved.Wait(s.ctx, saveTimeout)
	case <-l.ended:
	}
	return *l.snapshot.Load(), nil
}

// reserve reserves the name and the host ports of a pod until its loop starts. It emits an event for a pod that is rejected, unless the
// reasons are those of an earlier attempt.
func (s *Supervisor) reserve(pod *spec.Pod, owner state.Owner, before []lifecycle.Refusal) error {
	refusals, allocatable := s.check(pod), s.shared.runtime.Allocatable()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return ErrLeaving
	}
	if p := s.blocked[pod.Name]; p != nil {
		return &NameTakenError{Name: pod.Name, Holder: "it is not supervised: " + p.why}
	}
	if l, taken := s.pods[pod.Name]; taken {
		return &NameTakenError{
			Name: pod.Name, Holder: holder(l, pod), File: fileOf(l),
			Stopping: stoppingOf(l, pod), Terminated: terminatedOf(l, pod), Different: different(l, pod),
		}
	}
	refusals = append(refusals, s.conflicts(pod, allocatable)...)
	if len(refusals) > 0 {
		if emit.Reasons(refusals) != emit.Reasons(before) {
			emit.Rejected(s.shared.ring, s.shared.now(), pod.Name, refusals, owner.By, owner.File)
			s.notifyLocked() // for pods that wait for this one
		}
		return &RefusedError{Pod: pod.Name, Refusals: refusals}
	}
	s.pods[pod.Name], s.adding[pod.Name] = nil, pod
	return nil
}

// conflicts returns why other pods prevent a pod from running. s.mu must be held.
func (s *Supervisor) conflicts(pod *spec.Pod, allocatable spec.ResourceList) []lifecycle.Refusal {
	return slices.Concat(s.requestConflicts(pod, allocatable), s.portConflicts(pod), s.volumeConflicts(pod), s.waitCycles(pod))
}
