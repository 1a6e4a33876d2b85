package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

const (
	// longestSleep bounds how long a loop waits without a look at the clock: timers stand still while the machine is
	// suspended, the clock of the facts does not.
	longestSleep = time.Minute
	// maxTurns bounds the decisions without an event between them. They come to a fixed point in a handful.
	maxTurns = 1000
	// panicPause keeps a pod whose turns panic from using up a core.
	panicPause = 10 * time.Second
)

// message is something that the loop does between two decisions, on its own goroutine.
type message func(now lifecycle.Instant)

// loop keeps one pod as it should be. Its goroutine alone touches what stands below facts; others read the snapshot.
type loop struct {
	pod     *spec.Pod
	uid     string
	owner   state.Owner
	shared  *shared
	log     *slog.Logger
	mailbox chan message
	writer  *state.Writer
	changed func()        // tells the set that the snapshot is another one
	ended   chan struct{} // closed when run has returned
	first   chan struct{} // closed after the first turn: from then on the snapshot is of this life
	begun   func()        // closes first

	snapshot atomic.Pointer[Snapshot]
	whole    atomic.Pointer[spec.Pod] // pod with the ephemeral containers, for all but the decisions
	effects  sync.WaitGroup           // everything that was started and can post

	facts         lifecycle.Facts
	status        lifecycle.Status
	waiting       []message                     // to be done before the next decision
	dirty         bool                          // the facts hold what must be on disk before anything is started
	newest        map[string]told               // the newest event of each container, and of the pod as ""
	pulls         map[string]context.CancelFunc // by container
	pulling       map[string]Progress           // by container
	hooks         map[hookRef]context.CancelFunc
	probes        map[lifecycle.ProbeRef]*probing
	checkpointDue bool               // the facts hold what a note has to be taken of
	sandboxEnd    context.CancelFunc // ends the watch of the sandbox
	notDurable    error              // of the newest write
	saved         lifecycle.Instant  // when that was handed over
}

// shared is what all loops have in common.
type shared struct {
	runtime     Runtime
	prober      Prober
	hooks       Hooks
	store       state.Store
	checkpoints state.Checkpoints // nil: they are not kept
	journal     Journal           // nil: there is none
	now         Clock
	policy      admission.Policy
	log         *slog.Logger
	ring        *Ring
	starts      chan struct{} // holds a token for each start under way
	// before is the newest event of earlier lives, by UID and container; nil once the pods are taken up.
	before map[string]map[string]told
	// decide is [lifecycle.Decide], but in a test.
	decide func(*spec.Pod, lifecycle.Facts, lifecycle.Instant) lifecycle.Decision
}

func newLoop(sh *shared, e state.Pod, changed func()) *loop {
	l := &loop{
		pod: withoutEphemerals(e.Pod), uid: e.Facts.UID, owner: e.Owner, shared: sh, changed: func() {},
		log:     sh.log.With(slog.String("pod", e.Pod.Name)),
		mailbox: make(chan message, 16),
		ended:   make(chan struct{}),
		first:   make(chan struct{}),
		newest:  maps.Clone(sh.before[e.Facts.UID]),
		pulls:   map[string]context.CancelFunc{},
		pulling: map[string]Progress{},
		hooks:   map[hookRef]context.CancelFunc{},
		probes:  map[lifecycle.ProbeRef]*probing{},
	}
	if l.newest == nil {
		l.newest = map[string]told{}
	}
	l.facts = e.Facts.Apply(lifecycle.EngineAvailable{At: sh.now()}) // until this life learns otherwise
	l.define()
	l.begun = sync.OnceFunc(func() { close(l.first) })
	l.status.Conditions = e.Conditions
	l.writer = state.NewWriter(sh.store, sh.checkpoints, l.uid)
	l.observe(sh.now()) // of which nobody can know yet
	l.changed = changed
	return l
}

// run lives until the pod is gone or the context ends, which leaves containers as they are. It returns when all that it
// started has ended and the newest state is written, and reports whether the pod is gone.
func (l *loop) run(ctx context.Context, begin message) (gone bool) {
	defer close(l.ended)
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	ctx, stop := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() { l.writer.Run(writing, func(err error) { l.stored(ctx, err) }) })
	defer func() {
		stop()
		if !gone {
			l.writer.Put(l.state(l.shared.now()))
		}
		stopWriting()
		writer.Wait()
		if gone {
			l.forget()
		}
	}()
	l.waiting = []message{begin}
	for {
		if gone = l.live(ctx); gone || ctx.Err() != nil {
			return gone
		}
	}
}

