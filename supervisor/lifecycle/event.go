package lifecycle

import "time"

// Event is something that has happened to a pod. Each names what it speaks of, and the instant at which it was seen.
type Event interface {
	// apply folds the event into facts that the caller owns.
	apply(f *Facts)
}

// Issued says that an action was handed out: it may have happened.
type Issued struct {
	Action Action
	At     Instant
}

func (e Issued) apply(f *Facts) { e.Action.issued(f, e.At) }

// ActionFailed ends an action that did not succeed.
type ActionFailed struct {
	Action  Action
	Failure Failure
	At      Instant
}

func (e ActionFailed) apply(f *Facts) { e.Action.failed(f, e.Failure, e.At) }

// SandboxStarted ends a [StartSandbox]: network, IPC and UTS namespaces are there, and containers can be started.
type SandboxStarted struct {
	Sandbox int
	IPs     []string // none for a pod without a network of its own
	At      Instant
}

func (e SandboxStarted) apply(f *Facts) {
	if f.Sandbox.N == e.Sandbox && f.Sandbox.inFlight() {
		f.Sandbox.Ready, f.Sandbox.IPs = e.At, e.IPs
		f.Sandbox.Failures, f.Sandbox.Reason, f.Sandbox.Message = 0, "", ""
	}
}

// SandboxLost says that a sandbox is gone that nobody took away.
type SandboxLost struct {
	Sandbox int
	Message string
	At      Instant
}

func (e SandboxLost) apply(f *Facts) {
	if f.Sandbox.N == e.Sandbox && f.Sandbox.standing() && f.Sandbox.Lost.IsZero() {
		f.Sandbox.Lost, f.Sandbox.Message = e.At, e.Message
	}
}

// SandboxRemoved ends a [RemoveSandbox].
type SandboxRemoved struct {
	Sandbox int
	At      Instant
}

func (e SandboxRemoved) apply(f *Facts) {
	if f.Sandbox.N == e.Sandbox {
		set(&f.Sandbox.Removal.Done, e.At)
	}
}

// ImagePulled ends a [PullImage] or a [FindImage]: the image is here, unpacked.
type ImagePulled struct {
	Container string
	For       int           // the attempt that it was made for
	Pulled    bool          // false: it was present already
	Took      time.Duration // to fetch it, or to find it
	At        Instant
}

func (e ImagePulled) apply(f *Facts) {
	c, known := f.Containers[e.Container]
	if p := &c.Pull; known && p.For == e.For && p.Done.IsZero() {
		p.Done, p.Reason, p.Message = e.At, "", ""
		f.Containers[e.Container] = c
	}
}

// ContainerStarted ends a [StartContainer]: the process runs, or has run.
type ContainerStarted struct {
	Ref
	ID      string // the engine's
	Image   string // the name that the engine resolved
	ImageID string // its digest
	// Architecture is that of the image, such as amd64; empty: not known.
	Architecture string
	At           Instant
}

func (e ContainerStarted) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		if !a.live() || !a.Started.IsZero() {
			return
		}
		a.Started, a.ID, a.Image, a.ImageID, a.Architecture = e.At, e.ID, e.Image, e.ImageID, e.Architecture
		a.Exit = Exit{} // why it was refused before
	})
}

// ContainerExited says that the process of a run has ended, or, with the reasons ContainerStatusUnknown and Unknown,
// that it is gone and nobody knows how. A run started no later than it ended, though it was seen to later.
type ContainerExited struct {
	Ref
	Exit Exit
	At   Instant
}

func (e ContainerExited) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		if a.live() {
			a.Exited, a.Exit = e.At, e.Exit
			if !a.Started.IsZero() && e.At.Before(a.Started) {
				a.Started = e.At
			}
		}
	})
}

// SignalSent ends a [StopContainer] or, with Kill set, a [KillContainer].
type SignalSent struct {
	Ref
	Kill bool    `json:"kill,omitempty"`
	At   Instant `json:"at"`
}

func (e SignalSent) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		if e.Kill {
			set(&a.KillSent, e.At)
		} else {
			set(&a.StopSent, e.At)
		}
	})
}

// ContainerRemoved ends a [RemoveContainer].
type ContainerRemoved struct {
	Ref
	At Instant
}

func (e ContainerRemoved) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) { set(&a.Removal.Done, e.At) })
}

// PodRemoved ends a [RemovePod]: nothing of the pod is left.
type PodRemoved struct{ At Instant }

func (e PodRemoved) apply(f *Facts) { set(&f.Removal.Done, e.At) }

