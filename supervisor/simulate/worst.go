package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Limits are the worst cases of one container, while nothing else fails.
type Limits struct {
	Pod, Container string
	// StartUp is the time after which the container is restarted if its probes never succeed. Never: it is not restarted.
	StartUp time.Duration
	// Hang is the maximum time until a container whose probes time out is stopped. Never: it is not.
	Hang time.Duration
	// Unready is the maximum time until such a container is not ready. Never: it stays ready.
	Unready time.Duration
	// Stop is the maximum time until the pod has stopped if the container ignores its stop signal, and its preStop hook hangs.
	Stop time.Duration
	// Outage is the maximum time from a crash until the container is ready again, after many crashes. Never: it is not restarted.
	Outage time.Duration
	// FirstHour and EachHour are the restarts of a container that always crashes at once, in the first and in each later hour.
	FirstHour, EachHour int
}

// Never is a time that does not end.
const Never = time.Duration(-1)

const (
	// settled is how long a pod runs before a worst case begins.
	settled = 5 * time.Minute
	// longest bounds the simulation of a worst case; a later restart counts as none.
	longest = 24 * time.Hour
)

// WorstCases simulates the worst cases of each container of a pod. Conditions that the pod waits for are met.
func WorstCases(pod *spec.Pod) ([]Limits, error) {
	var list []Limits
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		w := worst{pod: pod, container: &c}
		l := Limits{Pod: pod.Name, Container: c.Name}
		w.well()
		l.StartUp = w.startUp()
		l.Hang, l.Unready = w.hang()
		l.Stop = w.stop()
		l.Outage, l.FirstHour, l.EachHour = w.crash()
		if w.err != nil {
			return nil, fmt.Errorf("simulate pod %q: %w", pod.Name, w.err)
		}
		list = append(list, l)
	}
	return list, nil
}

// worst simulates one container.
type worst struct {
	pod       *spec.Pod
	container *spec.Container
	err       error

	// of a container that does not fail
	started  time.Duration
	readied  time.Duration // from its start
	lastLive time.Duration // the last liveness probe before settled, from its start; 0: there was none
	lastTold time.Duration // the last readiness probe
	runsOn   bool          // it runs until it is stopped
}

// run simulates the pod until an instant, or until done returns true. The container has one behaviour in all of its runs.
func (w *worst) run(then *Run, until time.Duration, prepare func(*World, *Pod), done func(*Pod) bool) *Pod {
	world, script := New(), Script{Then: map[string]Run{}}
	world.Batches = true
	if then != nil {
		script.Then[w.container.Name] = *then
	}
	for _, condition := range w.pod.WaitFor {
		world.met[condition] = true
	}
	p := world.Add(w.pod, script)
	p.accept()
	prepare(world, p)
	ended := false
	p.Publish = func(*lifecycle.Status) {
		if !ended && done(p) {
			ended, world.queue = true, nil
		}
	}
	if err := world.Run(until); err != nil {
		w.err = err
	}
	return p
}

// statusOf returns the status of the container.
func (w *worst) statusOf(p *Pod) *lifecycle.ContainerStatus {
	for _, list := range [...][]lifecycle.ContainerStatus{p.status.InitContainerStatuses, p.status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == w.container.Name {
				return &list[i]
			}
		}
	}
	return &lifecycle.ContainerStatus{}
}

// well simulates that nothing fails.
func (w *worst) well() {
	w.readied, w.started = -1, -1
	p := w.run(nil, settled, func(world *World, p *Pod) {
		p.probed = func(ref lifecycle.ProbeRef) {
			switch {
			case ref.Container != w.container.Name || w.started < 0:
			case ref.Kind == lifecycle.ProbeLiveness:
				w.lastLive = world.now - w.started
			case ref.Kind == lifecycle.ProbeReadiness:
				w.lastTold = world.now - w.started
			}
		}
	}, func(p *Pod) bool {
		s := w.statusOf(p)
		if s.State.Running != nil && w.started < 0 {
			w.started = p.world.now
		}
		if s.State.Running != nil && s.Ready && w.readied < 0 {
			w.readied = p.world.now - w.started
		}
		return false
	})
	w.runsOn = w.statusOf(p).State.Running != nil
}

