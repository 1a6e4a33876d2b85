package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// probeTries is how often a handler that cannot run is asked before that is told (maxProbeRetries of the kubelet).
const probeTries = 3

// Verdict is what a probe has made of the answers of its handler.
type Verdict string

// The verdicts; the empty one says that the probe has come to none yet.
const (
	VerdictSuccess Verdict = "Success"
	VerdictFailure Verdict = "Failure"
)

// ProbeRef names one probe of one run.
type ProbeRef struct {
	Ref
	Kind ProbeKind `json:"kind"`
}

// ProbeOrder says that a probe is to be on. Two orders with the same ProbeRef speak of the same probe: one that is on
// goes on as it is. The handler's time limit is Spec.TimeoutSeconds.
type ProbeOrder struct {
	ProbeRef
	Spec    *spec.Probe
	Started Instant // of the run; the initial delay counts from here
	Initial Verdict // what holds before the first answer, so that only a change is told
}

// Probe is the schedule and the counters of one probe of one run; a value. They begin at zero with the run and end with
// it. Whoever runs the handler asks [Probe.Due] when to, and hands the answer to [Probe.Step].
type Probe struct {
	order ProbeOrder
	due   Instant
	holds Verdict
	last  Verdict // of the newest answer that counts
	run   int     // answers in a row that were like it
	tries int     // answers in a row that count for nothing
	held  bool    // a verdict was reached after which nobody is asked any more
}

// NewProbe begins a probe that is switched on now. Its first answer is due when the initial delay is over, and not
// before the spread is, which keeps the probes of a supervisor that has just come up from being asked all at once
// (contract 5.2: a random part of the period; else 0).
func NewProbe(order ProbeOrder, now Instant, spread time.Duration) Probe {
	return Probe{
		order: order, holds: order.Initial,
		due: later(order.Started.Add(order.Spec.InitialDelaySeconds.Duration()), now.Add(spread)),
	}
}

// Due returns when the handler is to run next. Never ([Instant.IsZero]) says that it is not to run again for this run.
func (p Probe) Due() Instant {
	if p.held {
		return Instant{}
	}
	return p.due
}

// Step takes in an answer that came now. It returns the probe as it goes on, and what the loop is to be told, in order:
// nothing in most cases, [ProbeFailed] or [ProbeWarned] for an answer that a person is told of, [ProbeChanged] for a
// verdict that is another one.
func (p Probe) Step(now Instant, r ProbeResult) ([]Event, Probe) {
	if p.held {
		return nil, p
	}
	if r.Outcome == ProbeError {
		p.tries++
		if p.tries < probeTries {
			p.due = now
			return nil, p
		}
	}
	p.tries = 0
	p.due = later(p.due.Add(p.order.Spec.PeriodSeconds.Duration()), now)
	if r.Outcome == ProbeError {
		return []Event{ProbeFailed{ProbeRef: p.order.ProbeRef, Result: r, At: now}}, p
	}
	return p.count(now, r)
}

// count takes in an answer that counts.
func (p Probe) count(now Instant, r ProbeResult) ([]Event, Probe) {
	verdict, threshold := VerdictSuccess, int(p.order.Spec.SuccessThreshold)
	if r.Outcome == ProbeFailure {
		verdict, threshold = VerdictFailure, int(p.order.Spec.FailureThreshold)
	}
	if verdict != p.last {
		p.last, p.run = verdict, 0
	}
	p.run++
	var told []Event
	if r.Outcome == ProbeFailure {
		told = append(told, ProbeFailed{ProbeRef: p.order.ProbeRef, Result: r, Count: p.run, At: now})
	}
	if r.Outcome == ProbeWarning {
		told = append(told, ProbeWarned{ProbeRef: p.order.ProbeRef, Result: r, At: now})
	}
	if p.run < threshold || verdict == p.holds {
		return told, p
	}
	p.holds = verdict
	p.held = final(p.order.Kind, verdict)
	return append(told, ProbeChanged{
		ProbeRef: p.order.ProbeRef, Verdict: verdict, Message: r.Message, Count: p.run, At: now,
	}), p
}

// final reports whether a verdict stands until the end of the run (contract 5.2, step 12).
func final(kind ProbeKind, v Verdict) bool {
	return (kind == ProbeStartup && v != "") || (kind == ProbeLiveness && v == VerdictFailure)
}

// ProbeStatus is the newest verdict of one probe of a run.
type ProbeStatus struct {
	Verdict Verdict `json:"verdict,omitempty"`
	Message string  `json:"message,omitempty"` // of the last answer that led to it
	Count   int     `json:"count,omitempty"`   // how many answers in a row did
	At      Instant `json:"at,omitzero"`
}

// Probes are the newest verdicts of the probes of a run.
type Probes struct {
	Startup   ProbeStatus `json:"startup,omitzero"`
	Liveness  ProbeStatus `json:"liveness,omitzero"`
	Readiness ProbeStatus `json:"readiness,omitzero"`
}

// of returns the verdict of a kind; nil if there is no such kind.
func (p *Probes) of(kind ProbeKind) *ProbeStatus {
	switch kind {
	case ProbeStartup:
		return &p.Startup
	case ProbeLiveness:
		return &p.Liveness
	case ProbeReadiness:
		return &p.Readiness
	}
	return nil
}

// ProbeChanged says that a probe has come to another verdict than the one that held.
type ProbeChanged struct {
	ProbeRef
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message,omitempty"`
	Count   int     `json:"count,omitempty"`
	At      Instant `json:"at"`
}

func (e ProbeChanged) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		p := a.Probes.of(e.Kind)
		if p != nil && a.live() && !final(e.Kind, p.Verdict) && !e.At.Before(p.At) {
			*p = ProbeStatus{Verdict: e.Verdict, Message: e.Message, Count: e.Count, At: e.At}
		}
	})
}

// ProbeFailed tells of an answer that was no success, or of a handler that could not run (contract 5.2: Unhealthy is
// told of every attempt). It changes no fact: what follows from it comes as [ProbeChanged].
type ProbeFailed struct {
	ProbeRef
	Result ProbeResult
	Count  int // failures in a row, this one included; 0 if the handler could not run
	At     Instant
}

func (ProbeFailed) apply(*Facts) {}

// ProbeWarned tells of a success with a warning. It changes no fact.
type ProbeWarned struct {
	ProbeRef
	Result ProbeResult
	At     Instant
}

func (ProbeWarned) apply(*Facts) {}

// Verdicts returns the verdicts of the probes of what runs, sorted by container, as the events that bring them about:
// what a supervisor keeps until the next boot, and folds into the facts that it finds on disk.
func (f Facts) Verdicts() []ProbeChanged {
	var list []ProbeChanged
	for _, name := range f.names() {
		a := f.Containers[name].Newest
		if !a.running() {
			continue
		}
		for _, kind := range [...]ProbeKind{ProbeStartup, ProbeLiveness, ProbeReadiness} {
			if p := a.Probes.of(kind); p.Verdict != "" {
				list = append(list, ProbeChanged{
					ProbeRef: ProbeRef{Ref: a.Ref, Kind: kind}, Verdict: p.Verdict, Message: p.Message, Count: p.Count, At: p.At,
				})
			}
		}
	}
	return list
}
