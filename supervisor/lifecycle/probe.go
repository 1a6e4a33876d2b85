package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// ProbeOutcome classifies one result of a handler.
type ProbeOutcome string

// The outcomes of a handler.
const (
	ProbeSuccess ProbeOutcome = "Success"
	// ProbeWarning is a success with a warning, such as a redirect to another host.
	ProbeWarning ProbeOutcome = "Warning"
	ProbeFailure ProbeOutcome = "Failure"
	// ProbeError means that the handler could not run. It does not count, as in the kubelet. The handler is tried again at once,
	// up to three times.
	ProbeError ProbeOutcome = "Error"
)

// ProbeResult is one result of a probe's handler. Message is the handler's error or output without the name of the probe; it is
// empty for a success without a warning.
type ProbeResult struct {
	Outcome ProbeOutcome `json:"outcome"`
	Message string       `json:"message,omitempty"`
}

// probeTries is how often a handler that could not run is tried before an event is emitted (the kubelet's maxProbeRetries).
const probeTries = 3

// ProbeRef identifies one probe of one run.
type ProbeRef struct {
	Ref
	Kind ProbeKind `json:"kind"`
}

// ProbeOrder states that a probe must run. An order with the same ProbeRef as before means that the probe continues. The timeout
// of the handler is Spec.TimeoutSeconds.
type ProbeOrder struct {
	ProbeRef
	Spec       *spec.Probe
	Definition *spec.Container // that the run was started from
	Started    Instant         // start of the run; the initial delay counts from here
	Initial    Verdict         // the verdict before the first result (the kubelet's initialValue); only a change is reported
}

// Probe is the schedule and the counters of one probe of one run. It is a value. The caller runs the handler at [Probe.Due] and
// passes its result to [Probe.Step].
type Probe struct {
	order  ProbeOrder
	due    Instant
	result Verdict
	last   Verdict // of the newest result that counts
	run    int     // number of consecutive results like last
	tries  int     // consecutive errors of the handler, which do not count
	final  bool    // a verdict was reached after which the probe stops
}

// NewProbe returns a probe that starts now. Its first run is due after the initial delay and after the spread, a random part of
// the period that keeps a restarted supervisor from running all probes at once (contract 5.2).
func NewProbe(order ProbeOrder, now Instant, spread time.Duration) Probe {
	return Probe{
		order: order, result: order.Initial,
		due: later(order.Started.Add(order.Spec.InitialDelaySeconds.Duration()), now.Add(spread)),
	}
}

// Due returns when the handler must run next. The zero Instant means that it must not run again.
func (p Probe) Due() Instant {
	if p.final {
		return Instant{}
	}
	return p.due
}

// Step processes a result that arrived now. It returns the events to emit, in order, and the updated probe. Most results produce
// no event. [ProbeFailed] and [ProbeWarned] report a single result, [ProbeChanged] a change of the verdict.
func (p Probe) Step(now Instant, r ProbeResult) ([]Event, Probe) {
	if p.final {
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

// count processes a result that counts towards a threshold.
func (p Probe) count(now Instant, r ProbeResult) ([]Event, Probe) {
	verdict, threshold := VerdictSuccess, int(p.order.Spec.SuccessThreshold)
	if r.Outcome == ProbeFailure {
		verdict, threshold = VerdictFailure, int(p.order.Spec.FailureThreshold)
	}
	if verdict != p.last {
		p.last, p.run = verdict, 0
	}
	p.run++
	var events []Event
	if r.Outcome == ProbeFailure {
		events = append(events, ProbeFailed{ProbeRef: p.order.ProbeRef, Result: r, Count: p.run, At: now})
	}
	if r.Outcome == ProbeWarning {
		events = append(events, ProbeWarned{ProbeRef: p.order.ProbeRef, Result: r, At: now})
	}
	if p.run < threshold || verdict == p.result {
		return events, p
	}
	p.result = verdict
	p.final = isFinal(p.order.Kind, verdict)
	return append(events, ProbeChanged{
		ProbeRef: p.order.ProbeRef, Verdict: verdict, Message: r.Message, Count: p.run, At: now,
	}), p
}

// isFinal reports whether a verdict stands until the end of the run (contract 5.2, step 12).
func isFinal(kind ProbeKind, v Verdict) bool {
	return (kind == ProbeStartup && v != "") || (kind == ProbeLiveness && v == VerdictFailure)
}

// ProbeChanged reports a change of the verdict of a probe.
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
		if p != nil && a.live() && !isFinal(e.Kind, p.Verdict) && !e.At.Before(p.At) {
			*p = ProbeStatus{Verdict: e.Verdict, Message: e.Message, Count: e.Count, At: e.At}
		}
	})
}

// ProbeFailed reports a failure, or a handler that could not run (contract 5.2: every attempt emits Unhealthy). It changes no
// fact; a changed verdict is reported by [ProbeChanged].
type ProbeFailed struct {
	ProbeRef
	Result ProbeResult
	Count  int // consecutive failures including this one; 0 if the handler could not run
	At     Instant
}

func (ProbeFailed) apply(*Facts) {}

// ProbeWarned reports a success with a warning. It changes no fact.
type ProbeWarned struct {
	ProbeRef
	Result ProbeResult
	At     Instant
}

func (ProbeWarned) apply(*Facts) {}

// Verdicts returns the probe verdicts of the running containers, sorted by container, as events. The supervisor keeps them until
// the next boot, and folds them into the facts that it loads after a restart.
func (f Facts) Verdicts() []ProbeChanged {
	var list []ProbeChanged
	for _, name := range f.names() {
		a := &f.Container(name).Newest
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
