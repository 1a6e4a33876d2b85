package lifecycle

import (
	"maps"
	"time"

	"github.com/podstead/podstead/spec"
)

// Facts is what is known of one pod. The zero value, with a UID and the instant of acceptance, is a pod that was never
// touched. A Facts value is immutable: [Facts.Apply] returns another one, so a snapshot may be read by anyone. Its size
// is bounded by the number of containers, not by how often they ran.
type Facts struct {
	UID         string               `json:"uid"`
	Accepted    Instant              `json:"accepted,omitzero"` // status.startTime
	Round       int                  `json:"round"`
	Sandbox     Sandbox              `json:"sandbox,omitzero"`
	Stop        Stop                 `json:"stop,omitzero"`
	Containers  map[string]Container `json:"containers,omitempty"` // by name
	Removal     Removal              `json:"removal,omitzero"`     // of the whole pod, after it was deleted
	Restarted   int                  `json:"restarted,omitempty"`  // the newest round that was opened in place; 0: none
	RestartedAt Instant              `json:"restartedAt,omitzero"` // when that round was opened
	Ephemeral   []spec.Container     `json:"ephemeral,omitempty"`  // in the order in which they were added
	Away        Instant              `json:"away,omitzero"`        // since when the engine cannot be reached

	Conditions map[ConditionType]SetCondition `json:"conditions,omitempty"` // that others have set
}

// Stop is the wish that the pod ends, of a person, a client or the supervisor.
type Stop struct {
	Asked    Instant `json:"asked,omitzero"`
	Deadline Instant `json:"deadline,omitzero"` // end of the grace period; later wishes only shorten it

	Grace   time.Duration `json:"grace,omitempty"`  // the period that ends at the deadline, as it was asked for
	Force   bool          `json:"force,omitempty"`  // no grace at all, below the floor of 2 s too
	Delete  bool          `json:"delete,omitempty"` // nothing of the pod is to be left
	By      string        `json:"by,omitempty"`     // who asked, in the words of the event
	Wanted  bool          `json:"wanted,omitempty"` // somebody asked, and not only a limit of the pod
	Reason  Reason        `json:"reason,omitempty"` // why the pod has failed by it; empty: what its containers say decides
	Message string        `json:"message,omitempty"`
}

// Sandbox is the newest attempt at the pod's sandbox.
type Sandbox struct {
	N           int      `json:"n"`
	Asked       Instant  `json:"asked,omitzero"`
	Ready       Instant  `json:"ready,omitzero"`
	Lost        Instant  `json:"lost,omitzero"`
	Failed      Instant  `json:"failed,omitzero"`
	Unavailable bool     `json:"unavailable,omitempty"` // the failure was the engine's absence: it may be there
	Failures    int      `json:"failures,omitempty"`    // in a row and for the same reason, as the backoff counts them; 0 once it is ready
	Reason      Reason   `json:"reason,omitempty"`      // of these failures
	Message     string   `json:"message,omitempty"`     // why it failed or was lost
	IPs         []string `json:"ips,omitempty"`
	Removal     Removal  `json:"removal,omitzero"`
}

// Container is what is known of one container: its newest two attempts, and the rest of its history folded.
type Container struct {
	Newest   Attempt `json:"newest,omitzero"`
	Previous Attempt `json:"previous,omitzero"` // the run before the newest: status.lastState
	Pull     Pull    `json:"pull,omitzero"`
	Backoff  Backoff `json:"backoff,omitzero"`
}

// Backoff is how far the restart delay has grown, and when it last let a restart through.
type Backoff struct {
	Level   int     `json:"level"` // 0: no restart was granted yet
	Granted Instant `json:"granted,omitzero"`
}

// Ref names one run of one container within its pod.
type Ref struct {
	Container string `json:"container"`
	Round     int    `json:"round"`
	Attempt   int    `json:"attempt"` // from 1, over the life of the pod
}

// Attempt is one run of one container. Every field is set by one event and never cleared by a later run.
type Attempt struct {
	Ref
	Sandbox  int     `json:"sandbox"`
	Restarts int     `json:"restarts"` // the restartCount that this run carries
	Asked    Instant `json:"asked,omitzero"`
	Retry    Instant `json:"retry,omitzero"` // when an engine that was away is to be asked again
	Started  Instant `json:"started,omitzero"`
	Refused  Instant `json:"refused,omitzero"` // it could not be created: there is no record of it, and it counts as no run
	Image    string  `json:"image,omitempty"`
	ImageID  string  `json:"imageID,omitempty"`
	// Architecture is that of the image; empty: not known.
	Architecture string `json:"imageArchitecture,omitempty"`
	ID           string `json:"id,omitempty"` // the engine's ID

	PostStart Hook   `json:"postStart,omitzero"`
	Probes    Probes `json:"probes,omitzero"`
	PreStop   Hook   `json:"preStop,omitzero"`

	EndAsked Instant       `json:"endAsked,omitzero"`  // when its end began before its stop signal: with a hook, or by waiting for it
	EndGrace time.Duration `json:"endGrace,omitempty"` // what it had from then on

	StopAsked  Instant       `json:"stopAsked,omitzero"`
	StopGrace  time.Duration `json:"stopGrace,omitempty"`
	StopReason Reason        `json:"stopReason,omitempty"`
	StopSent   Instant       `json:"stopSent,omitzero"`
	KillAsked  Instant       `json:"killAsked,omitzero"`
	KillSent   Instant       `json:"killSent,omitzero"`
	Unsent     Instant       `json:"unsent,omitzero"` // when the newest signal could not be sent

	Exited  Instant `json:"exited,omitzero"`
	Exit    Exit    `json:"exit,omitzero"`    // until the start: why it was refused, or the one before it was
	Removal Removal `json:"removal,omitzero"` // of the dead container's record
}

