package lifecycle

import (
	"maps"
	"time"

	"github.com/podstead/podstead/spec"
)

// Facts is what is known about one pod. The zero value with a UID and the instant of acceptance is a pod for which nothing has
// been done yet. A Facts value is immutable: [Facts.Apply] returns a new one, so a snapshot is safe for concurrent use. Its size
// is bounded by the number of containers, not by the number of their restarts.
type Facts struct {
	UID               string               `json:"uid"`
	Accepted          Instant              `json:"accepted,omitzero"` // status.startTime
	Round             int                  `json:"round"`
	Sandbox           Sandbox              `json:"sandbox,omitzero"`
	Stop              Stop                 `json:"stop,omitzero"`
	Containers        map[string]Container `json:"containers,omitempty"`       // by name
	Removal           Removal              `json:"removal,omitzero"`           // of the whole pod, after it was deleted
	Restarted         int                  `json:"restarted,omitempty"`        // the newest round that restarted all containers; 0: none
	RestartedAt       Instant              `json:"restartedAt,omitzero"`       // when that round was opened
	Ephemeral         []spec.Container     `json:"ephemeral,omitempty"`        // in the order in which they were added
	EngineUnavailable Instant              `json:"engineUnavailable,omitzero"` // since when the engine is unavailable
	Restart           Restart              `json:"restart,omitzero"`           // of the pod, while everything is being stopped for it
	Again             int                  `json:"again,omitempty"`            // the newest round that a [Restart] opened; 0: none
	AgainAt           Instant              `json:"againAt,omitzero"`           // when that round was opened
	Outgoing          []Outgoing           `json:"outgoing,omitempty"`         // containers with a run of an earlier definition
	Forgotten         int                  `json:"forgotten,omitempty"`        // the highest attempt number of a container that was removed
	Wait              Wait                 `json:"wait,omitzero"`              // for the conditions that must be met before the pod starts
	Collection        Collection           `json:"collection,omitzero"`        // of what is left, after the pod has finished
	Escalation        Escalation           `json:"escalation,omitzero"`        // while the pod stays unready
	Trial             Trial                `json:"trial,omitzero"`             // of the newest request

	Conditions map[ConditionType]SetCondition `json:"conditions,omitempty"` // set by clients
	Changes    int                            `json:"changes,omitempty"`    // of the definition, apart from labels and annotations
}

// Stop is a request to stop the pod, from a user, a client or the supervisor.
type Stop struct {
	Requested Instant `json:"requested,omitzero"`
	Deadline  Instant `json:"deadline,omitzero"` // end of the grace period; later requests can only shorten it

	Grace   time.Duration `json:"grace,omitempty"`  // the requested period that ends at the deadline
	Force   bool          `json:"force,omitempty"`  // no grace period, not even [minimumGrace]
	Delete  bool          `json:"delete,omitempty"` // remove everything of the pod
	By      string        `json:"by,omitempty"`     // who requested it, as shown in the event
	ByUser  bool          `json:"byUser,omitempty"` // requested by a user or a client, not only by a limit of the pod
	Reason  Reason        `json:"reason,omitempty"` // why the pod failed; empty: the exit codes of its containers decide
	Message string        `json:"message,omitempty"`
}

// Sandbox is the newest attempt to run the pod's sandbox.
type Sandbox struct {
	N           int      `json:"n" format:"key"`
	Requested   Instant  `json:"requested,omitzero"`
	Ready       Instant  `json:"ready,omitzero"`
	Lost        Instant  `json:"lost,omitzero"`
	Failed      Instant  `json:"failed,omitzero"`
	Unavailable bool     `json:"unavailable,omitempty"` // it failed because the engine was unavailable; the sandbox may exist
	Failures    int      `json:"failures,omitempty"`    // consecutive, with the same reason, up to the back-off limit; 0 once ready
	Reason      Reason   `json:"reason,omitempty"`      // of these failures
	Message     string   `json:"message,omitempty"`     // why it failed or was lost
	IPs         []string `json:"ips,omitempty"`
	Removal     Removal  `json:"removal,omitzero"`
}

