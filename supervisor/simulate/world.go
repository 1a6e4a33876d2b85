package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// maxTurns is the maximum number of decisions of a pod at one instant. A pod that needs more does not reach a fixed point.
const maxTurns = 1000

// epoch is the wall clock at the start of a world.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// keptEvents is the number of events that [World.Events] keeps. [Pods] reads them after each step, which emits fewer.
const keptEvents = 1 << 10

// World is a host with pods. The fields may be set before the first [World.Run]. It is not safe for concurrent use.
type World struct {
	// MaxStarts limits how many containers start at the same time; 0: there is no limit.
	MaxStarts int
	// Batches makes a pod decide once after all that happens at one instant. Without it, a pod decides after each event.
	Batches bool

	ring *event.Ring
	pods []*Pod

	registryDown, diskFull, unavailable bool
	endless                             bool // the supervisor is never restarted, so that no facts are kept for the next one

	images   map[string]bool // the images of the host
	policies map[imageKey]spec.PullPolicy
	met      map[string]bool // conditions that pods wait for
	away     map[string]bool // devices that do not exist
	starts   starts
	closing  *closing // nil: the host is not being shut down
	booting  func()   // called at each boot; nil: nothing
	cut      func()   // called when the host goes down; nil: nothing

	now         time.Duration
	booted      time.Duration // when the host was booted
	boots       int
	boot        string        // the ID of the boot
	clockOffset time.Duration // of the wall clock

	queue      []item // the first one is the last of the list
	due        []*Pod // pods that must decide
	supervisor int    // number of the running supervisor; outcomes of actions of an earlier one are dropped
	down       bool
	err        error
}

// item is a scheduled function. Items at the same instant run in the order in which they were scheduled.
type item struct {
	at         time.Duration
	do         func()
	pod        *Pod // that must decide afterwards; nil: all of them
	background bool // it requires no new decision
}

// New returns a host without pods at its first instant.
func New() *World {
	return &World{
		boots: 1, boot: bootID(1), supervisor: 1, ring: event.NewRing(keptEvents), images: map[string]bool{}, met: map[string]bool{},
		away:     map[string]bool{},
		policies: map[imageKey]spec.PullPolicy{},
	}
}

func bootID(n int) string { return fmt.Sprintf("boot-%d", n) }

// Now returns the current instant as the supervisor reads it.
func (w *World) Now() lifecycle.Instant {
	return lifecycle.Instant{
		Boot: w.boot, Mono: 10*time.Second + w.now - w.booted, Wall: epoch.Add(w.now + w.clockOffset),
	}
}

// Events returns the events that pods emit. It keeps the newest ones.
func (w *World) Events() *event.Ring { return w.ring }

// Find returns the pod of a name that is not removed, or nil.
func (w *World) Find(name string) *Pod {
	for _, p := range w.pods {
		if p.Spec.Name == name && !p.removed {
			return p
		}
	}
	return nil
}

// At schedules do at an instant, given as the time since the start of the world.
func (w *World) At(at time.Duration, do func()) { w.enqueue(item{at: at, do: do}) }

func (w *World) enqueue(next item) {
	i := 0
	for i < len(w.queue) && w.queue[i].at > next.at {
		i++
	}
	w.queue = slices.Insert(w.queue, i, next)
}

// Run runs the world until an instant, given as the time since its start, and returns the first violation.
func (w *World) Run(until time.Duration) error {
	busy := 0
	for w.err == nil {
		last := len(w.queue) - 1
		if len(w.due) > 0 && (!w.Batches || last < 0 || w.queue[last].at > w.now) {
			w.decide()
			continue
		}
		if last < 0 || w.queue[last].at > until {
			break
		}
		first := w.queue[last]
		w.queue = slices.Delete(w.queue, last, last+1)
		if busy++; first.at > w.now {
			busy, w.now = 0, first.at
		}
		if busy > maxTurns*max(1, len(w.pods)) {
			w.violation("%d events at one instant", busy)
		}
		first.do()
		if !first.background {
			w.mustDecide(first.pod)
		}
	}
	w.now = max(w.now, until)
	return w.err
}

// mustDecide lets a pod decide before time goes on; nil: all pods.
func (w *World) mustDecide(p *Pod) {
	switch {
	case p == nil:
		w.due = slices.Clone(w.pods)
	case !slices.Contains(w.due, p):
		w.due = append(w.due, p)
	}
}

// decide lets all pods decide that must. Then what has changed is reported to the pods that wait for them.
func (w *World) decide() {
	due := w.due
	w.due = nil
	for _, p := range due {
		p.turn()
	}
	for _, p := range due {
		if p.changed {
			p.changed = false
			w.reportPeer(p)
		}
	}
	if w.closing != nil {
		w.closing.next(w)
	}
}

func (w *World) violation(format string, args ...any) {
	w.err = errors.Join(w.err, fmt.Errorf("at %v: "+format, append([]any{w.now}, args...)...))
}

// Violation records a violation, which [World.Run] returns.
func (w *World) Violation(err error) { w.violation("%w", err) }

// starts limits the containers that start at the same time, as the supervisor does.
type starts struct {
	running int
	waiting []func()
}

// startTimeout bounds how long a start waits for its turn, as in the supervisor.
const startTimeout = 10 * time.Second

// start calls do when a container may start. The start must call [World.started] when it has an outcome.
func (w *World) start(do func()) {
	if w.MaxStarts == 0 {
		do()
		return
	}
	if w.starts.running < w.MaxStarts {
		w.starts.running++
		do()
		return
	}
	begun, supervisor := false, w.supervisor
	begin := func() {
		if !begun && supervisor == w.supervisor {
			begun = true
			w.starts.running++
			do()
		}
	}
	w.starts.waiting = append(w.starts.waiting, begin)
	w.enqueue(item{at: w.now + startTimeout, do: begin, background: true})
}

// started ends the start of a container. The next one begins.
func (w *World) started() {
	if w.MaxStarts == 0 {
		return
	}
	w.starts.running--
	for len(w.starts.waiting) > 0 && w.starts.running < w.MaxStarts {
		next := w.starts.waiting[0]
		w.starts.waiting = w.starts.waiting[1:]
		next()
	}
}

// Add adds a pod that was accepted now.
func (w *World) Add(pod *spec.Pod, script Script) *Pod {
	p := newPod(w, pod, script)
	w.pods = append(w.pods, p)
	p.at(w.now, func() {})
	return p
}
