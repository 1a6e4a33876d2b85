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

// maxTurns bounds the decisions at one instant; a pod that needs more will never come to a fixed point.
const maxTurns = 1000

// epoch is the wall clock when a world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Step is one thing that happened: an event that was folded in, issued actions included, or, without one, a decision.
type Step struct {
	Now           lifecycle.Instant
	Since         time.Duration // since the world began
	Life          int           // which supervisor, from 1: one that has crashed may have known more than the next
	Before, After lifecycle.Facts
	Event         lifecycle.Event
	Decision      lifecycle.Decision
}

// Fault is what an absent engine does to an action.
type Fault int

// The faults: none, the engine is away, or it did what it was told and was away when it should have said so.
const (
	NoFault Fault = iota
	Unavailable
	UnavailableAfter
)

// World is one pod, the engine it lives on and the supervisor that keeps it. The fields may be set before the first
// [World.Run]. It is not safe for concurrent use.
type World struct {
	Pod     *spec.Pod
	Script  Script
	Facts   lifecycle.Facts
	Observe func(Step)                   // nil: nobody looks
	Fault   func(lifecycle.Action) Fault // nil: none but what [World.SetUnavailable] sets
	// Forgetful is a supervisor that dies before it has written that something went well.
	Forgetful bool
	Lag       func() time.Duration                     // how late an event arrives; nil: at once
	Echo      func() (after time.Duration, again bool) // whether an event arrives once more; nil: never

	engine engine
	images map[string]bool // by container: the image has come without a pull
	away   bool
	gone   bool
	pulls  map[string]func(lifecycle.Event) // ends the running pull of a container
	hooks  map[hook]func(lifecycle.Event)   // ends the running hook of a run

	workers map[lifecycle.ProbeRef]*worker

	now    time.Duration
	booted time.Duration // when the machine was
	boots  int
	leap   time.Duration // of the wall clock

	queue   []item
	life    int // of the supervisor; what an earlier one began tells nobody
	down    bool
	saved   lifecycle.Facts
	savedAt lifecycle.Instant
	dirty   bool
	wake    time.Duration // when the newest timer rings
	err     error
}

// item is something to happen; what is to happen at the same instant does in the order of its arrival.
type item struct {
	at    time.Duration
	do    func()
	aside bool // the supervisor does not learn of it
}

// New makes a world at its first instant.
func New(pod *spec.Pod, script Script) *World {
	w := &World{
		Pod: pod, Script: script, boots: 1, life: 1,
		engine: engine{
			sandboxes: map[int]bool{}, processes: map[lifecycle.Ref]*process{}, asked: map[lifecycle.Ref]Run{},
		},
		images: map[string]bool{},
		pulls:  map[string]func(lifecycle.Event){}, hooks: map[hook]func(lifecycle.Event){},
		workers: map[lifecycle.ProbeRef]*worker{},
	}
	w.Facts = lifecycle.Facts{UID: "uid", Accepted: w.Now()}
	w.saved, w.savedAt = w.Facts, w.Now()
	w.At(0, func() {})
	return w
}

// Now is the present instant as the supervisor reads it.
func (w *World) Now() lifecycle.Instant {
	return lifecycle.Instant{
		Boot: fmt.Sprintf("boot-%d", w.boots), Mono: 10*time.Second + w.now - w.booted, Wall: epoch.Add(w.now + w.leap),
	}
}

// At does something at an instant, given as the time since the world began.
func (w *World) At(at time.Duration, do func()) { w.enqueue(item{at: at, do: do}) }

// aside does something that is no reason to decide anew.
func (w *World) aside(at time.Duration, do func()) { w.enqueue(item{at: at, do: do, aside: true}) }

func (w *World) enqueue(next item) {
	i := len(w.queue)
	for i > 0 && w.queue[i-1].at > next.at {
		i--
	}
	w.queue = slices.Insert(w.queue, i, next)
}

// Run lets the world go on until an instant, given as the time since it began, and returns the first thing that was done
// to it that must not be.
func (w *World) Run(until time.Duration) error {
	busy := 0
	for len(w.queue) > 0 && w.queue[0].at <= until && w.err == nil {
		first := w.queue[0]
		w.queue = w.queue[1:]
		if busy++; first.at > w.now {
			busy, w.now = 0, first.at
		}
		if busy > maxTurns {
			w.wrong("%d things happened at once", busy)
		}
		first.do()
		if !first.aside {
			w.turn()
		}
	}
	w.now = max(w.now, until)
	return w.err
}

