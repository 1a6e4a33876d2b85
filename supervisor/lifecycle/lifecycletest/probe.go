package lifecycletest

import (
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// worker asks one probe, as long as it is ordered.
type worker struct {
	probe lifecycle.Probe
	off   bool
}

// probes switches on and off what a decision orders.
func (w *World) probes(orders []lifecycle.ProbeOrder) {
	on := map[lifecycle.ProbeRef]bool{}
	for _, o := range orders {
		on[o.ProbeRef] = true
		if w.workers[o.ProbeRef] == nil {
			k := &worker{probe: lifecycle.NewProbe(o, w.Now(), 0)}
			w.workers[o.ProbeRef] = k
			w.ask(o.ProbeRef, k)
		}
	}
	for ref, k := range w.workers {
		if !on[ref] {
			k.off = true
			delete(w.workers, ref)
		}
	}
}

// ask waits until a probe is due, hands it the answer of the script, and goes on.
func (w *World) ask(ref lifecycle.ProbeRef, k *worker) {
	due := k.probe.Due()
	if due.IsZero() {
		return
	}
	w.aside(w.now+max(0, due.Sub(w.Now())), func() {
		if k.off {
			return
		}
		var told []lifecycle.Event
		told, k.probe = k.probe.Step(w.Now(), w.answer(ref))
		for _, e := range told {
			w.tell(e)
		}
		w.ask(ref, k)
	})
}

// answer is what the script says; when it is used up, all is well.
func (w *World) answer(ref lifecycle.ProbeRef) lifecycle.ProbeResult {
	p := w.engine.processes[ref.Ref]
	if p == nil || p.over || w.away {
		return lifecycle.ProbeResult{Outcome: lifecycle.ProbeError, Message: "nobody is there"}
	}
	list := p.Probes[ref.Kind]
	outcome := next(&list, lifecycle.ProbeSuccess)
	if p.Probes != nil {
		p.Probes[ref.Kind] = list
	}
	if outcome == lifecycle.ProbeSuccess {
		return lifecycle.ProbeResult{Outcome: outcome}
	}
	return lifecycle.ProbeResult{Outcome: outcome, Message: "no good"}
}

// forget switches every probe off, as the end of a supervisor does.
func (w *World) forget() {
	for _, k := range w.workers {
		k.off = true
	}
	clear(w.workers)
}

// hook names a hook of a run.
type hook struct {
	ref  lifecycle.Ref
	kind lifecycle.HookKind
}

// runHook runs a hook as the script says, within its limit.
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
		case p == nil || p.over:
			return w.failed(a, lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "no such process"})
		case late:
			return w.failed(a, lifecycle.Failure{Message: "not done in time"})
		case s.Failure != nil:
			return w.failed(a, *s.Failure)
		}
		return lifecycle.HookFinished{Ref: h.ref, Hook: h.kind, At: w.Now()}
	}
}