// Exit is how a run ended. Code is the process's own, 128 plus the signal's number, or one of those that the kubelet
// uses where there was none: 128 with StartError, 137 with ContainerStatusUnknown, 255 with Unknown.
type Exit struct {
	Code    int    `json:"code"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// MemoryPeak is the most memory that the container has used, in bytes; 0: not known.
	MemoryPeak int64 `json:"memoryPeakBytes,omitempty"`
}

// Removal is the taking away of something that has ended.
type Removal struct {
	Asked  Instant `json:"asked,omitzero"`
	Failed Instant `json:"failed,omitzero"` // asked, and failed: to be tried again
	Done   Instant `json:"done,omitzero"`
}

// Pull is the newest look for a container's image: a pull where the policy wants one, else the check that it is here.
type Pull struct {
	For       int     `json:"for"` // the attempt that it is made for
	Asked     Instant `json:"asked,omitzero"`
	Cancelled Instant `json:"cancelled,omitzero"`
	Done      Instant `json:"done,omitzero"`
	Failed    Instant `json:"failed,omitzero"`  // of the newest failure, which may be of an earlier pull
	Looked    Instant `json:"looked,omitzero"`  // when it was last looked for since then
	Retry     Instant `json:"retry,omitzero"`   // when an engine that was away is to be asked again
	Level     int     `json:"level"`            // failures in a row, as the backoff counts them
	Next      int     `json:"next"`             // the level that a failure of the running pull leads to
	Reason    Reason  `json:"reason,omitempty"` // why a pull for this attempt failed; empty if none has
	Message   string  `json:"message,omitempty"`
}

// Apply folds one event into the facts and returns the result; the receiver is left as it was. An event that speaks of
// what is no longer current changes nothing.
func (f Facts) Apply(e Event) Facts {
	f.Containers = maps.Clone(f.Containers)
	if f.Containers == nil {
		f.Containers = map[string]Container{}
	}
	e.apply(&f)
	return f
}

// update folds into the attempt that ref names, if it is one of the two that are kept.
func (f *Facts) update(ref Ref, fold func(*Attempt)) {
	c, known := f.Containers[ref.Container]
	switch {
	case known && ref == c.Newest.Ref:
		fold(&c.Newest)
	case known && ref == c.Previous.Ref:
		fold(&c.Previous)
	default:
		return
	}
	f.Containers[ref.Container] = c
}

// updatePull folds into the pull for the given attempt of a container, if it is still the newest.
func (f *Facts) updatePull(container string, attempt int, fold func(*Pull)) {
	c, known := f.Containers[container]
	if !known || c.Pull.For != attempt || !c.Pull.inFlight() {
		return
	}
	fold(&c.Pull)
	f.Containers[container] = c
}

// set stores the instant if none is stored: the first word counts.
func set(field *Instant, at Instant) {
	if field.IsZero() {
		*field = at
	}
}

// live reports whether a process of this run may exist: it was asked for, and is not known to have ended.
func (a *Attempt) live() bool { return a.N() > 0 && a.Exited.IsZero() && a.Refused.IsZero() }

// anyLive reports whether a process of any container may exist.
func (f *Facts) anyLive() bool {
	for _, c := range f.Containers {
		if c.Newest.live() {
			return true
		}
	}
	return false
}

// N returns the attempt's number; 0 means that the container has not been asked for yet.
func (a *Attempt) N() int { return a.Attempt }

// over reports whether the run has left a record and ended.
func (a *Attempt) over() bool { return !a.Exited.IsZero() }

// running reports whether the process runs, as far as is known.
func (a *Attempt) running() bool { return !a.Started.IsZero() && a.live() }

// ran reports whether the run left a record with the engine, so that it counts as one.
func (a *Attempt) ran() bool { return !a.Started.IsZero() || a.over() }

// inFlight reports whether the sandbox's start has no outcome yet.
func (s *Sandbox) inFlight() bool {
	return s.N > 0 && s.Ready.IsZero() && s.Failed.IsZero() && s.Lost.IsZero() && s.Removal.Done.IsZero()
}

// ready reports whether containers can be started in the sandbox.
func (s *Sandbox) ready() bool {
	return !s.Ready.IsZero() && s.Lost.IsZero() && s.Removal.Asked.IsZero()
}

// standing reports whether there may be something of the sandbox to take away. A start that failed has cleaned up, but
// not if the engine was away.
func (s *Sandbox) standing() bool {
	return s.N > 0 && (s.Failed.IsZero() || s.Unavailable) && s.Removal.Done.IsZero()
}

// inFlight reports whether the pull has no outcome yet.
func (p *Pull) inFlight() bool {
	return !p.Asked.IsZero() && p.Done.IsZero() && p.Retry.IsZero() && (p.Failed.IsZero() || p.Failed.Before(p.Asked))
}
