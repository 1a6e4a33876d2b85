package lifecycletest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxTurns is the maximum number of decisions at one instant. A pod that needs more does not reach a fixed point.
const maxTurns = 1000

// epoch is the wall clock at the start of a world.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Step is one step of the simulation: an event that was folded in, including issued actions, or a decision if Event is nil.
type Step struct {
	Now           lifecycle.Instant
	Since         time.Duration // since the start of the world
	Pod           *spec.Pod     // its definition at this step
	Supervisor    int           // number of the supervisor, from 1; after a crash the next one may have older facts
	Before, After lifecycle.Facts
	Event         lifecycle.Event
	Decision      lifecycle.Decision
}

// Fault is how an unavailable engine affects an action.
type Fault int

// The faults: none; the engine is unavailable before the action; the engine carries it out and becomes unavailable before it
// answers.
const (
	NoFault Fault = iota
	Unavailable
	UnavailableAfter
)

// World is one pod with its engine and its supervisor. The fields may be set before the first [World.Run]. It is not safe for
// concurrent use.
type World struct {
	Pod     *spec.Pod
	Script  Script
	Facts   lifecycle.Facts
	Observe func(Step)                   // may be nil
	Fault   func(lifecycle.Action) Fault // nil: only what [World.SetUnavailable] sets
	// HoldsReboots makes requests to reboot the host fail.
	HoldsReboots bool
	// LosesOutcomes makes the supervisor crash before it has saved a success.
	LosesOutcomes bool
	Delay         func() time.Duration                     // delay of an event; nil: none
	Duplicate     func() (after time.Duration, again bool) // whether an event arrives twice; nil: never

	engine      engine
	images      map[string]bool // by container: the image was added without a pull
	unavailable bool
	removed     bool
	pulls       map[string]func(lifecycle.Event) // ends the running pull of a container
	hooks       map[hook]func(lifecycle.Event)   // ends the running hook of a run

	workers map[lifecycle.ProbeRef]*worker
	waits   conditions

	now         time.Duration
	booted      time.Duration // when the host was booted
	boots       int
	clockOffset time.Duration // of the wall clock

	queue      []item
	supervisor int // number of the running supervisor; outcomes of actions of an earlier one are dropped
	down       bool
	saved      lifecycle.Facts
	savedPod   *spec.Pod
	savedAt    lifecycle.Instant
	dirty      bool
	wake       time.Duration // when the newest timer fires
	err        error
}

// item is a scheduled function. Items at the same instant run in the order in which they were scheduled.
type item struct {
	at         time.Duration
	do         func()
	background bool // it requires no new decision
}

// New returns a world at its first instant.
func New(pod *spec.Pod, script Script) *World {
	w := &World{
		Pod: pod, Script: script, boots: 1, supervisor: 1,
		engine: engine{
			sandboxes: map[int]bool{}, processes: map[lifecycle.Ref]*process{}, requested: map[lifecycle.Ref]Run{},
		},
		images: map[string]bool{},
		pulls:  map[string]func(lifecycle.Event){}, hooks: map[hook]func(lifecycle.Event){},
		workers: map[lifecycle.ProbeRef]*worker{},
		waits:   conditions{met: map[string]bool{}, watched: map[lifecycle.WaitRef]bool{}},
	}
	w.Facts = lifecycle.Facts{UID: "uid", Accepted: w.Now()}
	w.saved, w.savedPod, w.savedAt = w.Facts, w.Pod, w.Now()
	w.At(0, func() {})
	return w
}

// Now returns the current instant as the supervisor reads it.
func (w *World) Now() lifecycle.Instant {
	return lifecycle.Instant{
		Boot: fmt.Sprintf("boot-%d", w.boots), Mono: 10*time.Second + w.now - w.booted, Wall: epoch.Add(w.now + w.clockOffset),
	}
}

// At schedules do at an instant, given as the time since the start of the world.
func (w *World) At(at time.Duration, do func()) { w.enqueue(item{at: at, do: do}) }

