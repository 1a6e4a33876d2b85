package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Step is one step of a pod: an event that was folded in, including issued actions, or a decision if Event is nil.
type Step struct {
	Now           lifecycle.Instant
	Since         time.Duration // since the start of the world
	Pod           *spec.Pod     // its definition at this step
	Supervisor    int           // number of the supervisor, from 1; after a crash the next one may have older facts
	Before, After lifecycle.Facts
	Event         lifecycle.Event
	Decision      lifecycle.Decision
}

// Pod is one pod with its engine and its supervisor. The fields may be set before [World.Run].
type Pod struct {
	Spec    *spec.Pod
	Script  Script
	Facts   lifecycle.Facts
	Observe func(Step) // may be nil
	// Publish is called with the status after each turn that may have changed it; nil: it is not computed.
	Publish func(*lifecycle.Status)
	// Carry carries out an action by a call of do, whose result it returns or replaces; nil: only do is called.
	Carry func(a lifecycle.Action, do func() lifecycle.Event) lifecycle.Event
	// Lags returns the delays of an event, one for each time that it arrives; nil: it arrives once, at once.
	Lags func() []time.Duration
	// HoldsReboots makes requests to reboot the host fail.
	HoldsReboots bool
	// LosesOutcomes makes the supervisor crash before it has saved a success.
	LosesOutcomes bool

	world   *World
	events  *emit.Emitter
	status  lifecycle.Status
	changed bool // the status may have changed since it was last reported to the pods that wait for this one

	engine  engine
	images  map[string]bool // by container: the image was added without a pull
	removed bool
	pulls   map[string]func(lifecycle.Event) // ends the running pull of a container
	hooks   map[hook]func(lifecycle.Event)   // ends the running hook of a run
	workers map[lifecycle.ProbeRef]*worker
	watched map[lifecycle.WaitRef]bool
	devices map[lifecycle.Ref]*deviceWatch // by run

	earlier *spec.Pod // the definition to which an update rolls back; nil: none

	probed func(lifecycle.ProbeRef)        // called when a probe is answered; nil: nothing
	own    bool                            // nothing else has the containers in Facts
	before map[string]*lifecycle.Container // the containers in Facts, except for the one that an event changes: that is past
	past   lifecycle.Container

	saved      lifecycle.Facts
	savedPod   *spec.Pod
	savedAt    lifecycle.Instant
	read       lifecycle.Instant // the newest reading of the clock
	dirty      bool
	folded     bool // the facts have changed since the newest status
	notDurable bool
	wake       time.Duration // when the newest timer fires
}

func newPod(w *World, pod *spec.Pod, script Script) *Pod {
	p := &Pod{
		Spec: pod, Script: script, world: w,
		engine: engine{
			sandboxes: map[int]bool{}, processes: map[string][]*process{}, requested: map[lifecycle.Ref]*Run{},
		},
		images: map[string]bool{}, pulls: map[string]func(lifecycle.Event){}, hooks: map[hook]func(lifecycle.Event){},
		before: map[string]*lifecycle.Container{}, workers: map[lifecycle.ProbeRef]*worker{}, watched: map[lifecycle.WaitRef]bool{},
		devices: map[lifecycle.Ref]*deviceWatch{},
	}
	p.Facts = lifecycle.Facts{UID: "uid", Accepted: w.Now()}
	if n := len(w.pods); n > 0 {
		p.Facts.UID = fmt.Sprintf("uid-%d", n+1)
	}
	p.events = emit.New(pod, p.Facts.UID, w.ring, nil)
	p.saved, p.savedPod, p.savedAt = p.Facts, pod, w.Now()
	return p
}

// at schedules do, after which the pod decides.
func (p *Pod) at(at time.Duration, do func()) { p.world.enqueue(item{at: at, do: do, pod: p}) }

// background schedules do without a new decision.
func (p *Pod) background(at time.Duration, do func()) {
	p.world.enqueue(item{at: at, do: do, pod: p, background: true})
}

// Removed reports whether everything of the pod is removed.
func (p *Pod) Removed() bool { return p.removed }

// idle reports that the supervisor does not accept a request for the pod.
func (p *Pod) idle() bool { return p.world.down || p.removed }

// turn decides until no action is left, saves the facts, then begins the actions.
func (p *Pod) turn() {
	w := p.world
	if p.idle() {
		return
	}
	p.correctTimes()
	var todo []lifecycle.Action
	for range maxTurns {
		now := w.Now()
		d := lifecycle.Decide(p.Spec, p.Facts, now)
		p.observe(now, &p.Facts, nil, d)
		for _, a := range d.Actions {
			p.fold(lifecycle.Issued{Action: a, At: now})
		}
		todo = append(todo, d.Actions...)
		if len(d.Actions) > 0 {
			continue
		}
		p.removed = d.Removed
		p.probes(d.Probes)
		p.watchConditions(d.Waits)
		p.watchDevices(d.Devices)
		p.save(now)
		for _, a := range todo {
			p.begin(a)
		}
		if at := w.now + d.Wake.Sub(now); !d.Wake.IsZero() && at != p.wake {
			p.wake = at
			p.at(at, func() {})
		}
		p.publish(now)
		p.rollBack()
		return
	}
	w.violation("no fixed point, the last action is %#v", todo[len(todo)-1])
}

