package lifecycle

import (
	"cmp"
	"time"
)

// Action is one operation to carry out. It is a comparable value. Every action has exactly one outcome event. It may be carried
// out again after a crash, so its implementation must adopt what already exists.
type Action interface {
	// issued folds in that the action was issued.
	issued(f *Facts, at Instant)
	// failed folds in that the action failed.
	failed(f *Facts, why Failure, at Instant)
}

// FailureKind classifies a failure by how it is handled.
type FailureKind string

const (
	// FailureRetry is a failed attempt. It is retried with back-off.
	FailureRetry FailureKind = ""
	// FailureUnavailable means that the container engine is unavailable. It does not count as a failed attempt and is retried
	// after a second.
	FailureUnavailable FailureKind = "Unavailable"
	// FailureNotCreated means that the container could not be created. The engine has no record of it, and it does not count as
	// a run.
	FailureNotCreated FailureKind = "NotCreated"
	// FailureNotFound means that the object of the action does not exist.
	FailureNotFound FailureKind = "NotFound"
)

// Failure is the error of an action, classified by how it is handled.
type Failure struct {
	Kind    FailureKind `json:"kind,omitempty"`
	Reason  Reason      `json:"reason,omitempty"` // the kubelet's reason, shown in the container's state
	Message string      `json:"message,omitempty"`
	// Run has the container that was created and could not be started.
	Run Created `json:"run,omitzero"`
}

// Created is what the engine has created for a run.
type Created struct {
	ID      string `json:"id,omitempty"`
	Image   string `json:"image,omitempty"`
	ImageID string `json:"imageID,omitempty"`
	// Architecture is that of the image.
	Architecture string `json:"architecture,omitempty"`
}

// Error implements error, so that the runtime classifies an error once, where it occurs.
func (f Failure) Error() string {
	if f.Reason == "" {
		return f.Message
	}
	return string(f.Reason) + ": " + f.Message
}

// StartSandbox creates the pod's sandbox and opens a round.
type StartSandbox struct {
	Sandbox int
	Round   int
}

func (a StartSandbox) issued(f *Facts, at Instant) {
	f.Round = a.Round
	next := Sandbox{N: a.Sandbox, Requested: at}
	if s := &f.Sandbox; s.Failures > 0 { // a retry keeps the reason of the failures
		next.Failures, next.Reason, next.Message = s.Failures, s.Reason, s.Message
	}
	f.Sandbox, f.Collection = next, Collection{}
	f.Resize.drop()
	f.Wait.end(at)
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
		f.Sandbox.Failures = hostBackoff.next(f.Sandbox.Failures)
		f.Sandbox.Reason, f.Sandbox.Message = why.Reason, why.Message
	}
}

// RemoveSandbox removes the sandbox and what is left of it.
type RemoveSandbox struct{ Sandbox int }

func (a RemoveSandbox) issued(f *Facts, at Instant) {
	if f.Sandbox.N == a.Sandbox {
		f.Sandbox.Removal = Removal{Requested: at}
	}
}

func (a RemoveSandbox) failed(f *Facts, why Failure, at Instant) {
	if f.Sandbox.N == a.Sandbox {
		f.Sandbox.Removal.fail(at)
		f.Sandbox.Message = why.Message
	}
}

// PullImage makes a container's image available according to its pull policy, before a run of the container.
type PullImage struct {
	Container string
	For       int   // number of the attempt that needs the image
	Level     int   // back-off level after a failure
	Image     Image // the image of the previous run, which is used again unless the policy requires a pull
	Imported  bool  // the image archives were imported for this pod; they are read again only if an image is missing
}

// Progress is the progress of a [PullImage] in bytes. Total grows while more of an image becomes known.
type Progress struct {
	Archive string `json:"archive,omitempty"` // path of the image archive that is being imported; empty: an image is being pulled
	Done    int64  `json:"done"`
	Total   int64  `json:"total"` // 0: not known yet
	// Unpacking is true when everything is fetched. Total is then the size of the compressed layers that have to be unpacked, and Done is
	// how much of them was.
	Unpacking bool `json:"unpacking,omitempty"`
	// Image is set for an image of a new definition that is being prepared, while the pod runs with its present one.
	Image string `json:"image,omitempty"`
	// MissingSecrets are the pull secrets that cannot be used, separated by commas; only when the pull begins.
	MissingSecrets string `json:"-"`
}

func (a PullImage) issued(f *Facts, at Instant) {
	c := f.own(a.Container)
	next := Pull{For: a.For, Requested: at, Next: a.Level, Failed: c.Pull.Failed, Level: c.Pull.Level}
	if c.Pull.For == a.For {
		next.Reason, next.Message = c.Pull.Reason, c.Pull.Message
	}
	c.Pull = next
}

func (a PullImage) failed(f *Facts, why Failure, at Instant) {
	f.updatePull(a.Container, a.For, func(p *Pull) {
		switch {
		case !p.Cancelled.IsZero(): // cancelled, not failed
			p.For, p.Requested = 0, Instant{}
			return
		case why.Kind == FailureUnavailable:
			p.Retry = at
			return
		}
		p.Failed, p.Level, p.Reason, p.Message = at, p.Next, cmp.Or(why.Reason, ReasonErrImagePull), why.Message
	})
	if c := f.Container(a.Container); !c.Newest.ran() && c.Pull.Failed == at && c.Pull.Level >= maxEphemeralPulls {
		f.removeEphemeral(a.Container)
	}
}