// background schedules do without a new decision.
func (w *World) background(at time.Duration, do func()) {
	w.enqueue(item{at: at, do: do, background: true})
}

func (w *World) enqueue(next item) {
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at > next.at {
		i--
	}
	w.queue = slices.Insert(w.queue, i, next)
}

// Run runs the world until an instant, given as the time since its start, and returns the first violation.
func (w *World) Run(until time.Duration) error {
	busy := 0
	for len(w.queue) > 0 && w.queue[0].at <= until && w.err == nil {
		first := w.queue[0]
		w.queue = w.queue[1:]
		if busy++; first.at > w.now {
			busy, w.now = 0, first.at
		}
		if busy > maxTurns {
			w.violation("%d events at one instant", busy)
		}
		first.do()
		if !first.background {
			w.turn()
		}
	}
	w.now = max(w.now, until)
	return w.err
}

func (w *World) violation(format string, args ...any) {
	w.err = errors.Join(w.err, fmt.Errorf("at %v: "+format, append([]any{w.now}, args...)...))
}

// Violation records a violation, which [World.Run] returns.
func (w *World) Violation(err error) { w.violation("%w", err) }

// Removed reports whether everything of the pod is removed.
func (w *World) Removed() bool { return w.removed }

// Idle reports whether nothing is scheduled.
func (w *World) Idle() bool { return len(w.queue) == 0 }

// turn decides until no action is left, saves the facts, then begins the actions.
func (w *World) turn() {
	if w.down || w.removed {
		return
	}
	var todo []lifecycle.Action
	for range maxTurns {
		now := w.Now()
		d := lifecycle.Decide(w.Pod, w.Facts, now)
		w.observe(Step{Now: now, Before: w.Facts, After: w.Facts, Decision: d})
		for _, a := range d.Actions {
			w.fold(lifecycle.Issued{Action: a, At: now})
		}
		todo = append(todo, d.Actions...)
		if len(d.Actions) > 0 {
			continue
		}
		w.removed = d.Removed
		w.probes(d.Probes)
		w.watchConditions(d.Waits)
		w.save(now)
		for _, a := range todo {
			w.begin(a)
		}
		if at := w.now + d.Wake.Sub(now); !d.Wake.IsZero() && at != w.wake {
			w.wake = at
			w.At(at, func() {})
		}
		return
	}
	w.violation("no fixed point, the last action is %#v", todo[len(todo)-1])
}

func (w *World) observe(s Step) {
	if s.Since, s.Supervisor, s.Pod = w.now, w.supervisor, w.Pod; w.Observe != nil {
		w.Observe(s)
	}
}

// fold folds an event into the facts. Events that a restarted supervisor finds by itself are not saved.
func (w *World) fold(e lifecycle.Event) {
	before := w.Facts
	w.Facts = w.Facts.Apply(e)
	switch e := e.(type) {
	case lifecycle.ImagePulled, lifecycle.ContainerRemoved:
	case lifecycle.SignalSent, lifecycle.ProbeChanged, lifecycle.ProbeFailed, lifecycle.ProbeWarned, lifecycle.ConditionUnmet:
	case lifecycle.Issued:
		switch e.Action.(type) {
		case lifecycle.PullImage, lifecycle.FindImage, lifecycle.CancelPull, lifecycle.CancelHook, lifecycle.RemoveContainer:
		default:
			w.dirty = true
		}
	case lifecycle.ContainerStarted, lifecycle.HookFinished:
		w.dirty = w.dirty || !w.LosesOutcomes
	default:
		w.dirty = true
	}
	w.observe(Step{Now: w.Now(), Before: before, After: w.Facts, Event: e})
}

func (w *World) save(now lifecycle.Instant) {
	if w.dirty {
		w.saved, w.savedPod, w.savedAt, w.dirty = w.Facts, w.Pod, now, false
	}
}