// Container is what is known about one container: its newest two attempts, and a summary of the earlier ones.
type Container struct {
	Newest   Attempt `json:"newest,omitzero"`
	Previous Attempt `json:"previous,omitzero"` // the run before the newest: status.lastState
	Pull     Pull    `json:"pull,omitzero"`
	Backoff  Backoff `json:"backoff,omitzero"`
	Image    Image   `json:"image,omitzero"` // of the newest run, and of the next one unless a pull changes it

	Replaced Replacement `json:"replaced,omitzero"` // a request to replace a run
}

// Image identifies the image that a container runs. A restart uses it again, so that neither a new archive nor a new meaning of
// the image's name changes a running pod.
type Image struct {
	ID      string `json:"id"`                // digest of the image's configuration: status.imageID
	Archive bool   `json:"archive,omitempty"` // the image was imported from an archive
}

// Backoff is the level of the restart back-off, and when a restart was last granted.
type Backoff struct {
	Level   int     `json:"level"` // 0: no restart was granted yet
	Granted Instant `json:"granted,omitzero"`
}

// Ref identifies one run of one container within its pod.
type Ref struct {
	Container string `json:"container" format:"key"`
	Round     int    `json:"round" format:"key"`
	Attempt   int    `json:"attempt" format:"key"` // from 1, unique over the life of the pod
}

// Attempt is one run of one container. Every field is set by one event and never cleared by a later run.
type Attempt struct {
	Ref
	Sandbox      int     `json:"sandbox"`
	Restarts     int     `json:"restarts"` // restartCount of this run
	Requested    Instant `json:"requested,omitzero"`
	Retry        Instant `json:"retry,omitzero"` // since when a retry is pending because the engine was unavailable
	Started      Instant `json:"started,omitzero"`
	CreateFailed Instant `json:"createFailed,omitzero"` // creation failed: the engine has no record of it, and it does not count as a run
	Image        string  `json:"image,omitempty"`
	ImageID      string  `json:"imageID,omitempty"`
	Architecture string  `json:"imageArchitecture,omitempty"` // of the image, such as amd64; empty if unknown
	ID           string  `json:"id,omitempty"`                // the engine's ID

	PostStart Hook   `json:"postStart,omitzero"`
	Probes    Probes `json:"probes,omitzero"`
	PreStop   Hook   `json:"preStop,omitzero"`

	TerminationRequested Instant       `json:"terminationRequested,omitzero"` // with a preStop hook, or while waiting for other containers
	TerminationGrace     time.Duration `json:"terminationGrace,omitempty"`    // the grace period from then on

	StopRequested Instant       `json:"stopRequested,omitzero"`
	StopGrace     time.Duration `json:"stopGrace,omitempty"`
	StopReason    Reason        `json:"stopReason,omitempty"`
	StopSent      Instant       `json:"stopSent,omitzero"`
	KillRequested Instant       `json:"killRequested,omitzero"`
	KillSent      Instant       `json:"killSent,omitzero"`
	SignalFailed  Instant       `json:"signalFailed,omitzero"` // when the newest signal could not be sent

	Exited  Instant `json:"exited,omitzero"`
	Exit    Exit    `json:"exit,omitzero"`    // before the start: why creation failed, also of the previous attempt
	Removal Removal `json:"removal,omitzero"` // of the record of the terminated run
}

