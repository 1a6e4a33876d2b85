package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// HookKind is the kind of a lifecycle hook.
type HookKind string

// Lifecycle hooks (v1.Lifecycle).
const (
	PostStart HookKind = "postStart"
	PreStop   HookKind = "preStop"
)

// Hook is what is known about one hook of a run.
type Hook struct {
	Requested Instant       `json:"requested,omitzero"` // for the first time
	Limit     time.Duration `json:"limit,omitempty"`    // timeout, counted from Requested; 0: none
	Retry     Instant       `json:"retry,omitzero"`     // since when a retry is pending: engine unavailable, or process not found
	Cancelled Instant       `json:"cancelled,omitzero"`
	Done      Instant       `json:"done,omitzero"`
	Failed    bool          `json:"failed,omitempty"` // it failed; Done is set too
	Message   string        `json:"message,omitempty"`
}

// inFlight reports whether the hook was requested and has no outcome yet.
func (h *Hook) inFlight() bool { return !h.Requested.IsZero() && h.Done.IsZero() && h.Retry.IsZero() }

func (h *Hook) request(limit time.Duration, at Instant) {
	if h.Requested.IsZero() {
		h.Requested, h.Limit = at, limit
	}
	h.Retry = Instant{}
}

func (h *Hook) fail(why Failure, at Instant) {
	switch {
	case !h.inFlight():
	case (why.Kind == FailureUnavailable || why.Kind == FailureNotFound) && h.Cancelled.IsZero():
		h.Retry = at // if the process was not found, its exit event will follow
	default:
		h.Done, h.Failed, h.Message = at, true, why.Message
	}
}

// RunPostStart runs the postStart hook of a run that has just started. It has no timeout, as in the kubelet. The termination of
// the run or of the pod cancels it.
type RunPostStart struct{ Ref }

func (a RunPostStart) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.PostStart.request(0, at) })
}

func (a RunPostStart) failed(f *Facts, why Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		if r.live() {
			r.PostStart.fail(why, at)
		}
	})
}

// RunPreStop begins the termination of a run with its preStop hook. The stop signal follows when the hook has an outcome, or
// when the grace period has passed; the hook is cancelled then.
type RunPreStop struct {
	Ref
	Limit  time.Duration // the remaining grace period
	Reason Reason        // why the run is stopped
}

func (a RunPreStop) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		r.PreStop.request(a.Limit, at)
		r.startTermination(a.Limit, a.Reason, at)
	})
}

func (a RunPreStop) failed(f *Facts, why Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		if r.live() {
			r.PreStop.fail(why, at)
		}
	})
}

// WaitForTurn begins the termination of a sidecar without a preStop hook that must wait for other containers before it gets its
// stop signal. Its grace period counts meanwhile. See [RecordOnly].
type WaitForTurn struct {
	Ref
	Limit  time.Duration // the remaining grace period
	Reason Reason
}

func (a WaitForTurn) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.startTermination(a.Limit, a.Reason, at) })
}

func (WaitForTurn) failed(*Facts, Failure, Instant) {}

// CancelHook cancels a running hook. Its only outcome is that of the hook.
type CancelHook struct {
	Ref
	Hook HookKind
}

func (a CancelHook) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { set(&r.hook(a.Hook).Cancelled, at) })
}

func (CancelHook) failed(*Facts, Failure, Instant) {}

// HookFinished is the outcome of a successful [RunPostStart] or [RunPreStop].
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

// postStartPending reports whether the postStart hook of a running container has no outcome yet.
func (a *Attempt) postStartPending(c *spec.Container) bool {
	return a.running() && hasPostStart(c) && a.PostStart.Done.IsZero()
}

// up reports whether the process is running and its postStart hook has succeeded. Before that, the container counts as being
// created (contract 6).
func (a *Attempt) up(c *spec.Container) bool {
	return a.running() && (!hasPostStart(c) || (!a.PostStart.Done.IsZero() && !a.PostStart.Failed))
}

// started is status.started: up, and the startup probe has succeeded.
func (a *Attempt) started(c *spec.Container) bool {
	return a.up(c) && (c.StartupProbe == nil || a.Probes.Startup.Verdict == VerdictSuccess)
}

// ready is status.ready of a running container.
func (a *Attempt) ready(c *spec.Container) bool {
	return a.started(c) && (c.ReadinessProbe == nil || a.Probes.Readiness.Verdict == VerdictSuccess)
}

// terminating reports whether the run is being stopped.
func (a *Attempt) terminating() bool {
	return !a.TerminationRequested.IsZero() || !a.StopRequested.IsZero() || !a.KillRequested.IsZero()
}

// startTermination records when the termination of the run began. Later calls do not change it.
func (a *Attempt) startTermination(grace time.Duration, why Reason, at Instant) {
	if a.TerminationRequested.IsZero() {
		a.TerminationRequested, a.TerminationGrace = at, grace
	}
	a.setStopReason(why)
}

// setStopReason records why the run is stopped. Later calls do not change it.
func (a *Attempt) setStopReason(why Reason) {
	if a.StopReason == "" {
		a.StopReason = why
	}
}

// mustStop returns why a run must stop although its pod continues; empty if it need not.
func (a *Attempt) mustStop() Reason {
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
