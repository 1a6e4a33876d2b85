package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// New returns a supervisor without pods. [Supervisor.Recover] restores those of an earlier supervisor. The caller must call
// [Supervisor.Leave] in the end.
func New(ctx context.Context, o Options) *Supervisor {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if o.Journal != nil {
		o.Journal = reservedJournal{o.Journal, o.Space}
	}
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(recording)
	s := &Supervisor{
		shared: &shared{
			runtime: o.Runtime, prober: o.Prober, hooks: o.Hooks,
			store: reservedStore{o.Store, o.Space}, space: o.Space, checkpoints: o.Checkpoints, journal: o.Journal,
			now: o.Clock, damaged: o.Damaged, log: log, quarantine: o.Quarantine, crash: o.Crash, uncleanBoot: o.UncleanBoot,
			minReady: o.MinReady, decide: lifecycle.Decide, between: change.Between,
			restored: map[string]emit.Causes{},
			ring:     event.NewRing(cmp.Or(o.Events, 4096)),
			starts:   make(chan struct{}, cmp.Or(o.MaxParallelStarts, runtime.NumCPU())),
		},
		ctx: ctx, cancel: cancel, stopRecording: stopRecording,
		pods: map[string]*loop{}, adding: map[string]*spec.Pod{}, changing: map[string]reservation{},
		removing: map[string]int{}, blocked: map[string]*heldPod{},
		sessions: map[string]*session{}, changed: make(chan struct{}), recovered: make(chan struct{}), jobTurns: map[string]jobTurns{},
		finished: o.Finished, maxCollected: maxCollected,
	}
	s.shared.peers, s.shared.conditions, s.shared.rebooter = s, o.Conditions, o.Rebooter
	s.shared.policy.Store(&o.Policy)
	s.shared.ring.SetClock(eventClock(o.Clock))
	if o.LogEvents == nil {
		o.LogEvents = func(ctx context.Context, r *event.Ring, log *slog.Logger) { r.Log(ctx, log) }
	}
	s.recording.Go(func() { o.LogEvents(recording, s.shared.ring, log) })
	if o.Journal != nil {
		now := func() time.Time { return o.Clock().Wall }
		r := event.NewRecorder(s.shared.ring, o.Journal, now, s.names)
		s.recording.Go(func() { r.Run(recording) })
	}
	return s
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
		l.emit(now, api.EventPodAccepted, "", event.Fields{"by": owner.By})
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
		return nameTaken(l, pod)
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
		s.notify() // its Job was not known before
	})
	s.loops.Go(func() {
		if l.run(s.ctx, startup{func(now lifecycle.Instant) { prepare(l, now) }}) {
			s.forgetLoop(l)
		}
	})
	return l
}

// forgetLoop removes a pod after its last turn. Its large stack frame is not part of the stack that each pod keeps.
func (s *Supervisor) forgetLoop(l *loop) {
	s.mu.Lock()
	delete(s.pods, l.name)
	final := *l.snapshot.Load()
	if watched := s.sessions[final.Owner.Session]; watched != nil && final.Owner.Process.Running() {
		watched.final[final.Facts.UID] = final
	}
	s.mu.Unlock()
	s.notify()
}

func newLoop(sh *shared, p state.Pod, changed func()) *loop {
	l := &loop{
		name: p.Pod.Name, pod: withEphemerals(p.Pod, nil), uid: p.Facts.UID, owner: p.Owner, shared: sh, changed: func() {},
		log:     sh.log.With(slog.String("pod", p.Pod.Name)),
		mailbox: make(mailbox, 16),
		ended:   make(chan struct{}),
		ready:   make(chan struct{}),
		pulling: pulls{}, begun: map[string]string{},
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

// Heartbeat returns nil when the loop of each pod has handled a message, or has exited. If ctx ends before that, the error names the pods
// whose loops did not answer. A loop that waits for the disk, the container engine or a shim answers: such calls have goroutines of their
// own.
func (s *Supervisor) Heartbeat(ctx context.Context) error {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var silent []string
	for name, l := range s.running() {
		wait.Go(func() {
			if !l.answers(ctx) {
				mu.Lock()
				defer mu.Unlock()
				silent = append(silent, name)
			}
		})
	}
	wait.Wait()
	if len(silent) == 0 {
		return nil
	}
	slices.Sort(silent)
	return fmt.Errorf("no response from the supervisors of pods %s: %w", strings.Join(silent, ", "), context.Cause(ctx))
}

// running returns the loops by the name of their pod.
func (s *Supervisor) running() map[string]*loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	loops := make(map[string]*loop, len(s.pods))
	for name, l := range s.pods {
		if l != nil {
			loops[name] = l
		}
	}
	return loops
}
