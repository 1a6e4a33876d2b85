package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// HookKind says at which end of a run a hook is.
type HookKind string

// The hooks (v1.Lifecycle).
const (
	PostStart HookKind = "postStart"
	PreStop   HookKind = "preStop"
)

// Hook is what is known of one hook of a run.
type Hook struct {
	Requested Instant       `json:"requested,omitzero"` // for the first time
	Limit     time.Duration `json:"limit,omitempty"`    // from then on; 0: none
	Retry     Instant       `json:"retry,omitzero"`     // when an engine that was away, or found no process, is to be asked again
	Cancelled Instant       `json:"cancelled,omitzero"`
	Done      Instant       `json:"done,omitzero"`
	Failed    bool          `json:"failed,omitempty"` // done, and not well
	Message   string        `json:"message,omitempty"`
}

// inFlight reports whether the hook was asked for and has no outcome yet.
func (h *Hook) inFlight() bool { return !h.Requested.IsZero() && h.Done.IsZero() && h.Retry.IsZero() }

func (h *Hook) ask(limit time.Duration, at Instant) {
	if h.Requested.IsZero() {
		h.Requested, h.Limit = at, limit
	}
	h.Retry = Instant{}
}

func (h *Hook) fail(why Failure, at Instant) {
	switch {
	case !h.inFlight():
	case (why.Kind == FailureUnavailable || why.Kind == FailureNotFound) && h.Cancelled.IsZero():
		h.Retry = at // of a process that is gone the end is on its way
	default:
		h.Done, h.Failed, h.Message = at, true, why.Message
	}
}

// RunPostStart runs the postStart hook of a run that has just started. It has no time limit, as in the kubelet; the end
// of the run, or of the pod, cancels it.
type RunPostStart struct{ Ref }

func (a RunPostStart) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.PostStart.ask(0, at) })
}

func (a RunPostStart) failed(f *Facts, why Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		if r.live() {
			r.PostStart.fail(why, at)
		}
	})
}

// RunPreStop begins the end of a run with its preStop hook. The stop signal follows when the hook has an outcome, or the
// time is over; a hook that is not done then is cancelled.
type RunPreStop struct {
	Ref
	Limit  time.Duration // what is left of the grace period
	Reason Reason        // why the run is to end
}

func (a RunPreStop) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		r.PreStop.ask(a.Limit, at)
		r.endWithin(a.Limit, a.Reason, at)
	})
}

func (a RunPreStop) failed(f *Facts, why Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		if r.live() {
			r.PreStop.fail(why, at)
		}
	})
}

// WaitForTurn begins the end of a sidecar that has no preStop hook, and whose turn to have the stop signal has not come: its
// grace period runs meanwhile. It has no effect outside of the facts: see [RecordOnly].
type WaitForTurn struct {
	Ref
	Limit  time.Duration // what is left of the grace period
	Reason Reason
}

func (a WaitForTurn) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.endWithin(a.Limit, a.Reason, at) })
}

func (WaitForTurn) failed(*Facts, Failure, Instant) {}

// CancelHook ends a running hook early; the hook's own outcome is the only event that follows.
type CancelHook struct {
	Ref
	Hook HookKind
}

func (a CancelHook) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { set(&r.hook(a.Hook).Cancelled, at) })
}

func (CancelHook) failed(*Facts, Failure, Instant) {}

// HookFinished ends a [RunPostStart] or a [RunPreStop] that went well.
type HookFinished struct {
	Ref
	Hook HookKind
	At   Instant
}

func (e HookFinished) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		if h := a.hook(e.Hook); a.live() && h.inFlight() {
			h.Done = e.At
		}
	})
}

func (a *Attempt) hook(kind HookKind) *Hook {
	if kind == PreStop {
		return &a.PreStop
	}
	return &a.PostStart
}

func hasPostStart(c *spec.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil }

func hasPreStop(c *spec.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }

// hooking reports whether the run is one whose postStart hook has no outcome yet, not even a failed one.
func (a *Attempt) hooking(c *spec.Container) bool {
	return a.running() && hasPostStart(c) && a.PostStart.Done.IsZero()
}

// up reports whether the process runs and its postStart hook has succeeded: until then the container counts as being
// created (contract 6).
func (a *Attempt) up(c *spec.Container) bool {
	return a.running() && (!hasPostStart(c) || (!a.PostStart.Done.IsZero() && !a.PostStart.Failed))
}

// started is status.started: up, and past its startup probe.
func (a *Attempt) started(c *spec.Container) bool {
	return a.up(c) && (c.StartupProbe == nil || a.Probes.Startup.Verdict == VerdictSuccess)
}

// ready is status.ready of a container that keeps running.
func (a *Attempt) ready(c *spec.Container) bool {
	return a.started(c) && (c.ReadinessProbe == nil || a.Probes.Readiness.Verdict == VerdictSuccess)
}

// ending reports whether the run is being brought to its end.
func (a *Attempt) ending() bool {
	return !a.TerminationRequested.IsZero() || !a.StopRequested.IsZero() || !a.KillRequested.IsZero()
}

// endWithin notes that the end of the run has begun; the first word counts.
func (a *Attempt) endWithin(grace time.Duration, why Reason, at Instant) {
	if a.TerminationRequested.IsZero() {
		a.TerminationRequested, a.TerminationGrace = at, grace
	}
	a.stopFor(why)
}

// stopFor notes why the run is brought to its end; the first reason counts.
func (a *Attempt) stopFor(why Reason) {
	if a.StopReason == "" {
		a.StopReason = why
	}
}

// doomed is why a run that lives has to end though the pod goes on; empty if it has not.
func (a *Attempt) doomed() Reason {
	switch {
	case a.StopReason != "":
		return a.StopReason
	case a.PostStart.Failed:
		return ReasonFailedPostStartHook
	case a.Probes.Liveness.Verdict == VerdictFailure:
		return ReasonLivenessProbe
	case a.Probes.Startup.Verdict == VerdictFailure:
		return ReasonStartupProbe
	}
	return ""
}
