package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// Options are what a [Supervisor] is made of. Runtime, Store and Clock are needed, and Prober and Hooks for pods that have
// probes and hooks.
type Options struct {
	Runtime     Runtime
	Prober      Prober
	Hooks       Hooks
	Store       state.Store
	Checkpoints state.Checkpoints // nil: after a restart of the supervisor probes are asked again, and signals sent again
	Journal     Journal           // nil: events are forgotten with the supervisor
	Clock       Clock
	// Policy is what pods that come may ask for.
	Policy admission.Policy
	Log    *slog.Logger // nil: discarded
	// MaxParallelStarts bounds how many containers start at once; 0: as many as there are cores.
	MaxParallelStarts int
	// Events is how many events are kept; 0: 4096.
	Events int
}

// Supervisor is the set of pods of a machine. It is safe for concurrent use.
type Supervisor struct {
	shared *shared
	ctx    context.Context //nolint:containedctx // the life of the loops, which is the supervisor's own
	cancel context.CancelFunc
	loops  sync.WaitGroup
	// The log goes on until the loops have ended.
	logging     sync.WaitGroup
	stopLogging context.CancelFunc

	mu       sync.Mutex
	pods     map[string]*loop     // nil: the name is reserved for one that is being added
	adding   map[string]*spec.Pod // those that are being added
	removing map[string]int       // how many are at removing each volume
	blocked  map[string]string    // names that cannot be used, and why
	leaving  bool
	changed  chan struct{}
	sessions map[string]*session
}

// New returns a supervisor without pods. [Supervisor.Recover] takes up what an earlier one left; [Supervisor.Leave]
// has to be called in the end.
func New(ctx context.Context, o Options) *Supervisor {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	logging, stopLogging := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(logging)
	s := &Supervisor{
		shared: &shared{
			runtime: o.Runtime, prober: o.Prober, hooks: o.Hooks, store: o.Store, checkpoints: o.Checkpoints, journal: o.Journal, now: o.Clock, policy: o.Policy, log: log, decide: lifecycle.Decide,
			before: map[string]map[string]told{},
			ring:   NewRing(cmp.Or(o.Events, 4096)),
			starts: make(chan struct{}, cmp.Or(o.MaxParallelStarts, runtime.NumCPU())),
		},
		ctx: ctx, cancel: cancel, stopLogging: stopLogging,
		pods: map[string]*loop{}, adding: map[string]*spec.Pod{}, removing: map[string]int{}, blocked: map[string]string{}, sessions: map[string]*session{},
		changed: make(chan struct{}),
	}
	s.logging.Go(func() { s.shared.ring.log(logging, log) })
	if o.Journal != nil {
		r := &recorder{ring: s.shared.ring, journal: o.Journal, now: o.Clock, pods: s.names}
		s.logging.Go(func() { r.run(logging) })
	}
	return s
}

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such pod")
	ErrLeaving  = errors.New("the supervisor is about to leave")
)

// NameTakenError says that a pod of that name is there already.
type NameTakenError struct {
	Name   string
	Holder string // who has it, in words
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("pod %q exists: %s", e.Name, e.Holder)
}

// begin starts the loop of a pod, whose name must be free or reserved. It returns nil if the supervisor is about to leave.
func (s *Supervisor) begin(e state.Pod, first func(*loop, lifecycle.Instant)) *loop {
	l := newLoop(s.shared, e, s.notify)
	defer s.notify()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.adding, e.Pod.Name)
	if s.leaving {
		delete(s.pods, e.Pod.Name)
		return nil
	}
	s.pods[e.Pod.Name] = l
	s.attend(e.Owner.Session)
	s.loops.Go(func() {
		gone := l.run(s.ctx, func(now lifecycle.Instant) { first(l, now) })
		if !gone {
			return
		}
		s.mu.Lock()
		delete(s.pods, e.Pod.Name)
		s.mu.Unlock()
		s.notify()
	})
	return l
}

// Add accepts a pod and starts it. When it returns the pod is on disk, so that whoever was told of it finds it again, unless
// the disk fails, or hangs for 10 s. A name that is taken is a [*NameTakenError], one that the machine, its policy
// or the other pods do not let run a [*RefusedError].
func (s *Supervisor) Add(pod *spec.Pod, owner state.Owner) (Snapshot, error) {
	if err := s.reserve(pod, owner.By); err != nil {
		return Snapshot{}, err
	}
	e := state.Pod{Pod: pod, Owner: owner, Facts: lifecycle.Facts{UID: uuid.NewString(), Accepted: s.shared.now()}}
	accepted := make(chan *state.Write, 1)
	l := s.begin(e, func(l *loop, now lifecycle.Instant) {
		l.tell(now, PodAccepted, "", fields{"by": owner.By})
		accepted <- l.writer.Put(l.state(now))
	})
	if l == nil {
		return Snapshot{}, ErrLeaving
	}
	select {
	case saved := <-accepted:
		saved.Wait(s.ctx, startWait)
	case <-l.ended:
	}
	return *l.snapshot.Load(), nil
}

// reserve takes the name and the host ports of a pod, until its loop begins. That it is refused is told as an event, too.
func (s *Supervisor) reserve(pod *spec.Pod, by string) error {
	refusals := s.admissible(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return ErrLeaving
	}
	if why, blocked := s.blocked[pod.Name]; blocked {
		return &NameTakenError{Name: pod.Name, Holder: "its state file was " + why}
	}
	if l, taken := s.pods[pod.Name]; taken {
		return &NameTakenError{Name: pod.Name, Holder: holder(l)}
	}
	refusals = slices.Concat(refusals, s.conflicts(pod), s.vanishing(pod))
	if len(refusals) > 0 {
		s.tellRefused(pod.Name, refusals, by)
		return &RefusedError{Pod: pod.Name, Refusals: refusals}
	}
	s.pods[pod.Name], s.adding[pod.Name] = nil, pod
	return nil
}

func holder(l *loop) string {
	switch {
	case l == nil:
		return "it is being added"
	case l.owner.By != "":
		return "it belongs to " + l.owner.By
	default:
		return "it was added before"
	}
}

// Pods returns all pods, sorted by name.
func (s *Supervisor) Pods() []Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Snapshot, 0, len(s.pods))
	for _, l := range s.pods {
		if l != nil {
			list = append(list, *l.snapshot.Load())
		}
	}
	slices.SortFunc(list, func(a, b Snapshot) int { return cmp.Compare(a.Pod.Name, b.Pod.Name) })
	return list
}

// Pod returns the pod of a name.
func (s *Supervisor) Pod(name string) (Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.pods[name]
	if l == nil {
		return Snapshot{}, false
	}
	return *l.snapshot.Load(), true
}

// Now reads the clock that the facts of the pods follow.
func (s *Supervisor) Now() lifecycle.Instant { return s.shared.now() }

// Events returns the newest events of all pods.
func (s *Supervisor) Events() *Ring { return s.shared.ring }

// Changed returns a channel that is closed when any pod changes, comes or goes after the call.
func (s *Supervisor) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Supervisor) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Leave ends the supervisor and leaves every pod as it is; the next supervisor takes them up. It returns when the state
// is written and nothing of the supervisor runs any more, or with the context's error before that.
func (s *Supervisor) Leave(ctx context.Context) error {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	s.cancel()
	done := make(chan struct{})
	go func() {
		s.loops.Wait()
		s.stopLogging()
		s.logging.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("leave: %w", ctx.Err())
	}
}
