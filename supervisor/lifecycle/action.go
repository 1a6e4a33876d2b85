package lifecycle

import (
	"cmp"
	"time"
)

// Action is something to be done in the world. It is a comparable value. It ends in exactly one event, and may be
// carried out again after a crash: whoever carries it out adopts what it finds.
type Action interface {
	// issued folds in that the action was handed out.
	issued(f *Facts, at Instant)
	// failed folds in that it did not succeed.
	failed(f *Facts, why Failure, at Instant)
}

// FailureKind says what is to be done about a failure.
type FailureKind string

const (
	// FailureRetry is a failed attempt: it backs off and is tried again.
	FailureRetry FailureKind = ""
	// FailureUnavailable is the absence of the engine: it counts as no failure, and is looked at again soon.
	FailureUnavailable FailureKind = "Unavailable"
	// FailureRefused is a container that could not be created, so that it left no record and was no run.
	FailureRefused FailureKind = "Refused"
	// FailureGone is something that the action speaks of and that is not there.
	FailureGone FailureKind = "Gone"
)

// Failure is why an action did not succeed, classified by what is to be done about it.
type Failure struct {
	Kind    FailureKind `json:"kind,omitempty"`
	Reason  Reason      `json:"reason,omitempty"` // the kubelet's word, shown in the container's state
	Message string      `json:"message,omitempty"`
}

// Error makes a Failure an error, so that the edge that knows can classify it once.
func (f Failure) Error() string {
	if f.Reason == "" {
		return f.Message
	}
	return string(f.Reason) + ": " + f.Message
}

// StartSandbox makes the pod's sandbox and opens a round.
type StartSandbox struct {
	Sandbox int
	Round   int
}

func (a StartSandbox) issued(f *Facts, at Instant) {
	f.Round = a.Round
	next := Sandbox{N: a.Sandbox, Asked: at}
	if s := &f.Sandbox; s.Failures > 0 { // it is tried again for the same reason
		next.Failures, next.Reason, next.Message = s.Failures, s.Reason, s.Message
	}
	f.Sandbox = next
}

func (a StartSandbox) failed(f *Facts, why Failure, at Instant) {
	if f.Sandbox.N == a.Sandbox && f.Sandbox.inFlight() {
		f.Sandbox.Failed = at
		f.Sandbox.Unavailable = why.Kind == FailureUnavailable
		if f.Sandbox.Unavailable {
			f.Sandbox.Message = why.Message
			return
		}
		if why.Reason != f.Sandbox.Reason {
			f.Sandbox.Failures = 0
		}
		f.Sandbox.Failures = mountBackoff.next(f.Sandbox.Failures)
		f.Sandbox.Reason, f.Sandbox.Message = why.Reason, why.Message
	}
}

// RemoveSandbox takes the sandbox away, whatever is left of it.
type RemoveSandbox struct{ Sandbox int }

func (a RemoveSandbox) issued(f *Facts, at Instant) {
	if f.Sandbox.N == a.Sandbox {
		f.Sandbox.Removal = Removal{Asked: at}
	}
}

func (a RemoveSandbox) failed(f *Facts, why Failure, at Instant) {
	if f.Sandbox.N == a.Sandbox {
		f.Sandbox.Removal.fail(at)
		f.Sandbox.Message = why.Message
	}
}

// PullImage makes a container's image available by its policy, before a run of it.
type PullImage struct {
	Container string
	For       int // the attempt that it is made for
	Level     int // the backoff level that a failure leads to
}

func (a PullImage) issued(f *Facts, at Instant) {
	c := f.Containers[a.Container]
	next := Pull{For: a.For, Asked: at, Next: a.Level, Failed: c.Pull.Failed, Level: c.Pull.Level}
	if c.Pull.For == a.For {
		next.Reason, next.Message = c.Pull.Reason, c.Pull.Message
	}
	c.Pull = next
	f.Containers[a.Container] = c
}

func (a PullImage) failed(f *Facts, why Failure, at Instant) {
	f.updatePull(a.Container, a.For, func(p *Pull) {
		switch {
		case !p.Cancelled.IsZero(): // no failure of the image
			p.For, p.Asked = 0, Instant{}
			return
		case why.Kind == FailureUnavailable:
			p.Retry = at
			return
		}
		p.Failed, p.Level, p.Reason, p.Message = at, p.Next, cmp.Or(why.Reason, ReasonErrImagePull), why.Message
	})
}

// FindImage looks whether the image of a container has come without it, while its next pull waits. No registry is asked. It
// ends in [ImagePulled], or fails where the image is not here, or has to be pulled by its policy.
type FindImage struct {
	Container string
	For       int // the attempt that it is looked for
}

