package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// Container is what is known about one container: its newest two attempts, and a summary of the earlier ones.
type Container struct {
	Newest   Attempt `json:"newest,omitzero"`
	Previous Attempt `json:"previous,omitzero"` // the run before the newest: status.lastState
	Pull     Pull    `json:"pull,omitzero"`
	Backoff  Backoff `json:"backoff,omitzero"`
	// Failures is the number of runs that have failed since the pod was last started by a request of a person or by a change of its
	// definition, see [spec.Pod.BackoffLimit].
	Failures int `json:"failures,omitempty"`
	// OOMKills is the number of runs since then that exited with 0 although a process was OOM-killed. Those of an init container have
	// failed.
	OOMKills int `json:"oomKills,omitempty"`
	// Exits is the number of runs that have failed or exited with 0 since a person, or a change of its definition, last started the
	// container, see [spec.Container.MaxRestarts].
	Exits int   `json:"exits,omitempty"`
	Image Image `json:"image,omitzero"` // of the newest run, and of the next one unless a pull changes it

	Replaced Replacement `json:"replaced,omitzero"` // a request to replace a run
}

// count counts a run that has terminated.
func (c *Container) count(run *Attempt) {
	if run.exitedByItself() {
		c.Exits++
	}
	switch {
	case run.failed():
		c.Failures++
	case run.oomKilled():
		c.OOMKills++
	}
}