// stopped returns when the container is stopped because of a probe, from its first start; Never: it is not.
func (w *worst) stopped(r Run) time.Duration {
	at := Never
	started := Never
	w.run(&r, longest, func(*World, *Pod) {}, func(p *Pod) bool {
		if started < 0 && w.statusOf(p).State.Running != nil {
			started = p.world.now
		}
		a := &p.Facts.Container(w.container.Name).Newest
		if a.StopReason == lifecycle.ReasonLivenessProbe || a.StopReason == lifecycle.ReasonStartupProbe {
			at = p.world.now - started
		}
		return at >= 0
	})
	return at
}

// startUp returns how long the container may take to start.
func (w *worst) startUp() time.Duration {
	if w.container.StartupProbe == nil && w.container.LivenessProbe == nil {
		return Never
	}
	return w.stopped(Run{Forever: true, StartsUp: 2 * longest})
}

// hang returns how long it takes until a hanging container is stopped, and until it is not ready. It hangs directly after a probe has
// succeeded.
func (w *worst) hang() (noticed, unready time.Duration) {
	noticed, unready = Never, Never
	if w.lastLive > 0 {
		begin := w.lastLive + 1
		if at := w.stopped(Run{Forever: true, Hangs: begin}); at >= 0 {
			noticed = (at - begin).Round(time.Millisecond)
		}
	}
	begin := w.lastTold + 1
	if w.lastTold == 0 {
		begin = w.lastLive + 1 // only a restart makes it unready
	}
	if w.lastTold == 0 && w.lastLive == 0 {
		return noticed, unready
	}
	was := false
	w.run(&Run{Forever: true, Hangs: begin}, longest, func(*World, *Pod) {}, func(p *Pod) bool {
		is := w.statusOf(p).Ready
		if was && !is {
			unready = (p.world.now - w.started - begin).Round(time.Millisecond)
		}
		was = is
		return unready >= 0
	})
	return noticed, unready
}

// stop returns how long it takes until the pod has stopped.
func (w *worst) stop() time.Duration {
	r := Run{Forever: true, IgnoresStop: true, PreStop: Start{Takes: longest}}
	at := Never
	w.run(&r, 2*longest, func(world *World, p *Pod) {
		world.At(settled, func() { p.Stop(nil, false) })
	}, func(p *Pod) bool {
		if p.status.Phase.Terminal() && p.Facts.Idle() && at < 0 && p.world.now >= settled {
			at = p.world.now - settled
		}
		return at >= 0
	})
	return at
}

// crash returns the longest time from a crash to the next time that the container is ready, and the restarts of two hours. The third hour
// is one in which the back-off does not grow any more, unless the pod file has a longer one.
func (w *worst) crash() (outage time.Duration, first, each int) {
	outage = Never
	attempt := 0
	w.run(&Run{Exit: lifecycle.Exit{Code: 1}}, 3*time.Hour, func(*World, *Pod) {}, func(p *Pod) bool {
		c, now := p.Facts.Container(w.container.Name), p.world.now
		if c.Newest.Started.IsZero() || c.Newest.Attempt == attempt {
			return false
		}
		attempt = c.Newest.Attempt
		switch {
		case attempt == 1:
			return false
		case now <= time.Hour:
			first++
		case now > 2*time.Hour:
			each++
		}
		outage = max(outage, c.Newest.Started.Sub(c.Previous.Exited))
		return false
	})
	if outage >= 0 && w.runsOn {
		outage += max(w.readied, 0)
	}
	return outage, first, each
}

// Row returns the limits as text for people, in the columns of [LimitsHeader].
func (l *Limits) Row() []string {
	text := func(d time.Duration) string {
		if d < 0 {
			return "never"
		}
		return offset(d)
	}
	return []string{
		l.Pod + "/" + l.Container, text(l.StartUp), text(l.Unready), text(l.Hang), text(l.Stop), text(l.Outage),
		fmt.Sprintf("%d, then %d", l.FirstHour, l.EachHour),
	}
}

// LimitsHeader are the titles of the columns of [Limits.Row].
func LimitsHeader() []string {
	return []string{"CONTAINER", "START-UP", "UNREADY", "RESTARTED", "STOP", "OUTAGE", "RESTARTS/HOUR"}
}
