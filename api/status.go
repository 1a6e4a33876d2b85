package api

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// PodStatus is v1.PodStatus with additional fields. In JSON they are annotations of the pod, see [spec.OwnAnnotations].
type PodStatus struct {
	// ObservedGeneration is the generation that the rest of the status is of. A pod that is not supervised has none.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	Phase Phase `json:"phase"`
	// Reason is why the pod is in its phase, and Message is the same for people. Both are empty for most pods.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Conditions are those of Kubernetes, those of the readiness gates of the pod, and [FileAccepted].
	Conditions []Condition `json:"conditions"`
	// PodIP is the address of the pod, and the first of PodIPs. A pod without a sandbox has none.
	PodIP  string  `json:"podIP,omitempty"`
	PodIPs []PodIP `json:"podIPs,omitempty"`
	// StartTime is when the pod was accepted, in whole seconds.
	StartTime time.Time `json:"startTime,omitzero"`
	// InitContainerStatuses are in the order of the definition, sidecars included.
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty"`
	// ContainerStatuses are sorted by name.
	ContainerStatuses []ContainerStatus `json:"containerStatuses,omitempty"`
	// EphemeralContainerStatuses are sorted by name. They have neither Started nor Ready.
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
	// QOSClass is Guaranteed, Burstable or BestEffort.
	QOSClass spec.QOSClass `json:"qosClass"`
	// AllocatedResources are the requests of the pod: those at pod level, else the sum of its containers.
	AllocatedResources spec.ResourceList `json:"allocatedResources,omitempty"`
	// Resources are the pod-level requests and limits. A pod without them has none.
	Resources *Resources `json:"resources,omitempty"`

	// Schedule is set for a pod that is started by its schedule. Such a pod has no UID.
	Schedule *ScheduleStatus `json:"schedule,omitempty"`

	// HostIP is the address of the host that other hosts reach, and the first of HostIPs.
	HostIP  string  `json:"hostIP,omitempty"`
	HostIPs []PodIP `json:"hostIPs,omitempty"`
	// Owner is the requester that created the pod, such as "podstead run, pid 7, uid 0", or "podstead run (exited)".
	Owner string `json:"-"`
	// StoppedBy is the requester that stopped the pod.
	StoppedBy string `json:"-"`
	// StoppedAt is when a client requested the stop of a pod that is stopped; zero: the pod is not stopped, is being deleted,
	// or had completed before.
	StoppedAt time.Time `json:"-"`
	// File is the file in the pods directory that the pod follows; empty: it was created by a client.
	File string `json:"-"`
	// Pulling is the progress of image pulls and of imports of image archives, by container.
	Pulling map[string]Progress `json:"-"`
	// AtRest reports that no container runs and none will be started.
	AtRest bool `json:"-"`
	// NotDurable reports that the current state could not be saved.
	NotDurable bool `json:"-"`
	// Outcome is what became of the newest request that created the pod, started or restarted it, or changed its definition. It is zero if
	// the pod is not supervised, or the daemon is of an earlier version.
	Outcome RequestOutcome `json:"-"`
}

// RequestOutcome is what became of a request that has started a pod or changed its definition.
type RequestOutcome struct {
	// State is Ready if the pod is ready, Complete if it has been so for its minimum ready time (minReadySeconds), or has succeeded, and
	// Failed if a container has failed before, or the pod was not ready in time. A pod that is kept can be Complete later. Otherwise it is
	// Progressing, also if the pod is ready but is being restarted or stopped.
	State   RolloutState
	Message string // why it is not complete
	// Request is the number of the request. It tells an outcome from that of the request before, also if the definition is the same, as
	// after a restart, a change of images only, or a rollback.
	Request int
}

// Settling reports whether the pod is ready, and has to stay so for its minimum ready time: the state is Ready, which a rollout has not.
func (o RequestOutcome) Settling() bool { return o.State == "Ready" }

// Phase is v1.PodPhase.
type Phase string

// The phases.
const (
	PhasePending   Phase = "Pending"   // a container has not started yet
	PhaseRunning   Phase = "Running"   // a container runs, or is being restarted
	PhaseSucceeded Phase = "Succeeded" // all containers have exited with code 0, and none is restarted
	PhaseFailed    Phase = "Failed"    // all containers have exited, one of them with another code, or the pod was rejected
	PhaseUnknown   Phase = "Unknown"   // the container engine is unavailable
)