// StopRequested asks the pod to end. Grace is the effective grace period ([EffectiveGrace]); a later request can
// shorten what is left of it, never lengthen it.
type StopRequested struct {
	Grace  Grace
	Delete bool
	By     string
	At     Instant
}

func (e StopRequested) apply(f *Facts) {
	f.Stop.within(e.Grace.Period, e.By, e.At)
	f.Stop.Wanted = true
	f.Stop.Force = f.Stop.Force || e.Grace.Force
	f.Stop.Delete = f.Stop.Delete || e.Delete
}

// PodEvicted says that the pod has used more than it may, and is to end as failed (the kubelet's local eviction).
type PodEvicted struct {
	Message string // what it has used, and of how much
	At      Instant
}

func (e PodEvicted) apply(f *Facts) {
	if f.Stop.Asked.IsZero() {
		f.Stop.Reason, f.Stop.Message = ReasonEvicted, e.Message
	}
	f.Stop.within(evictionGrace, "the supervisor", e.At)
}

// within ends the pod within a period. What is left of an earlier one is shortened, never lengthened.
func (s *Stop) within(period time.Duration, by string, at Instant) {
	if s.Asked.IsZero() {
		s.Asked, s.By = at, by
	}
	if end := at.Add(period); s.Deadline.IsZero() || end.Before(s.Deadline) {
		s.Deadline, s.Grace = end, period
	}
}

// Booted says that the machine has been started anew since the facts were saved: sandboxes and processes are gone.
// Every instant is moved into the present boot as if the machine had not been off, so that a backoff waits for the rest
// of its delay; but the pod has grown older by what the wall clock says, the only one that went on. That the machine ended what ran
// is no crash, and delays no restart. Saved is the last instant of the earlier boot that is known.
type Booted struct {
	Saved Instant
	At    Instant
}

func (e Booted) apply(f *Facts) {
	f.rebase(func(t *Instant) {
		if !t.IsZero() {
			since := min(t.Mono-e.Saved.Mono, 0)
			*t = Instant{Boot: e.At.Boot, Mono: e.At.Mono + since, Wall: t.Wall}
		}
	})
	if !f.Accepted.IsZero() {
		f.Accepted.Mono -= max(e.At.Wall.Sub(e.Saved.Wall), 0)
	}
	for name, c := range f.Containers {
		if c.Newest.live() {
			c.Backoff = Backoff{}
			c.Newest.Exited, c.Newest.Exit = e.At, Exit{Code: 255, Reason: ReasonUnknown, Message: "the machine was restarted"}
		}
		if c.Pull.inFlight() {
			c.Pull.Asked = Instant{}
		}
		f.Containers[name] = c
	}
	if f.Sandbox.standing() {
		set(&f.Sandbox.Lost, e.At)
		f.Sandbox.Message = "the machine was restarted"
	}
}

// rebase moves every instant of the facts.
func (f *Facts) rebase(move func(*Instant)) {
	removal := func(r *Removal) { move(&r.Asked); move(&r.Failed); move(&r.Done) }
	attempt := func(a *Attempt) {
		for _, t := range []*Instant{
			&a.Asked, &a.Retry, &a.Started, &a.Refused, &a.EndAsked, &a.StopAsked, &a.StopSent, &a.KillAsked, &a.KillSent, &a.Unsent,
			&a.Exited,
		} {
			move(t)
		}
		for _, h := range []*Hook{&a.PostStart, &a.PreStop} {
			for _, t := range []*Instant{&h.Asked, &h.Retry, &h.Cancelled, &h.Done} {
				move(t)
			}
		}
		for _, p := range []*Probed{&a.Probes.Startup, &a.Probes.Liveness, &a.Probes.Readiness} {
			move(&p.At)
		}
		removal(&a.Removal)
	}
	for _, t := range []*Instant{
		&f.Accepted, &f.Stop.Asked, &f.Stop.Deadline,
		&f.Sandbox.Asked, &f.Sandbox.Ready, &f.Sandbox.Lost, &f.Sandbox.Failed, &f.RestartedAt, &f.Away,
	} {
		move(t)
	}
	removal(&f.Sandbox.Removal)
	removal(&f.Removal)
	for name, c := range f.Containers {
		attempt(&c.Newest)
		attempt(&c.Previous)
		for _, t := range []*Instant{
			&c.Pull.Asked, &c.Pull.Cancelled, &c.Pull.Done, &c.Pull.Failed, &c.Pull.Looked, &c.Pull.Retry, &c.Backoff.Granted,
		} {
			move(t)
		}
		f.Containers[name] = c
	}
}