// begin carries out an action. If the supervisor crashes meanwhile, the action may have been carried out or not.
func (w *World) begin(a lifecycle.Action) {
	if c, ok := a.(lifecycle.CancelPull); ok {
		if end := w.pulls[c.Container]; end != nil {
			end(lifecycle.ActionFailed{
				Action:  lifecycle.PullImage{Container: c.Container, For: c.For},
				Failure: lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "canceled"}, At: w.Now(),
			})
		}
		return
	}
	if c, ok := a.(lifecycle.CancelHook); ok {
		if end := w.hooks[hook{c.Ref, c.Hook}]; end != nil {
			end(w.failed(cancelled(c), lifecycle.Failure{Message: "canceled"}))
		}
		return
	}
	if lifecycle.RecordOnly(a) {
		return
	}
	supervisor, ended := w.supervisor, false
	takes, do := w.prepare(a)
	end := func(e lifecycle.Event) {
		if !ended && supervisor == w.supervisor {
			ended = true
			w.deliver(e)
		}
	}
	switch a := a.(type) {
	case lifecycle.PullImage:
		w.pulls[a.Container] = end
	case lifecycle.RunPostStart:
		w.hooks[hook{a.Ref, lifecycle.PostStart}] = end
	case lifecycle.RunPreStop:
		w.hooks[hook{a.Ref, lifecycle.PreStop}] = end
	}
	w.At(w.now+takes, func() {
		if !ended && supervisor == w.supervisor {
			end(w.inject(a, do))
		}
	})
}

// cancelled returns the action of the hook that is cancelled.
func cancelled(c lifecycle.CancelHook) lifecycle.Action {
	if c.Hook == lifecycle.PreStop {
		return lifecycle.RunPreStop{Ref: c.Ref}
	}
	return lifecycle.RunPostStart{Ref: c.Ref}
}

// inject carries out an action, subject to faults.
func (w *World) inject(a lifecycle.Action, do func() lifecycle.Event) lifecycle.Event {
	fault := NoFault
	if w.Fault != nil {
		fault = w.Fault(a)
	}
	if w.unavailable {
		fault = Unavailable
	}
	var e lifecycle.Event
	if fault != Unavailable {
		e = do()
	}
	if fault != NoFault {
		e = w.failed(a, lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "engine unavailable"})
	}
	return e
}

// deliver passes an event to the supervisor that is running now, with the configured delay and duplicates.
func (w *World) deliver(e lifecycle.Event) {
	lag := time.Duration(0)
	if w.Delay != nil {
		lag = w.Delay()
	}
	w.deliverOnce(e, lag)
	if w.Duplicate != nil {
		if after, again := w.Duplicate(); again {
			w.deliverOnce(e, lag+after)
		}
	}
}

// deliverOnce passes an event to the supervisor that is running now, after a delay.
func (w *World) deliverOnce(e lifecycle.Event, delay time.Duration) {
	supervisor := w.supervisor
	w.At(w.now+delay, func() {
		if supervisor == w.supervisor && !w.down && !w.removed {
			before := w.Facts.Live()
			w.fold(e)
			w.follow(e, before)
		}
	})
}

// follow starts to watch what was started.
func (w *World) follow(e lifecycle.Event, before []lifecycle.Ref) {
	for _, ref := range w.Facts.Live() {
		if !slices.Contains(before, ref) {
			w.watch(ref)
		}
	}
	if e, ok := e.(lifecycle.SandboxStarted); ok {
		w.watchSandbox(e.Sandbox)
	}
}

func (w *World) watchSandbox(n int) {
	if !w.engine.sandboxes[n] {
		w.deliver(lifecycle.SandboxLost{Sandbox: n, Message: "not found", At: w.Now()})
	}
}

// reload loads the definition and the facts from their JSON, as a restarted supervisor does.
func (w *World) reload() {
	w.Pod = w.savedPod
	data, err := json.Marshal(w.saved)
	if err == nil {
		w.Facts = lifecycle.Facts{}
		err = json.Unmarshal(data, &w.Facts)
	}
	if err != nil {
		w.Violation(err)
	}
}