// Terminal reports whether the phase is final.
func (p Phase) Terminal() bool { return p == PhaseSucceeded || p == PhaseFailed }

// Condition is v1.PodCondition.
type Condition struct {
	Type ConditionType `json:"type"`
	// ObservedGeneration is the generation that the condition is of. One that a client has set has none.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Status is "True" or "False", or "Unknown" if a client has set that.
	Status  string `json:"status"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LastTransitionTime is when the status changed, in whole seconds.
	LastTransitionTime time.Time `json:"lastTransitionTime,omitzero"`
}

// ConditionType is v1.PodConditionType. The condition types of readiness gates are those of the pod file.
type ConditionType string

// The condition types, in the order in which they become true while a pod starts.
const (
	PodScheduled              ConditionType = "PodScheduled"
	PodReadyToStartContainers ConditionType = "PodReadyToStartContainers" // the sandbox is running
	PodInitialized            ConditionType = "Initialized"               // all init containers have completed
	ContainersReady           ConditionType = "ContainersReady"
	PodReady                  ConditionType = "Ready"
	// DisruptionTarget is present, and True, if the pod was evicted.
	DisruptionTarget ConditionType = "DisruptionTarget"
	// PodWaitedFor is present if the pod waits for conditions before it starts. It is True when they were met.
	PodWaitedFor ConditionType = "WaitedFor"
	// PodResizeInProgress is present, and True, while the cgroups of the pod do not have the requests and limits of its definition. With
	// the reason Error, the message is why, and the daemon tries again.
	PodResizeInProgress ConditionType = "PodResizeInProgress"
	// PodResizePending is present in its place, with the reason Infeasible, if the pod must restart to get them: it was started without
	// cgroups.
	PodResizePending ConditionType = "PodResizePending"
	// AllContainersRestarting is present if the pod has a RestartAllContainers rule (KEP-5532).
	AllContainersRestarting ConditionType = "AllContainersRestarting"
	// StateNotDurable is present, and True, while the current state of the pod could not be saved.
	StateNotDurable ConditionType = "StateNotDurable"
	// RemovalFailed is present, and True, while the containers of a pod that is being deleted cannot be removed.
	RemovalFailed ConditionType = "RemovalFailed"
	// VolumesNotUpdated is present, and True, while volumes cannot be updated from their config maps and secrets.
	VolumesNotUpdated ConditionType = "VolumesNotUpdated"
	// MonitorUnresponsive is present, and True, while the monitor of the containers, or the shim of the pod, does not respond.
	MonitorUnresponsive ConditionType = "MonitorUnresponsive"
	// FileAccepted is a condition that is present, and False, while a pod does not have the definition of its file: the file is invalid or
	// rejected, its definition was rolled back, or an update waits.
	FileAccepted ConditionType = "FileAccepted"
)

// PodIP is v1.PodIP, and v1.HostIP: one address.
type PodIP struct {
	IP string `json:"ip"`
}

// ContainerStatus is v1.ContainerStatus.
type ContainerStatus struct {
	Name  string         `json:"name"`
	State ContainerState `json:"state"`
	// LastState is the last termination before the current run; of a container that waits, the last one.
	LastState    ContainerState `json:"lastState"`
	Ready        bool           `json:"ready"`
	RestartCount int            `json:"restartCount"`
	Image        string         `json:"image"`
	ImageID      string         `json:"imageID"`
	// ContainerID is "containerd://" and the ID of the newest run.
	ContainerID string `json:"containerID,omitempty"`
	// Started reports that the startup probe has succeeded, or that the container runs if it has none.
	Started *bool `json:"started,omitempty"`
	// AllocatedResources are the requests of the container.
	AllocatedResources spec.ResourceList `json:"allocatedResources,omitempty"`
	// Resources are the requests and limits that the container has. While a resize is pending they are not those of its definition.
	Resources *Resources `json:"resources,omitempty"`
}

// Resources is v1.ResourceRequirements.
type Resources struct {
	// Requests are quantities by name of the resource.
	Requests spec.ResourceList `json:"requests,omitempty"`
	// Limits are quantities by name of the resource.
	Limits spec.ResourceList `json:"limits,omitempty"`
}

// ContainerState is v1.ContainerState: at most one field is set.
type ContainerState struct {
	Waiting    *Waiting    `json:"waiting,omitempty"`
	Running    *Running    `json:"running,omitempty"`
	Terminated *Terminated `json:"terminated,omitempty"`
}

// Waiting is v1.ContainerStateWaiting.
type Waiting struct {
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Running is v1.ContainerStateRunning.
type Running struct {
	StartedAt time.Time `json:"startedAt"` // in whole seconds
}

// Terminated is v1.ContainerStateTerminated.
type Terminated struct {
	ExitCode int    `json:"exitCode"`
	Reason   Reason `json:"reason,omitempty"`
	// Message is the termination message of the container, or why it could not start.
	Message     string    `json:"message,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"` // in whole seconds; missing: it never ran
	FinishedAt  time.Time `json:"finishedAt,omitzero"`
	ContainerID string    `json:"containerID,omitempty"`
}

// Progress is the progress of an image pull, of the import of an image archive, or of the unpacking of an image.
type Progress struct {
	// Archive is the path of the image archive that is being imported; empty: an image is being pulled.
	Archive string `json:"archive,omitempty"`
	Done    int64  `json:"done"`  // bytes
	Total   int64  `json:"total"` // bytes; 0: not known yet
	// Unpacking is true when everything is fetched. Total is then the size of the compressed layers that have to be unpacked, and Done is
	// how much of them was.
	Unpacking bool `json:"unpacking,omitempty"`
	// Image is set for an image of a new definition of the pod that is being prepared; empty: it is that of the container.
	Image string `json:"image,omitempty"`
}

// Reason is a machine-readable cause in CamelCase: the kubelet's where it has one. Later versions add reasons.
type Reason string

// Reasons of waiting containers.
const (
	ReasonContainerCreating    Reason = "ContainerCreating"
	ReasonPodInitializing      Reason = "PodInitializing"
	ReasonCrashLoopBackOff     Reason = "CrashLoopBackOff"
	ReasonErrImagePull         Reason = "ErrImagePull"
	ReasonImagePullBackOff     Reason = "ImagePullBackOff"
	ReasonErrImageNeverPull    Reason = "ErrImageNeverPull"
	ReasonInvalidImageName     Reason = "InvalidImageName"
	ReasonImageInspectError    Reason = "ImageInspectError"
	ReasonSignatureValidation  Reason = "SignatureValidationFailed"
	ReasonCreateContainerError Reason = "CreateContainerError"
	ReasonCreateConfigError    Reason = "CreateContainerConfigError"
	ReasonRunContainerError    Reason = "RunContainerError"
	ReasonPostStartHookError   Reason = "PostStartHookError"
	// ReasonDeviceMissing is the reason of a container that waits for a device of the host.
	ReasonDeviceMissing Reason = "DeviceMissing"
	// ReasonRestartingAllContainers is the reason of a container that a restart of all containers stops or starts again.
	ReasonRestartingAllContainers Reason = "RestartingAllContainers"
)

// Reasons of terminated containers.
const (
	ReasonCompleted     Reason = "Completed"
	ReasonError         Reason = "Error"
	ReasonOOMKilled     Reason = "OOMKilled"
	ReasonStartError    Reason = "StartError"
	ReasonUnknown       Reason = "Unknown"                // exit code 255: the engine lost the container
	ReasonStatusUnknown Reason = "ContainerStatusUnknown" // exit code 137: the container ran and no longer exists
)

// Reasons of conditions.
const (
	ReasonContainersNotInitialized Reason = "ContainersNotInitialized"
	ReasonContainersNotReady       Reason = "ContainersNotReady"
	ReasonPodCompleted             Reason = "PodCompleted"
	ReasonPodFailed                Reason = "PodFailed"
	ReasonTerminationByKubelet     Reason = "TerminationByKubelet"
	ReasonReadinessGatesNotReady   Reason = "ReadinessGatesNotReady"
	ReasonAllContainersRestarting  Reason = "RestartAllContainersStarted" // KEP-5532
)

// Reasons of phases.
const (
	ReasonWaitingFor        Reason = "WaitingFor" // the pod waits for conditions before it starts
	ReasonDeadlineExceeded  Reason = "DeadlineExceeded"
	ReasonBackoffLimit      Reason = "BackoffLimitExceeded"
	ReasonEngineUnavailable Reason = "EngineUnavailable"
	ReasonJobComplete       Reason = "JobComplete" // its Job has completed without it
	ReasonJobFailed         Reason = "JobFailed"   // its Job has failed
	ReasonEvicted           Reason = "Evicted"     // it exceeded a limit
	ReasonTerminated        Reason = "Terminated"  // the host was shut down
	ReasonNewerState        Reason = "NewerState"  // a later version of Podstead has written its state file
	ReasonQuarantined       Reason = "Quarantined" // the daemon crashed while it handled the pod, and would again
	ReasonSuspected         Reason = "Suspected"   // the daemon crashed while it handled the pod and others
)

// Reasons of [FileAccepted]. A file whose pod does not exist is a pod of the phase Failed with one of the first two.
const (
	ReasonInvalidFile   Reason = "InvalidFile"
	ReasonRejected      Reason = "Rejected"
	ReasonRolledBack    Reason = "RolledBack"    // it failed, and an earlier generation runs in its place
	ReasonRolloutUndone Reason = "RolloutUndone" // a person has requested another generation in its place
	ReasonUpdatePending Reason = "UpdatePending" // an update waits, such as for an image
)

// Reasons of a pod with a schedule, which has the phase Pending and no UID: its runs are pods of other names.
const (
	ReasonScheduled   Reason = "Scheduled"
	ReasonSuspended   Reason = "Suspended"   // no runs are started
	ReasonRunActive   Reason = "RunActive"   // a run waits for an earlier one
	ReasonClockNotSet Reason = "ClockNotSet" // no runs are started until the clock of the host is set
	// ReasonRunNotStarted is that of a schedule that waits for its time, and whose newest run could not be created or was missed.
	ReasonRunNotStarted Reason = "RunNotStarted"
)

// ScheduleStatus is the schedule of a pod, as in v1.CronJobStatus. The times are in whole seconds.
type ScheduleStatus struct {
	// Active are the names of the runs that have not finished.
	Active []string `json:"active,omitempty"`
	// LastScheduleTime is the time of the schedule of the last run that it started.
	LastScheduleTime time.Time `json:"lastScheduleTime,omitzero"`
	// LastSuccessfulTime is when the last run that has succeeded finished, of those that are kept.
	LastSuccessfulTime time.Time `json:"lastSuccessfulTime,omitzero"`
	// NextScheduleTime is when the next run is due. It is not set if no run is planned.
	NextScheduleTime time.Time `json:"nextScheduleTime,omitzero"`
}

// Refusal is one reason why a pod may not run on this host.
type Refusal struct {
	// Reason is that of the kubelet where it has one, such as OutOfcpu or NodePorts.
	Reason Reason `json:"reason"`
	// Field is the path of the field in the pod file, such as containers[0].securityContext.privileged. It may be empty.
	Field string `json:"field,omitempty"`
	// Message states the value, and what is allowed.
	Message string `json:"message"`
	// Hint is what the user can do about it, in the imperative. It may be empty.
	Hint string `json:"hint,omitempty"`
}

// reasonUnexpectedAdmissionError is the reason of a refusal whose message says all.
const reasonUnexpectedAdmissionError Reason = "UnexpectedAdmissionError"

// Error returns the reason, the field and the message.
func (r Refusal) Error() string {
	text := r.Message
	if r.Field != "" {
		text = r.Field + ": " + text
	}
	if r.Reason == reasonUnexpectedAdmissionError {
		return text
	}
	return string(r.Reason) + ": " + text
}

// Policy is the configuration of admission, which decides whether a pod may run on this host.
type Policy struct {
	// PodSecurity is the level of the Pod Security Standards that every pod must meet: privileged, baseline or restricted.
	PodSecurity string `json:"podSecurity,omitempty"`
	// HostPaths are the absolute paths of the directories that hostPath volumes may use, including what is below them. Null: all
	// directories; empty: none.
	HostPaths []string `json:"hostPaths"`
	// Devices are the absolute paths of the device nodes and directories that devices of containers may name, including what is below
	// them. Null: all; empty: none.
	Devices []string `json:"devices"`
	// UnsafeSysctls are the names of unsafe sysctls that pods may set, or patterns that end in "*" (the kubelet's
	// --allowed-unsafe-sysctls).
	UnsafeSysctls []string `json:"allowedUnsafeSysctls,omitempty"`
	// IgnoreRequests admits pods whose requests exceed what the host has free.
	IgnoreRequests bool `json:"ignoreRequests,omitempty"`
	// SystemReserved are the resources that pods cannot request (the kubelet's --system-reserved).
	SystemReserved spec.ResourceList `json:"systemReserved,omitempty"`
}