// Exit is the result of a run. Code is the exit code of the process, 128 plus the signal number, or a code that the kubelet uses
// if there is none: 128 with StartError, 137 with ContainerStatusUnknown, 255 with Unknown.
type Exit struct {
	Code    int    `json:"code"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// MemoryPeak is the peak memory usage of an OOM-killed run in bytes, 0 if unknown.
	MemoryPeak int64 `json:"memoryPeakBytes,omitempty"`
}

// Removal is the removal of a terminated object.
type Removal struct {
	Requested Instant `json:"requested,omitzero"`
	Failed    Instant `json:"failed,omitzero"` // requested and failed, to be retried
	Done      Instant `json:"done,omitzero"`
}

// Pull is the newest pull of a container's image, or the check that the image is present if the pull policy allows that.
type Pull struct {
	For       int     `json:"for"` // number of the attempt that needs the image
	Requested Instant `json:"requested,omitzero"`
	Cancelled Instant `json:"cancelled,omitzero"`
	Done      Instant `json:"done,omitzero"`
	Failed    Instant `json:"failed,omitzero"`  // the newest failure, possibly of an earlier pull
	Checked   Instant `json:"checked,omitzero"` // when the image was last looked up locally since then
	Retry     Instant `json:"retry,omitzero"`   // since when a retry is pending because the engine was unavailable
	Level     int     `json:"level"`            // consecutive failures, up to the back-off limit
	Next      int     `json:"next"`             // the level after a failure of the running pull
	Reason    Reason  `json:"reason,omitempty"` // why a pull for this attempt failed; empty if none failed
	Message   string  `json:"message,omitempty"`
}

// Generation returns metadata.generation: 1 for a pod whose definition has not changed since it was created. As in Kubernetes, labels and
// annotations do not count, and ephemeral containers do.
func (f *Facts) Generation() int64 { return 1 + int64(f.Changes) }

// Apply folds one event into the facts and returns the result. The receiver is not changed. An event about an object that is no
// longer current changes nothing.
func (f Facts) Apply(e Event) Facts {
	f.Containers = maps.Clone(f.Containers)
	if f.Containers == nil {
		f.Containers = map[string]Container{}
	}
	e.apply(&f)
	return f
}

// update folds into the attempt identified by ref, if it is one of the two that are kept.
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

// updatePull folds into the pull for the given attempt of a container, if it is the newest and in progress.
func (f *Facts) updatePull(container string, attempt int, fold func(*Pull)) {
	c, known := f.Containers[container]
	if !known || c.Pull.For != attempt || !c.Pull.inFlight() {
		return
	}
	fold(&c.Pull)
	f.Containers[container] = c
}

// set stores the instant if none is stored.
func set(field *Instant, at Instant) {
	if field.IsZero() {
		*field = at
	}
}

// live reports whether a process of this run may exist: it was requested and is not known to have terminated.
func (a *Attempt) live() bool { return a.N() > 0 && a.Exited.IsZero() && a.CreateFailed.IsZero() }

// imported reports whether the pod's image archives were imported: a container has got its image.
func (f *Facts) imported() bool {
	for _, c := range f.Containers {
		if c.Image.ID != "" {
			return true
		}
	}
	return false
}

// anyLive reports whether a process of any container may exist.
func (f *Facts) anyLive() bool {
	for _, c := range f.Containers {
		if c.Newest.live() {
			return true
		}
	}
	return false
}

// N returns the attempt's number; 0 means that no run was requested yet.
func (a *Attempt) N() int { return a.Attempt }

// terminated reports whether the run has left a record and exited.
func (a *Attempt) terminated() bool { return !a.Exited.IsZero() }

// running reports whether the process is running, as far as is known.
func (a *Attempt) running() bool { return !a.Started.IsZero() && a.live() }

// ran reports whether the engine has had a record of the run, so that it counts as one.
func (a *Attempt) ran() bool { return !a.Started.IsZero() || a.terminated() }

// inFlight reports whether the start of the sandbox has no outcome yet.
func (s *Sandbox) inFlight() bool {
	return s.N > 0 && s.Ready.IsZero() && s.Failed.IsZero() && s.Lost.IsZero() && s.Removal.Done.IsZero()
}

// ready reports whether containers can be started in the sandbox.
func (s *Sandbox) ready() bool {
	return !s.Ready.IsZero() && s.Lost.IsZero() && s.Removal.Requested.IsZero()
}

// mayExist reports whether there may be something to remove. A failed start has cleaned up after itself, unless the engine was
// unavailable.
func (s *Sandbox) mayExist() bool {
	return s.N > 0 && (s.Failed.IsZero() || s.Unavailable) && s.Removal.Done.IsZero()
}

// inFlight reports whether the pull has no outcome yet.
func (p *Pull) inFlight() bool {
	return !p.Requested.IsZero() && p.Done.IsZero() && p.Retry.IsZero() && (p.Failed.IsZero() || p.Failed.Before(p.Requested))
}