func (w *World) wrong(format string, args ...any) {
	w.err = errors.Join(w.err, fmt.Errorf("at %v: "+format, append([]any{w.now}, args...)...))
}

// Wrong notes that something must not be; [World.Run] returns it.
func (w *World) Wrong(err error) { w.wrong("%w", err) }

// Gone reports whether nothing of the pod is left.
func (w *World) Gone() bool { return w.gone }

// Quiet reports whether nothing will happen any more.
func (w *World) Quiet() bool { return len(w.queue) == 0 }

// turn decides until nothing is left to do, then saves, then begins what was decided.
func (w *World) turn() {
	if w.down || w.gone {
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
		w.gone = d.Removed
		w.probes(d.Probes)
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
	w.wrong("no fixed point, the last to be done is %#v", todo[len(todo)-1])
}

func (w *World) observe(s Step) {
	if s.Since, s.Life = w.now, w.life; w.Observe != nil {
		w.Observe(s)
	}
}

// fold folds an event into the facts. What a later supervisor finds out by itself needs no write of its own.
func (w *World) fold(e lifecycle.Event) {
	before := w.Facts
	w.Facts = w.Facts.Apply(e)
	switch e := e.(type) {
	case lifecycle.ImagePulled, lifecycle.ContainerRemoved:
	case lifecycle.SignalSent, lifecycle.ProbeChanged, lifecycle.ProbeFailed, lifecycle.ProbeWarned:
	case lifecycle.Issued:
		switch e.Action.(type) {
		case lifecycle.PullImage, lifecycle.FindImage, lifecycle.CancelPull, lifecycle.CancelHook, lifecycle.RemoveContainer:
		default:
			w.dirty = true
		}
	case lifecycle.ContainerStarted, lifecycle.HookFinished:
		w.dirty = w.dirty || !w.Forgetful
	default:
		w.dirty = true
	}
	w.observe(Step{Now: w.Now(), Before: before, After: w.Facts, Event: e})
}

func (w *World) save(now lifecycle.Instant) {
	if w.dirty {
		w.saved, w.savedAt, w.dirty = w.Facts, now, false
	}
}

// begin carries out an action. A supervisor that dies in between leaves it undone, or done and untold.
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
	life, ended := w.life, false
	takes, do := w.prepare(a)
	end := func(e lifecycle.Event) {
		if !ended && life == w.life {
			ended = true
			w.tell(e)
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
		if !ended && life == w.life {
			end(w.faulty(a, do))
		}
	})
}

// cancelled is the hook that an action cancels.
func cancelled(c lifecycle.CancelHook) lifecycle.Action {
	if c.Hook == lifecycle.PreStop {
		return lifecycle.RunPreStop{Ref: c.Ref}
	}
	return lifecycle.RunPostStart{Ref: c.Ref}
}

// faulty carries out an action unless the engine is away.
func (w *World) faulty(a lifecycle.Action, do func() lifecycle.Event) lifecycle.Event {
	fault := NoFault
	if w.Fault != nil {
		fault = w.Fault(a)
	}
	if w.away {
		fault = Unavailable
	}
	var e lifecycle.Event
	if fault != Unavailable {
		e = do()
	}
	if fault != NoFault {
		e = w.failed(a, lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "the engine is away"})
	}
	return e
}

// tell brings an event to the supervisor that lives now, late or twice if the world is like that.
func (w *World) tell(e lifecycle.Event) {
	life := w.life
	arrive := func() {
		if life == w.life && !w.down && !w.gone {
			w.fold(e)
			w.follow(e)
		}
	}
	lag := time.Duration(0)
	if w.Lag != nil {
		lag = w.Lag()
	}
	w.At(w.now+lag, arrive)
	if w.Echo != nil {
		if after, again := w.Echo(); again {
			w.At(w.now+lag+after, arrive)
		}
	}
}

// follow begins to watch what has started.
func (w *World) follow(e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.ContainerStarted:
		w.watch(e.Ref)
	case lifecycle.SandboxStarted:
		w.watchSandbox(e.Sandbox)
	}
}

func (w *World) watchSandbox(n int) {
	if !w.engine.sandboxes[n] {
		w.tell(lifecycle.SandboxLost{Sandbox: n, Message: "not found", At: w.Now()})
	}
}

// reload makes of the facts what a file makes of them.
func (w *World) reload() {
	data, err := json.Marshal(w.saved)
	if err == nil {
		w.Facts = lifecycle.Facts{}
		err = json.Unmarshal(data, &w.Facts)
	}
	if err != nil {
		w.Wrong(err)
	}
}