// Image identifies the image that a container runs. A restart uses it again, so that neither a new archive nor a new meaning of
// the image's name changes a running pod.
type Image struct {
	ID      string `json:"id"`                // digest of the image's configuration: status.imageID
	Archive bool   `json:"archive,omitempty"` // the image was imported from an archive
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

// inFlight reports whether the pull has no outcome yet.
func (p *Pull) inFlight() bool {
	return !p.Requested.IsZero() && p.Done.IsZero() && p.Retry.IsZero() && (p.Failed.IsZero() || p.Failed.Before(p.Requested))
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

	DeviceRemoved string  `json:"deviceRemoved,omitempty"` // the device for which the run is replaced, as in the pod file
	DeviceAdded   Instant `json:"deviceAdded,omitzero"`    // when the devices existed without which the container could not be created

	// Resources are the requests and limits of the run if those of its definition differ: a resize that replaces them is pending, or the
	// run has exited before it. Nil: those of its definition.
	Resources *spec.Resources `json:"resources,omitempty"`
	// Resizing are the requests and limits that the resize in progress sets, if the definition has changed again since it was issued.
	Resizing *spec.Resources `json:"resizing,omitempty"`

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

// N returns the attempt's number; 0 means that no run was requested yet.
func (a *Attempt) N() int { return a.Attempt }

// live reports whether a process of this run may exist: it was requested and is not known to have terminated.
func (a *Attempt) live() bool { return a.N() > 0 && a.Exited.IsZero() && a.CreateFailed.IsZero() }

// running reports whether the process is running, as far as is known.
func (a *Attempt) running() bool { return !a.Started.IsZero() && a.live() }

// ran reports whether the engine has had a record of the run, so that it counts as one.
func (a *Attempt) ran() bool { return !a.Started.IsZero() || a.terminated() }

// terminated reports whether the run has left a record and exited.
func (a *Attempt) terminated() bool { return !a.Exited.IsZero() }

// interrupted reports whether a run was stopped to be replaced. Whatever its exit code, it has neither completed nor failed.
func (a *Attempt) interrupted() bool {
	return a.StopReason == ReasonRestartRequested || a.StopReason == ReasonDefinitionChanged ||
		a.StopReason == ReasonContainerRemoved || a.StopReason == ReasonDeviceRemoved
}

// failed reports whether the run has failed: not one that was stopped for another reason than a failure, nor one that was lost.
// See also [Container.OOMKills].
func (a *Attempt) failed() bool {
	if a.StopReason == "" {
		return a.Exit.Code != 0 && a.Exit.Reason != ReasonUnknown && a.Exit.Reason != ReasonStatusUnknown
	}
	return a.StopReason == ReasonLivenessProbe || a.StopReason == ReasonStartupProbe || a.StopReason == ReasonFailedPostStartHook
}

// exitedByItself reports whether the run has failed or exited with 0, and was not stopped for another reason than a failure, nor lost.
func (a *Attempt) exitedByItself() bool { return a.failed() || a.StopReason == "" && a.Exit.Code == 0 }

// oomKilled reports whether the run has exited with 0 although a process was OOM-killed.
func (a *Attempt) oomKilled() bool {
	return a.StopReason == "" && a.Exit.Code == 0 && a.Exit.Reason == ReasonOOMKilled
}

// countsAsFailed reports whether a run of an init container has failed. An OOM kill is a failure of it, whatever the exit code.
func (a *Attempt) countsAsFailed() bool { return a.failed() || a.oomKilled() }

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

// minimumGrace is the minimum time between the stop signal and SIGKILL (the kubelet's minimumGracePeriodInSeconds).
const minimumGrace = 2 * time.Second

// evictionGrace is the grace period of an evicted pod, as in the kubelet. [minimumGrace] applies to its containers.
const evictionGrace = time.Second

// Grace is the grace period of a stop.
type Grace struct {
	Period time.Duration
	Force  bool // no grace period: SIGKILL at once
}

// EffectiveGrace returns the grace period of a stop. If requested is nil, it is the pod's own. It is at least one second, as in
// the kubelet, and [minimumGrace] applies to every container. A request of exactly 0 forces the stop, as `kubectl delete --force
// --grace-period=0` does.
func EffectiveGrace(pod *spec.Pod, requested *time.Duration) Grace {
	period := pod.TerminationGracePeriodSeconds.Duration()
	if requested != nil {
		if *requested == 0 {
			return Grace{Force: true}
		}
		period = *requested
	}
	return Grace{Period: max(period, time.Second)}
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

// fail records that the removal must be retried.
func (r *Removal) fail(at Instant) {
	if r.Done.IsZero() {
		r.Failed = at
	}
}

// pending reports whether the removal was requested and has no outcome yet.
func (r *Removal) pending() bool {
	return !r.Requested.IsZero() && r.Failed.IsZero() && r.Done.IsZero()
}

// Replacement is a request to replace the run of a container by another one, whatever its restart policy.
type Replacement struct {
	Attempt int    `json:"attempt,omitempty"` // the newest run that is replaced; 0: none
	Reason  Reason `json:"reason,omitempty"`
}

// includes reports whether a run was requested to be replaced.
func (r *Replacement) includes(a *Attempt) bool { return a.N() > 0 && a.N() <= r.Attempt }

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

func (a *Attempt) hook(kind HookKind) *Hook {
	if kind == PreStop {
		return &a.PreStop
	}
	return &a.PostStart
}

// postStartPending reports whether the postStart hook of a running container has no outcome yet.
func (a *Attempt) postStartPending(c *spec.Container) bool {
	return a.running() && hasPostStart(c) && a.PostStart.Done.IsZero()
}

func hasPostStart(c *spec.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PostStart != nil }

func hasPreStop(c *spec.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }

// ProbeKind is the kind of a probe.
type ProbeKind string

// The kinds of probes.
const (
	// ProbeStartup delays the other two until it succeeds. If it fails, the container is stopped.
	ProbeStartup ProbeKind = "startup"
	// ProbeLiveness stops the container if it fails.
	ProbeLiveness ProbeKind = "liveness"
	// ProbeReadiness determines whether the container is ready.
	ProbeReadiness ProbeKind = "readiness"
)

// Verdict is the result of a probe after its thresholds (the kubelet's results.Result).
type Verdict string

// The verdicts; empty if the probe has not reached one yet.
const (
	VerdictSuccess Verdict = "Success"
	VerdictFailure Verdict = "Failure"
)

// ProbeStatus is the newest verdict of one probe of a run.
type ProbeStatus struct {
	Verdict Verdict `json:"verdict,omitempty"`
	Message string  `json:"message,omitempty"` // of the last result that led to it
	Count   int     `json:"count,omitempty"`   // number of consecutive results that led to it
	At      Instant `json:"at,omitzero"`
}

// Probes contains the newest verdicts of the probes of a run.
type Probes struct {
	Startup   ProbeStatus `json:"startup,omitzero"`
	Liveness  ProbeStatus `json:"liveness,omitzero"`
	Readiness ProbeStatus `json:"readiness,omitzero"`
}

// of returns the status of the given kind; nil if the kind is unknown.
func (p *Probes) of(kind ProbeKind) *ProbeStatus {
	switch kind {
	case ProbeStartup:
		return &p.Startup
	case ProbeLiveness:
		return &p.Liveness
	case ProbeReadiness:
		return &p.Readiness
	}
	return nil
}
