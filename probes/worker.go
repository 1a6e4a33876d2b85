package probes

import (
	"context"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// longestSleep bounds how long a worker waits without a look at the clock: timers stand still while the machine is
// suspended, the clock does not.
const longestSleep = time.Minute

// Probe is the worker of one probe of one run: it asks in the rhythm of [lifecycle.Probe], tells what that makes of the
// answers, and nothing else, and returns when ctx ends or nobody needs to be asked any more. The address is that of the
// pod, which may have none (""). tell may block, until ctx ends at most.
func (p *Prober) Probe(
	ctx context.Context, uid, address string, c *spec.Container, o lifecycle.ProbeOrder, tell func([]lifecycle.Event),
) {
	t := Target{UID: uid, Address: address, Ref: o.Ref, Container: c}
	timer := time.NewTimer(0)
	defer timer.Stop()
	probe := lifecycle.NewProbe(o, p.now(), p.spread(o))
	for {
		due := probe.Due()
		if due.IsZero() || !p.sleep(ctx, timer, due) {
			return
		}
		answer := p.Ask(ctx, t, o.Spec)
		if ctx.Err() != nil {
			return
		}
		var told []lifecycle.Event
		told, probe = probe.Step(p.now(), answer)
		if len(told) > 0 {
			tell(told)
		}
	}
}

// sleep waits until it is due, and reports false if ctx ends before.
func (p *Prober) sleep(ctx context.Context, timer *time.Timer, due lifecycle.Instant) bool {
	for {
		left := due.Sub(p.now())
		if left <= 0 {
			return ctx.Err() == nil
		}
		timer.Reset(min(left, longestSleep))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
}

// spread is how long the first answer of a probe is put off: while the supervisor is younger than the probe's period, the
// probes of what ran before it would all be asked at once.
func (p *Prober) spread(o lifecycle.ProbeOrder) time.Duration {
	period := o.Spec.PeriodSeconds.Duration()
	if !o.Started.Before(p.born) || p.now().Sub(p.born) >= period {
		return 0
	}
	return time.Duration(p.random() * float64(period))
}