func (a FindImage) issued(f *Facts, at Instant) {
	c := f.Containers[a.Container]
	if c.Pull.For != a.For {
		c.Pull = Pull{For: a.For, Failed: c.Pull.Failed, Level: c.Pull.Level}
	}
	c.Pull.Looked = at
	f.Containers[a.Container] = c
}

func (FindImage) failed(*Facts, Failure, Instant) {}

// CancelPull ends a running [PullImage] early; the pull's own outcome is the only event that follows.
type CancelPull struct {
	Container string
	For       int
}

func (a CancelPull) issued(f *Facts, at Instant) {
	f.updatePull(a.Container, a.For, func(p *Pull) { p.Cancelled = at })
}

func (CancelPull) failed(*Facts, Failure, Instant) {}

// StartContainer creates and starts one run of a container.
type StartContainer struct {
	Ref
	Sandbox  int
	Restarts int // the restartCount of this run
	Backoff  int // the backoff level that granting it leads to
}

func (a StartContainer) issued(f *Facts, at Instant) {
	c := f.Containers[a.Container]
	if c.Newest.Ref == a.Ref { // the engine was away: asked again
		c.Newest.Retry = Instant{}
		f.Containers[a.Container] = c
		return
	}
	if c.Newest.ran() {
		c.Previous = c.Newest
	}
	if a.Backoff > 0 {
		c.Backoff = Backoff{Level: a.Backoff, Granted: at}
	}
	next := Attempt{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts, Asked: at}
	if !c.Newest.Refused.IsZero() && c.Newest.Round == a.Round { // it is tried again for the same reason
		next.Exit = c.Newest.Exit
	}
	c.Newest = next
	f.Containers[a.Container] = c
}

func (a StartContainer) failed(f *Facts, why Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		switch {
		case !r.live() || !r.Started.IsZero():
		case why.Kind == FailureUnavailable:
			r.Retry = at
		case why.Kind == FailureRefused:
			r.Refused, r.Exit = at, Exit{Reason: cmp.Or(why.Reason, ReasonCreateContainerError), Message: why.Message}
		default:
			r.Exited, r.Exit = at, Exit{Code: 128, Reason: ReasonStartError, Message: why.Message}
		}
	})
}

// StopContainer sends a running container its stop signal: lifecycle.stopSignal, else the image's, else SIGTERM.
type StopContainer struct {
	Ref
	Grace  time.Duration // from now to SIGKILL
	Reason Reason
}

func (a StopContainer) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		if r.StopAsked.IsZero() {
			r.StopAsked, r.StopGrace = at, a.Grace
			r.stopFor(a.Reason)
		}
		r.Unsent = Instant{}
	})
}

func (a StopContainer) failed(f *Facts, why Failure, at Instant) { unsent(f, a.Ref, why, at) }

// KillContainer sends SIGKILL to a container and all that it started.
type KillContainer struct{ Ref }

func (a KillContainer) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.KillAsked, r.Unsent = at, Instant{} })
}

func (a KillContainer) failed(f *Facts, why Failure, at Instant) { unsent(f, a.Ref, why, at) }

// unsent folds in that a signal could not be sent; where that is so because nothing is there to signal, the run is over.
func unsent(f *Facts, ref Ref, why Failure, at Instant) {
	f.update(ref, func(r *Attempt) {
		switch {
		case !r.live():
		case why.Kind == FailureGone:
			r.Exited, r.Exit = at, Exit{Code: 137, Reason: ReasonStatusUnknown, Message: why.Message}
		default:
			r.Unsent = at
		}
	})
}

// RemoveContainer takes away what a run that is over has left: its record, its writable layer, its log.
type RemoveContainer struct{ Ref }

func (a RemoveContainer) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.Removal = Removal{Asked: at} })
}

func (a RemoveContainer) failed(f *Facts, _ Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) { r.Removal.fail(at) })
}

// RemovePod takes away all that is left of a pod that has ended: containers, volumes of its own, logs.
type RemovePod struct{}

func (RemovePod) issued(f *Facts, at Instant) { f.Removal = Removal{Asked: at} }

func (RemovePod) failed(f *Facts, _ Failure, at Instant) { f.Removal.fail(at) }

// fail notes that the removal has to be tried again.
func (r *Removal) fail(at Instant) {
	if r.Done.IsZero() {
		r.Failed = at
	}
}

// pending reports whether a removal was asked for and has no outcome yet.
func (r *Removal) pending() bool {
	return !r.Asked.IsZero() && r.Failed.IsZero() && r.Done.IsZero()
}
