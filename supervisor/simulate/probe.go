package simulate

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// worker runs one probe while it is ordered.
type worker struct {
	probe   lifecycle.Probe
	timeout time.Duration
	stopped bool
}

// probes starts and stops the workers according to the orders of a decision.
func (p *Pod) probes(orders []lifecycle.ProbeOrder) {
	on := map[lifecycle.ProbeRef]bool{}
	for _, o := range orders {
		on[o.ProbeRef] = true
		if p.workers[o.ProbeRef] == nil {
			k := &worker{probe: lifecycle.NewProbe(o, p.world.Now(), 0), timeout: o.Spec.TimeoutSeconds.Duration()}
			p.workers[o.ProbeRef] = k
			p.schedule(o.ProbeRef, k)
		}
	}
	for ref, k := range p.workers {
		if !on[ref] {
			k.stopped = true
			delete(p.workers, ref)
		}
	}
}

// schedule waits until a probe is due, processes the scripted result and schedules the next one.
func (p *Pod) schedule(ref lifecycle.ProbeRef, k *worker) {
	due := k.probe.Due()
	if due.IsZero() {
		return
	}
	p.background(p.world.now+max(0, due.Sub(p.world.Now())), func() {
		if k.stopped {
			return
		}
		if p.probed != nil {
			p.probed(ref)
		}
		if proc := p.engine.process(ref.Ref); p.world.Batches && proc != nil && proc.exited && proc.ended == p.world.now {
			return // the supervisor gets the exit at this instant, and stops the probe
		}
		result, latency := p.answer(ref, k.timeout)
		if latency == 0 {
			p.step(ref, k, result)
			return
		}
		p.background(p.world.now+latency, func() { p.step(ref, k, result) })
	})
}

// step processes a result of a probe.
func (p *Pod) step(ref lifecycle.ProbeRef, k *worker, result lifecycle.ProbeResult) {
	if k.stopped {
		return
	}
	var events []lifecycle.Event
	events, k.probe = k.probe.Step(p.world.Now(), result)
	for _, e := range events {
		p.deliver(e)
	}
	p.schedule(ref, k)
}

// answer returns the scripted result, and how long it takes; success after the end of the script.
func (p *Pod) answer(ref lifecycle.ProbeRef, timeout time.Duration) (lifecycle.ProbeResult, time.Duration) {
	proc := p.engine.process(ref.Ref)
	if proc == nil || proc.exited || p.world.unavailable {
		return lifecycle.ProbeResult{Outcome: lifecycle.ProbeError, Message: "container not running"}, 0
	}
	list, now := proc.Probes[ref.Kind], p.world.now
	outcome := next(&list, lifecycle.ProbeSuccess)
	if proc.Probes != nil {
		proc.Probes[ref.Kind] = list
	}
	age, latency, message := now-proc.started, time.Duration(0), "failed"
	switch {
	case age < proc.StartsUp:
		outcome, message = lifecycle.ProbeFailure, "not started up yet"
	case proc.Hangs > 0 && age >= proc.Hangs:
		latency = timeout + 1
	}
	for _, a := range p.Script.Answers[ref.Container] {
		if a.Kind == ref.Kind && a.From <= now && (a.To == 0 || now < a.To) {
			outcome, latency = lifecycle.ProbeSuccess, a.Latency
			if a.Failure {
				outcome, message = lifecycle.ProbeFailure, "fails in the scenario"
			}
		}
	}
	if latency > timeout {
		return lifecycle.ProbeResult{Outcome: lifecycle.ProbeFailure, Message: fmt.Sprintf("timed out after %v", timeout)}, timeout
	}
	if outcome == lifecycle.ProbeSuccess {
		return lifecycle.ProbeResult{Outcome: outcome}, latency
	}
	return lifecycle.ProbeResult{Outcome: outcome, Message: message}, latency
}

// stopProbes stops all probes, because the supervisor stopped.
func (p *Pod) stopProbes() {
	for _, k := range p.workers {
		k.stopped = true
	}
	clear(p.workers)
}

// hook identifies a hook of a run.
type hook struct {
	ref  lifecycle.Ref
	kind lifecycle.HookKind
}

// runHook runs a hook as scripted, within its limit.
func (p *Pod) runHook(a lifecycle.Action, h hook, limit time.Duration) (time.Duration, func() lifecycle.Event) {
	s := Start{}
	if proc := p.engine.process(h.ref); proc != nil {
		s = proc.PostStart
		if h.kind == lifecycle.PreStop {
			s = proc.PreStop
		}
	}
	takes, late := s.Takes, limit > 0 && s.Takes > limit
	if late {
		takes = limit
	}
	return takes, func() lifecycle.Event {
		switch proc := p.engine.process(h.ref); {
		case proc == nil || proc.exited:
			return p.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no such process"})
		case late:
			return p.failed(a, lifecycle.Failure{Message: "timeout"})
		case s.Failure != nil:
			return p.failed(a, *s.Failure)
		}
		return lifecycle.HookFinished{Ref: h.ref, Hook: h.kind, At: p.world.Now()}
	}
}