// correctTimes corrects the wall times if the wall clock was set.
func (p *Pod) correctTimes() {
	now, before := p.world.Now(), p.read
	p.read = now
	if !before.IsZero() && now.Set(before) {
		p.fold(lifecycle.WallClockSet{Before: before, At: now})
	}
}

// publish computes the status if it may have changed, and emits a terminal phase.
func (p *Pod) publish(now lifecycle.Instant) {
	if !p.folded && p.Facts.EngineUnavailable.IsZero() {
		return
	}
	p.folded, p.changed = false, true
	before := p.status
	p.status = lifecycle.StatusOf(p.Spec, p.Facts, now).Since(before.Conditions, now)
	if before.Phase != "" && before.Phase != p.status.Phase {
		p.events.At(&p.Facts, now).Phase(p.status.Phase)
	}
	if p.Publish != nil {
		p.Publish(&p.status)
	}
}

func (p *Pod) observe(now lifecycle.Instant, before *lifecycle.Facts, e lifecycle.Event, d lifecycle.Decision) {
	if p.Observe != nil {
		p.Observe(Step{
			Now: now, Since: p.world.now, Pod: p.Spec, Supervisor: p.world.supervisor,
			Before: *before, After: p.Facts, Event: e, Decision: d,
		})
	}
}

// emit emits an event that neither an action nor a lifecycle event leads to. It is published in this turn, too.
func (p *Pod) emit(kind api.EventKind, container string, f event.Fields) {
	p.folded = true
	p.events.At(&p.Facts, p.world.Now()).Emit(kind, container, f)
}

// fold folds an event into the facts, and emits what people need to see of it. Events that a restarted supervisor finds by itself are not
// saved.
func (p *Pod) fold(e lifecycle.Event) {
	before, now := p.Facts, p.world.Now()
	issued, is := e.(lifecycle.Issued)
	if is {
		p.events.At(&p.Facts, now).Action(issued.Action)
	}
	name := containerOf(e)
	switch {
	case name == "" || !p.own || p.Observe != nil:
		p.Facts, p.own = p.Facts.Apply(e), true
		p.before = maps.Clone(p.Facts.Containers)
	case is: // most of the time goes into copies of the facts otherwise
		p.Facts.Fold(e)
	default:
		p.past = *before.Container(name)
		p.before[name], before.Containers = &p.past, p.before
		p.Facts.Fold(e)
	}
	if !is {
		p.events.At(&p.Facts, now).Folded(&before, e)
	}
	if name != "" {
		p.before[name] = p.Facts.Containers[name]
	}
	if _, removed := e.(lifecycle.ContainerRemoved); !removed { // the record of an exit is not part of the status
		p.folded = true
	}
	switch e := e.(type) {
	case lifecycle.ImagePulled, lifecycle.ContainerRemoved:
	case lifecycle.SignalSent, lifecycle.ProbeChanged, lifecycle.ProbeFailed, lifecycle.ProbeWarned, lifecycle.ConditionUnmet:
	case lifecycle.Issued:
		switch e.Action.(type) {
		case lifecycle.PullImage, lifecycle.FindImage, lifecycle.CancelPull, lifecycle.CancelHook, lifecycle.RemoveContainer:
		default:
			p.dirty = true
		}
	case lifecycle.ContainerStarted, lifecycle.HookFinished:
		p.dirty = p.dirty || !p.LosesOutcomes
	default:
		p.dirty = true
	}
	p.observe(now, &before, e, lifecycle.Decision{})
}

// containerOf returns the only container that an event is about; empty: it may be about the pod.
func containerOf(e lifecycle.Event) string {
	switch e := e.(type) {
	case lifecycle.Issued:
		switch a := e.Action.(type) {
		case lifecycle.PullImage:
			return a.Container
		case lifecycle.FindImage:
			return a.Container
		default:
			return lifecycle.RefOf(e.Action).Container
		}
	case lifecycle.ContainerStarted:
		return e.Container
	case lifecycle.ContainerExited:
		return e.Container
	case lifecycle.ContainerRemoved:
		return e.Container
	case lifecycle.ImagePulled:
		return e.Container
	case lifecycle.SignalSent:
		return e.Container
	case lifecycle.ProbeChanged:
		return e.Container
	case lifecycle.ProbeFailed:
		return e.Container
	}
	return ""
}