// live turns until the pod is gone, the context ends, or a turn panics, and ends what it started. What a turn that
// panicked has issued or was told may be lost, so that the next life begins as after a restart of the supervisor: it
// carries out again what has no outcome, and watches what runs.
func (l *loop) live(ctx context.Context) (gone bool) {
	ctx, stop := context.WithCancel(ctx)
	defer l.effects.Wait()
	defer stop()
	clear(l.probes) // those of a life before this one have ended with it
	for len(l.mailbox) > 0 {
		l.waiting = append(l.waiting, <-l.mailbox)
	}
	panicked, gone := l.turns(ctx)
	if panicked {
		select {
		case <-time.After(panicPause):
		case <-ctx.Done():
		}
	}
	return gone
}

// turns runs until the pod is gone, the context ends, or a turn panics. It survives that: the facts, being immutable,
// are as they were before the fold that panicked.
func (l *loop) turns(ctx context.Context) (panicked, gone bool) {
	defer l.begun()
	defer func() {
		if r := recover(); r != nil {
			l.log.LogAttrs(ctx, slog.LevelError, "a turn panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			l.tell(l.shared.now(), InternalError, "", fields{"error": fmt.Sprint(r)})
			panicked = true
		}
	}()
	timer := time.NewTimer(longestSleep)
	defer timer.Stop()
	for resumed := false; ; {
		now := l.shared.now() // the only clock reading of the turn
		for len(l.waiting) > 0 {
			m := l.waiting[0]
			l.waiting = l.waiting[1:] // gone if it panics, but not those behind it
			m(now)
		}
		if !resumed {
			l.resume(ctx)
			resumed = true
		}
		if l.notDurable != nil && now.Sub(l.saved) >= longestSleep {
			l.dirty = true // the disk may have recovered
		}
		sleep, gone := l.settle(ctx, now)
		if gone {
			return false, true
		}
		l.begun()
		timer.Reset(sleep)
		select {
		case m := <-l.mailbox:
			l.waiting = append(l.waiting, m)
		case <-timer.C:
		case <-ctx.Done():
			return false, false
		}
	}
}

// settle decides until nothing is left to do, starts the effects, publishes, and says how long to sleep.
func (l *loop) settle(ctx context.Context, now lifecycle.Instant) (sleep time.Duration, gone bool) {
	var actions []lifecycle.Action
	for range maxTurns {
		d := l.shared.decide(l.pod, l.facts, now)
		for _, a := range d.Actions {
			l.issue(a, now)
		}
		actions = append(actions, d.Actions...)
		if len(d.Actions) > 0 {
			continue
		}
		saved := l.save(now)
		for _, a := range actions {
			l.start(ctx, a, saved)
		}
		l.probe(ctx, d.Probes)
		l.observe(now)
		sleep = longestSleep
		if !d.Wake.IsZero() {
			sleep = min(sleep, d.Wake.Sub(now))
		}
		return sleep, d.Removed
	}
	panic(fmt.Sprintf("%d decisions in a row each had something to do, the last %T", maxTurns, actions[len(actions)-1]))
}

// issue folds in that an action is handed out, and tells of it.
func (l *loop) issue(a lifecycle.Action, now lifecycle.Instant) {
	l.tellAction(a, now)
	l.facts = l.facts.Apply(lifecycle.Issued{Action: a, At: now})
	switch a.(type) {
	case lifecycle.PullImage, lifecycle.FindImage, lifecycle.CancelPull, lifecycle.CancelHook, lifecycle.RemoveContainer:
		// Found out again by doing it again; the next write holds it too.
	default:
		l.dirty = true
	}
}

// fold folds in an event, and tells of it.
func (l *loop) fold(e lifecycle.Event, now lifecycle.Instant) {
	before := l.facts
	l.facts = l.facts.Apply(e)
	l.tellEvent(before, e, now)
	switch e.(type) {
	case lifecycle.ProbeChanged, lifecycle.SignalSent:
		l.checkpointDue = true // which holds until the next boot at most: no disk is kept awake for it
	case lifecycle.ProbeFailed, lifecycle.ProbeWarned, lifecycle.EngineUnavailable, lifecycle.EngineAvailable:
	case lifecycle.ImagePulled, lifecycle.ContainerRemoved:
		// As above: a restarted supervisor carries the action out again and learns the same.
	default:
		l.dirty = true
	}
}

// post hands the loop a message, unless the context ends first.
func (l *loop) post(ctx context.Context, m message) {
	select {
	case l.mailbox <- m:
	case <-ctx.Done():
	}
}

// demand hands the loop a message and waits until it was dealt with. It was not heard if the loop ended before.
func (l *loop) demand(ctx context.Context, m message) (heard bool, err error) {
	done := make(chan struct{}) // a loop that hears the message after ctx has ended shares nothing else with this call
	ask := func(now lifecycle.Instant) {
		m(now)
		close(done)
	}
	select {
	case l.mailbox <- ask:
	case <-l.ended:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case <-done:
		return true, nil
	case <-l.ended:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case <-done: // with its last message
		return true, nil
	default:
		return false, nil
	}
}

// offer hands the loop a message if it has room, and never blocks.
func (l *loop) offer(m message) {
	select {
	case l.mailbox <- m:
	default:
	}
}

// save hands the state to the writer if it has to be on disk, and returns the write; nil: there is none to wait for.
func (l *loop) save(now lifecycle.Instant) *state.Write {
	if l.checkpointDue {
		l.checkpointDue = false
		l.writer.Checkpoint(state.Checkpoint{
			At: now, Probes: l.facts.Verdicts(), Signals: l.facts.StopSignals(), Conditions: l.conditions(now),
		})
	}
	if !l.dirty {
		return nil
	}
	l.dirty, l.saved = false, now
	return l.writer.Put(l.state(now))
}

func (l *loop) state(now lifecycle.Instant) state.Pod {
	return state.Pod{SavedAt: now, Pod: l.pod, Owner: l.owner, Facts: l.facts, Conditions: l.conditions(now)}
}

// conditions are those of the present facts, changed at this instant if they are others than before.
func (l *loop) conditions(now lifecycle.Instant) []lifecycle.Condition {
	return lifecycle.StatusOf(l.pod, l.facts, now).Since(l.status.Conditions, now).Conditions
}

// stored is told the outcome of every write, on the writer's goroutine.
func (l *loop) stored(ctx context.Context, err error) {
	l.post(ctx, func(now lifecycle.Instant) {
		defer func(was told) { l.newest[""] = was }(l.newest[""]) // the disk is no cause of what the pod does next
		switch {
		case err != nil && l.notDurable == nil:
			l.tell(now, StateNotDurable, "", fields{"error": err.Error()})
		case err == nil && l.notDurable != nil:
			l.tell(now, StateDurable, "", nil)
		}
		l.notDurable = err
	})
}

// forget takes away the state file of a pod of which nothing else is left.
func (l *loop) forget() {
	err := l.shared.store.Delete(l.pod.Name)
	if l.shared.checkpoints != nil {
		err = errors.Join(err, l.shared.checkpoints.Delete(l.uid))
	}
	if err != nil {
		l.tell(l.shared.now(), RemovalFailed, "", fields{"what": "state file", "error": err.Error()})
	}
}

// Progress is how far the pull of an image is, in bytes. Total grows as more of the image becomes known.
type Progress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

func (l *loop) progress(container string, p Progress, now lifecycle.Instant) {
	if _, known := l.pulling[container]; !known {
		l.tell(now, ImagePulling, container, fields{"image": l.image(container)})
	}
	l.pulling[container] = p
}

// Snapshot is a pod at one moment. It is immutable.
type Snapshot struct {
	Pod        *spec.Pod
	Owner      state.Owner
	Facts      lifecycle.Facts
	Status     lifecycle.Status
	Pulling    map[string]Progress // of the containers whose image is being fetched
	AtRest     bool                // nothing of the pod runs, and nothing will of itself
	NotDurable bool                // the newest state could not be written
}

// observe computes the status, tells of a terminal phase, and publishes the snapshot if it is another one: who sees an end finds
// it told.
func (l *loop) observe(now lifecycle.Instant) {
	before := l.status.Phase
	l.status = lifecycle.StatusOf(l.pod, l.facts, now).Since(l.status.Conditions, now)
	switch {
	case before == "" || before == l.status.Phase:
	case l.status.Phase == lifecycle.PhaseSucceeded:
		l.tellBecause(now, l.latest(), PodSucceeded, "", nil)
	case l.status.Phase == lifecycle.PhaseFailed:
		l.tellBecause(now, l.latest(), PodFailed, "", nil)
	}
	s := &Snapshot{
		Pod: l.whole.Load(), Owner: l.owner, Facts: l.facts, Status: l.status, Pulling: maps.Clone(l.pulling),
		AtRest: l.status.Phase.Terminal() && l.facts.Idle(), NotDurable: l.notDurable != nil,
	}
	if old := l.snapshot.Swap(s); old == nil || !same(old, s) {
		l.changed()
	}
}

// same reports whether two snapshots of a pod show a reader the same.
func same(a, b *Snapshot) bool {
	return a.AtRest == b.AtRest && a.NotDurable == b.NotDurable && a.Facts.Stop == b.Facts.Stop &&
		maps.Equal(a.Pulling, b.Pulling) && reflect.DeepEqual(a.Status, b.Status)
}