// FindImage checks whether the image of a container has become available locally while the next pull is backing off. It does not
// contact a registry. It ends in [ImagePulled], or fails if the image is not present or its pull policy requires a pull.
type FindImage struct {
	Container string
	For       int   // number of the attempt that needs the image
	Image     Image // as in [PullImage]
}

func (a FindImage) issued(f *Facts, at Instant) {
	c := f.own(a.Container)
	if c.Pull.For != a.For {
		c.Pull = Pull{For: a.For, Failed: c.Pull.Failed, Level: c.Pull.Level}
	}
	c.Pull.Checked = at
}

func (FindImage) failed(*Facts, Failure, Instant) {}

// CancelPull cancels a running [PullImage]. Its only outcome is that of the pull.
type CancelPull struct {
	Container string
	For       int
}

func (a CancelPull) issued(f *Facts, at Instant) {
	f.updatePull(a.Container, a.For, func(p *Pull) {
		p.Cancelled = at
	})
}

func (CancelPull) failed(*Facts, Failure, Instant) {}

// StartContainer creates and starts one run of a container.
type StartContainer struct {
	Ref
	Sandbox  int
	Restarts int    // restartCount of this run
	Backoff  int    // back-off level after this start; 0 leaves the level unchanged
	ImageID  string // [Image.ID] of the image to run; empty: the one that the name refers to
}

func (a StartContainer) issued(f *Facts, at Instant) {
	c := f.own(a.Container)
	if c.Newest.Ref == a.Ref { // retried because the engine was unavailable
		c.Newest.Retry = Instant{}
		return
	}
	if c.Newest.ran() {
		c.Previous = c.Newest
	}
	if a.Backoff > 0 {
		c.Backoff = Backoff{Level: a.Backoff, Granted: at}
	}
	if a.ImageID != c.Image.ID { // found in the engine, not in the facts
		c.Image = Image{ID: a.ImageID}
	}
	if !f.removed(a.Container) { // the runs of an earlier definition have stopped
		f.dropOutgoing(a.Container)
	}
	next := Attempt{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts, Requested: at}
	if !c.Newest.CreateFailed.IsZero() && c.Newest.Round == a.Round { // a retry keeps the reason of the failure
		next.Exit = c.Newest.Exit
	}
	c.Newest = next
}

func (a StartContainer) failed(f *Facts, why Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		switch {
		case !r.live() || !r.Started.IsZero():
		case why.Kind == FailureUnavailable:
			r.Retry = at
		case why.Kind == FailureNotCreated:
			r.CreateFailed, r.Exit = at, Exit{Reason: cmp.Or(why.Reason, ReasonCreateContainerError), Message: why.Message}
		default:
			r.Exited, r.Exit = at, Exit{Code: 128, Reason: ReasonStartError, Message: why.Message}
			r.ID, r.Image, r.ImageID, r.Architecture = why.Run.ID, why.Run.Image, why.Run.ImageID, why.Run.Architecture
		}
	})
}

// StopContainer sends the stop signal to a running container: lifecycle.stopSignal, else the image's stop signal, else SIGTERM.
type StopContainer struct {
	Ref
	Grace  time.Duration // from the stop signal to SIGKILL
	Reason Reason
}

func (a StopContainer) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		if r.StopRequested.IsZero() {
			r.StopRequested, r.StopGrace = at, a.Grace
			r.setStopReason(a.Reason)
		}
		r.SignalFailed = Instant{}
	})
}

func (a StopContainer) failed(f *Facts, why Failure, at Instant) { signalFailed(f, a.Ref, why, at) }

// KillContainer sends SIGKILL to all processes of a container.
type KillContainer struct{ Ref }

func (a KillContainer) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		r.KillRequested, r.SignalFailed = at, Instant{}
	})
}

func (a KillContainer) failed(f *Facts, why Failure, at Instant) { signalFailed(f, a.Ref, why, at) }

// signalFailed folds in that a signal could not be sent. If the process does not exist, the run has terminated.
func signalFailed(f *Facts, ref Ref, why Failure, at Instant) {
	f.update(ref, func(r *Attempt) {
		switch {
		case !r.live():
		case why.Kind == FailureNotFound:
			r.Exited, r.Exit = at, Exit{Code: 137, Reason: ReasonStatusUnknown, Message: why.Message}
		default:
			r.SignalFailed = at
		}
	})
}

// RemoveContainer removes a terminated run: its record, its writable layer and its log.
type RemoveContainer struct{ Ref }

func (a RemoveContainer) issued(f *Facts, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		r.Removal = Removal{Requested: at}
	})
}

func (a RemoveContainer) failed(f *Facts, _ Failure, at Instant) {
	f.update(a.Ref, func(r *Attempt) {
		r.Removal.fail(at)
	})
}

// RemovePod removes everything that is left of a terminated pod: containers, pod-local volumes, logs.
type RemovePod struct{}

func (RemovePod) issued(f *Facts, at Instant) { f.Removal = Removal{Requested: at} }

func (RemovePod) failed(f *Facts, _ Failure, at Instant) { f.Removal.fail(at) }