// save saves the facts, unless the disk is full: the next supervisor has those that were saved before.
func (p *Pod) save(now lifecycle.Instant) {
	switch {
	case !p.dirty:
	case p.world.diskFull:
		if !p.notDurable {
			p.notDurable = true
			p.emit(api.EventStateNotDurable, "", event.Fields{"error": noSpace})
		}
	default:
		if p.dirty = false; !p.world.endless {
			p.saved, p.savedPod, p.savedAt, p.own = p.Facts, p.Spec, now, false
		}
		if p.notDurable {
			p.notDurable = false
			p.emit(api.EventStateDurable, "", nil)
		}
	}
}

// begin carries out an action. If the supervisor crashes meanwhile, the action may have been carried out or not.
func (p *Pod) begin(a lifecycle.Action) {
	w := p.world
	if c, ok := a.(lifecycle.CancelPull); ok {
		if end := p.pulls[c.Container]; end != nil {
			end(lifecycle.ActionFailed{
				Action:  lifecycle.PullImage{Container: c.Container, For: c.For},
				Failure: lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "canceled"}, At: w.Now(),
			})
		}
		return
	}
	if c, ok := a.(lifecycle.CancelHook); ok {
		if end := p.hooks[hook{c.Ref, c.Hook}]; end != nil {
			end(p.failed(cancelled(c), lifecycle.Failure{Message: "canceled"}))
		}
		return
	}
	if lifecycle.RecordOnly(a) {
		return
	}
	supervisor, ended := w.supervisor, false
	end := func(e lifecycle.Event) {
		if !ended && supervisor == w.supervisor {
			ended = true
			p.deliver(e)
		}
	}
	carry := func(done func()) {
		takes, do := p.prepare(a)
		p.at(w.now+takes, func() {
			if !ended && supervisor == w.supervisor {
				end(p.carry(a, do))
				done()
			}
		})
	}
	switch a := a.(type) {
	case lifecycle.PullImage:
		p.pulls[a.Container] = end
	case lifecycle.RunPostStart:
		p.hooks[hook{a.Ref, lifecycle.PostStart}] = end
	case lifecycle.RunPreStop:
		p.hooks[hook{a.Ref, lifecycle.PreStop}] = end
	case lifecycle.StartContainer:
		w.start(func() { carry(w.started) })
		return
	}
	carry(func() {})
}

// cancelled returns the action of the hook that is cancelled.
func cancelled(c lifecycle.CancelHook) lifecycle.Action {
	if c.Hook == lifecycle.PreStop {
		return lifecycle.RunPreStop{Ref: c.Ref}
	}
	return lifecycle.RunPostStart{Ref: c.Ref}
}

// carry carries out an action, unless the engine is unavailable.
func (p *Pod) carry(a lifecycle.Action, do func() lifecycle.Event) lifecycle.Event {
	if p.world.unavailable {
		return p.failed(a, lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "engine unavailable"})
	}
	if p.Carry != nil {
		return p.Carry(a, do)
	}
	return do()
}

// deliver passes an event to the supervisor that is running now, with the lags of the pod.
func (p *Pod) deliver(e lifecycle.Event) {
	lags := []time.Duration{0}
	if p.Lags != nil {
		lags = p.Lags()
	}
	for _, lag := range lags {
		p.deliverOnce(e, lag)
	}
}

// deliverOnce passes an event to the supervisor that is running now, after a delay.
func (p *Pod) deliverOnce(e lifecycle.Event, delay time.Duration) {
	w := p.world
	supervisor := w.supervisor
	p.at(w.now+delay, func() {
		if supervisor == w.supervisor && !p.idle() {
			p.foldResult(e)
		}
	})
}

// foldResult folds an event of the engine, and starts to watch what was started.
func (p *Pod) foldResult(e lifecycle.Event) {
	switch e := e.(type) {
	case lifecycle.ContainerStarted, lifecycle.SignalSent:
		container := containerOf(e)
		before, was := p.Facts.LiveRun(container)
		p.fold(e)
		if ref, is := p.Facts.LiveRun(container); is && (!was || ref != before) {
			p.watch(ref)
		}
	case lifecycle.SandboxStarted:
		p.fold(e)
		p.watchSandbox(e.Sandbox)
	default:
		p.fold(e)
	}
}

func (p *Pod) watchSandbox(n int) {
	if !p.engine.sandboxes[n] {
		p.deliver(lifecycle.SandboxLost{Sandbox: n, Message: "not found", At: p.world.Now()})
	}
}

// reload loads the definition and the facts from their JSON, as a restarted supervisor does.
func (p *Pod) reload() {
	p.Spec = p.savedPod
	data, err := json.Marshal(p.saved)
	if err == nil {
		p.Facts, p.own = lifecycle.Facts{}, false
		err = json.Unmarshal(data, &p.Facts)
	}
	if err != nil {
		p.world.Violation(fmt.Errorf("state of pod %q: %w", p.Spec.Name, err))
	}
	p.read, p.folded = lifecycle.Instant{}, true
}
