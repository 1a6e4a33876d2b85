package lifecycle

import (
	"maps"
	"time"
)

// Event is something that happened to a pod. It names its object and the instant at which it was observed.
type Event interface {
	// apply folds the event into f, which the caller owns.
	apply(f *Facts)
}

// Apply folds one event into the facts and returns the result. The receiver is not changed. An event about an object that is no
// longer current changes nothing.
func (f Facts) Apply(e Event) Facts {
	f.ownAll()
	e.apply(&f)
	return f
}

// Fold is [Facts.Apply] in place, for a caller that is the only one to use the facts.
func (f *Facts) Fold(e Event) {
	if f.Containers == nil {
		f.Containers = map[string]*Container{}
	}
	e.apply(f)
}

// Issued reports that an action was issued, so it may have been carried out.
type Issued struct {
	Action Action
	At     Instant
}

func (e Issued) apply(f *Facts) { e.Action.issued(f, e.At) }

// ActionFailed is the outcome of an action that failed.
type ActionFailed struct {
	Action  Action
	Failure Failure
	At      Instant
}

func (e ActionFailed) apply(f *Facts) { e.Action.failed(f, e.Failure, e.At) }

// SandboxStarted is the outcome of [StartSandbox]: the network, IPC and UTS namespaces exist, and containers can be started.
type SandboxStarted struct {
	Sandbox int
	IPs     []string // empty for a pod without a pod network
	At      Instant
}

func (e SandboxStarted) apply(f *Facts) {
	if f.Sandbox.N == e.Sandbox && f.Sandbox.inFlight() {
		f.Sandbox.Ready, f.Sandbox.IPs = e.At, e.IPs
		f.Sandbox.Failures, f.Sandbox.Reason, f.Sandbox.Message = 0, "", ""
	}
}

// SandboxLost reports that a sandbox no longer exists although it was not removed.
type SandboxLost struct {
	Sandbox int
	Message string
	At      Instant
}

func (e SandboxLost) apply(f *Facts) {
	if f.Sandbox.N == e.Sandbox && f.Sandbox.mayExist() && f.Sandbox.Lost.IsZero() {
		f.Sandbox.Lost, f.Sandbox.Message = e.At, e.Message
	}
}

// SandboxRemoved is the outcome of [RemoveSandbox].
type SandboxRemoved struct {
	Sandbox int
	At      Instant
}

func (e SandboxRemoved) apply(f *Facts) {
	if f.Sandbox.N == e.Sandbox {
		set(&f.Sandbox.Removal.Done, e.At)
	}
}

// ImagePulled is the outcome of [PullImage] or [FindImage]: the image is present and unpacked.
type ImagePulled struct {
	Container string
	For       int // number of the attempt that needs the image
	Image     Image
	Pulled    bool          // false: the image was present already
	Shadows   []Shadow      // of the image and of those that the container mounts; none if Image is that of the previous run
	Took      time.Duration // duration of the pull or the check
	At        Instant
}

func (e ImagePulled) apply(f *Facts) {
	if c := f.Containers[e.Container]; c != nil && c.Pull.For == e.For && c.Pull.Done.IsZero() {
		c.Pull.Done, c.Pull.Reason, c.Pull.Message = e.At, "", ""
		c.Image = e.Image
	}
}

// Shadow is an image from an archive of the pod. The host has a different image of the same name, which pods use that do not list the
// archive.
type Shadow struct {
	Image   string // as in the pod file
	Archive string // path
}

// ContainerStarted is the outcome of [StartContainer]: the process is running, or has run and exited.
type ContainerStarted struct {
	Ref
	ID      string `json:"id,omitempty"`      // the engine's ID
	Image   string `json:"image,omitempty"`   // the image name that the engine resolved
	ImageID string `json:"imageID,omitempty"` // the image digest
	// Architecture is that of the image, such as amd64. It is empty if unknown.
	Architecture string  `json:"architecture,omitempty"`
	At           Instant `json:"at"`
}

func (e ContainerStarted) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		if !a.live() || !a.Started.IsZero() {
			return
		}
		a.Started, a.ID, a.Image, a.ImageID, a.Architecture = e.At, e.ID, e.Image, e.ImageID, e.Architecture
		a.Exit = Exit{} // the reason of an earlier failure to create
	})
}

// ContainerExited reports that the process of a run exited. With the reasons ContainerStatusUnknown and Unknown it reports that
// the process no longer exists and its exit code is unknown. It may arrive before the start is observed; the start time is then
// corrected to the exit time.
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

// SignalSent is the outcome of [StopContainer] or, if Kill is set, of [KillContainer]. A run of which it was not known whether it was
// started counts as started then, so that its exit is awaited: see [Facts.Live].
type SignalSent struct {
	Ref
	Kill bool    `json:"kill,omitempty"`
	At   Instant `json:"at"`
}

func (e SignalSent) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		if e.Kill {
			set(&a.KillSent, e.At)
			if a.live() && a.Started.IsZero() && !a.Retry.IsZero() {
				a.Started = e.At
			}
		} else {
			set(&a.StopSent, e.At)
		}
	})
}

// ContainerRemoved is the outcome of [RemoveContainer].
type ContainerRemoved struct {
	Ref
	At Instant
}

func (e ContainerRemoved) apply(f *Facts) {
	f.update(e.Ref, func(a *Attempt) {
		set(&a.Removal.Done, e.At)
	})
}

// PodRemoved is the outcome of [RemovePod]: everything of the pod is removed.
type PodRemoved struct{ At Instant }

func (e PodRemoved) apply(f *Facts) { set(&f.Removal.Done, e.At) }

// ConditionSet reports that a client set a condition that Podstead does not compute, such as one that a readiness gate refers to
// (v1.PodReadinessGate). It is ignored if the pod has 64 such conditions already.
type ConditionSet struct {
	Type    ConditionType
	Status  string // "True", "False" or "Unknown"
	Reason  Reason
	Message string
	At      Instant
}

func (e ConditionSet) apply(f *Facts) {
	if _, known := f.Conditions[e.Type]; !known && len(f.Conditions) >= maxConditions {
		return
	}
	conditions := maps.Clone(f.Conditions)
	if conditions == nil {
		conditions = map[ConditionType]SetCondition{}
	}
	at := e.At
	if before := conditions[e.Type]; before.Status == e.Status {
		at = before.At
	}
	conditions[e.Type] = SetCondition{Status: e.Status, Reason: e.Reason, Message: e.Message, At: at}
	f.Conditions = conditions
}
