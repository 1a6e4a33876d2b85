package probes

import (
	"context"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// maxSleep bounds how long a worker waits without reading the clock. Timers stop while the host is suspended, the clock does not.
	maxSleep = time.Minute
	// slackParts and maxSlack bound by how much probes with connections run late so that those of several containers share a wake-up of the
	// process: a fifth of the period, and a second. Most of the CPU time of such a probe is the wake-up.
	slackParts = 5
	maxSlack   = time.Second
)

// Probe is the worker of one probe of one run. It runs the handler on the schedule of [lifecycle.Probe] and passes the resulting
// events to emit. It returns when ctx is cancelled or no further probing is needed. The address is that of the pod, empty if it
// has none. emit may block until ctx is cancelled.
func (p *Prober) Probe(
	ctx context.Context, uid, address string, c *spec.Container, o lifecycle.ProbeOrder, emit func([]lifecycle.Event),
) {
	t := Target{UID: uid, Address: address, Ref: o.Ref, Container: c}
	timer := time.NewTimer(0)
	defer timer.Stop()
	self := &worker{uid}
	defer p.answers.remove(self)
	probe := lifecycle.NewProbe(o, p.now(), p.spread(o))
	for first := true; ; first = false {
		due := probe.Due()
		if !first && o.Spec.Exec == nil && p.now().Before(due) { // not the first one, which the start of a pod waits for, and no retry
			due = align(due, o.Spec.PeriodSeconds.Duration())
		}
		if due.IsZero() || !p.sleep(ctx, timer, due) {
			return
		}
		begun := p.now()
		result := p.Run(ctx, t, o.Spec)
		if ctx.Err() != nil {
			return
		}
		at := p.now()
		took := at.Sub(begun)
		p.observe(uid, o.Container, o.Kind, result.Outcome, took)
		p.answers.set(self, Answer{o.Container, o.Kind, result.Outcome, at, took})
		var events []lifecycle.Event
		events, probe = probe.Step(p.now(), result)
		if len(events) > 0 {
			emit(events)
		}
	}
}

// align returns the first instant from due on at which probes with this period, and most others, run. A probe keeps its period.
func align(due lifecycle.Instant, period time.Duration) lifecycle.Instant {
	slack := min(period/slackParts, maxSlack)
	if slack <= 0 {
		return due
	}
	if over := due.Mono % slack; over > 0 {
		return due.Add(slack - over)
	}
	return due
}

// sleep waits until due. It returns false if ctx is cancelled first.
func (p *Prober) sleep(ctx context.Context, timer *time.Timer, due lifecycle.Instant) bool {
	for {
		left := due.Sub(p.now())
		if left <= 0 {
			return ctx.Err() == nil
		}
		timer.Reset(min(left, maxSleep))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
}

// spread returns the delay of a probe's first run. After a restart of the supervisor the probes of running containers would all
// be due at once, so they are spread over their period.
func (p *Prober) spread(o lifecycle.ProbeOrder) time.Duration {
	period := o.Spec.PeriodSeconds.Duration()
	if !o.Started.Before(p.born) || p.now().Sub(p.born) >= period {
		return 0
	}
	return time.Duration(p.random() * float64(period))
}
