package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// worker runs one probe while it is ordered.
type worker struct {
	probe   lifecycle.Probe
	stopped bool
}

// probes starts and stops the workers according to the orders of a decision.
func (w *World) probes(orders []lifecycle.ProbeOrder) {
	on := map[lifecycle.ProbeRef]bool{}
	for _, o := range orders {
		on[o.ProbeRef] = true
		if w.workers[o.ProbeRef] == nil {
			k := &worker{probe: lifecycle.NewProbe(o, w.Now(), 0)}
			w.workers[o.ProbeRef] = k
			w.schedule(o.ProbeRef, k)
		}
	}
	for ref, k := range w.workers {
		if !on[ref] {
			k.stopped = true
			delete(w.workers, ref)
		}
	}
}

// schedule waits until a probe is due, processes the scripted result and schedules the next one.
func (w *World) schedule(ref lifecycle.ProbeRef, k *worker) {
	due := k.probe.Due()
	if due.IsZero() {
		return
	}
	w.background(w.now+max(0, due.Sub(w.Now())), func() {
		if k.stopped {
			return
		}
		var events []lifecycle.Event
		events, k.probe = k.probe.Step(w.Now(), w.answer(ref))
		for _, e := range events {
			w.deliver(e)
		}
		w.schedule(ref, k)
	})
}

// answer returns the scripted result; success after the end of the script.
func (w *World) answer(ref lifecycle.ProbeRef) lifecycle.ProbeResult {
	p := w.engine.processes[ref.Ref]
	if p == nil || p.exited || w.unavailable {
		return lifecycle.ProbeResult{Outcome: lifecycle.ProbeError, Message: "container not running"}
	}
	list := p.Probes[ref.Kind]
	outcome := next(&list, lifecycle.ProbeSuccess)
	if p.Probes != nil {
		p.Probes[ref.Kind] = list
	}
	if outcome == lifecycle.ProbeSuccess {
		return lifecycle.ProbeResult{Outcome: outcome}
	}
	return lifecycle.ProbeResult{Outcome: outcome, Message: "failed"}
}

// stopProbes stops all probes, because the supervisor stopped.
func (w *World) stopProbes() {
	for _, k := range w.workers {
		k.stopped = true
	}
	clear(w.workers)
}

// hook identifies a hook of a run.
type hook struct {
	ref  lifecycle.Ref
	kind lifecycle.HookKind
}

// runHook runs a hook as scripted, within its limit.
func (w *World) runHook(a lifecycle.Action, h hook, limit time.Duration) (time.Duration, func() lifecycle.Event) {
	s := Start{}
	if p := w.engine.processes[h.ref]; p != nil {
		s = p.PostStart
		if h.kind == lifecycle.PreStop {
			s = p.PreStop
		}
	}
	takes, late := s.Takes, limit > 0 && s.Takes > limit
	if late {
		takes = limit
	}
	return takes, func() lifecycle.Event {
		switch p := w.engine.processes[h.ref]; {
		case p == nil || p.exited:
			return w.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no such process"})
		case late:
			return w.failed(a, lifecycle.Failure{Message: "timeout"})
		case s.Failure != nil:
			return w.failed(a, *s.Failure)
		}
		return lifecycle.HookFinished{Ref: h.ref, Hook: h.kind, At: w.Now()}
	}
}
