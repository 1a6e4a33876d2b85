package lifecycle

import (
	"time"
)

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
	f.update(a.Ref, func(r *Attempt) {
		r.PostStart.request(0, at)
	})
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
	f.update(a.Ref, func(r *Attempt) {
		r.startTermination(a.Limit, a.Reason, at)
	})
}

func (WaitForTurn) failed(*Facts, Failure, Instant) {}

// CancelHook cancels a running hook. Its only outcome is that of the hook.
type CancelHook struct {
	Ref
	Hook HookKind
}

func (a CancelHook) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		set(&r.hook(a.Hook).Cancelled, at)
	})
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
