package lifecycle

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

// Phase is v1.PodPhase.
type Phase string

// The phases.
const (
	PhasePending   Phase = "Pending"
	PhaseRunning   Phase = "Running"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
	// PhaseUnknown means that the container engine is unavailable (deviation 20).
	PhaseUnknown Phase = "Unknown"
)

// Status is the status of a pod. Its JSON is v1.PodStatus.
type Status struct {
	// [Facts.Generation] of the facts that it was computed from
	ObservedGeneration    int64             `json:"observedGeneration,omitempty"`
	Phase                 Phase             `json:"phase"`
	Reason                Reason            `json:"reason,omitempty"`
	Message               string            `json:"message,omitempty"`
	Conditions            []Condition       `json:"conditions"`
	PodIP                 string            `json:"podIP,omitempty"`
	PodIPs                []PodIP           `json:"podIPs,omitempty"`
	StartTime             time.Time         `json:"startTime,omitzero"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses,omitempty"`
	// EphemeralContainerStatuses have neither Started nor Ready.
	EphemeralContainerStatuses []ContainerStatus `json:"ephemeralContainerStatuses,omitempty"`
	QOSClass                   spec.QOSClass     `json:"qosClass"`
	// AllocatedResources are the requests of the pod, and Resources its pod-level requests and limits.
	AllocatedResources spec.ResourceList `json:"allocatedResources,omitempty"`
	Resources          *spec.Resources   `json:"resources,omitempty"`
}

// Every returns the status of every container, in the order in which they start.
func (s *Status) Every() []ContainerStatus {
	return slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses)
}

// PodIP is one address of the pod.
type PodIP struct {
	IP string `json:"ip"`
}

// ContainerStatus is v1.ContainerStatus.
type ContainerStatus struct {
	Name         string `json:"name"`
	State        State  `json:"state"`
	LastState    State  `json:"lastState"`
	Ready        bool   `json:"ready"`
	RestartCount int    `json:"restartCount"`
	Image        string `json:"image"`
	ImageID      string `json:"imageID"`
	ContainerID  string `json:"containerID,omitempty"`
	Started      *bool  `json:"started,omitempty"`
	// AllocatedResources are the requests of the definition that runs, or ran last. Resources are the requests and limits that it has:
	// while a resize is pending, those before the change of its definition.
	AllocatedResources spec.ResourceList `json:"allocatedResources,omitempty"`
	Resources          *spec.Resources   `json:"resources,omitempty"`
}

// State is v1.ContainerState: at most one field is set.
type State struct {
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
	StartedAt time.Time `json:"startedAt"`
}

// Terminated is v1.ContainerStateTerminated.
type Terminated struct {
	ExitCode    int       `json:"exitCode"`
	Reason      Reason    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"` // zero: it never ran
	FinishedAt  time.Time `json:"finishedAt,omitzero"`
	ContainerID string    `json:"containerID,omitempty"`
}

// role is the kind of a container in its pod.
type role int

const (
	roleApp role = iota
	roleInit
	roleSidecar
	roleEphemeral
)

// maxConditions is the maximum number of conditions that clients may set on a pod.
const maxConditions = 64

// SetCondition is a condition that a client set.
type SetCondition struct {
	Status  string  `json:"status"`
	Reason  Reason  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	At      Instant `json:"at,omitzero"` // when the status changed; set by the event
}

// ConditionType is the type of a condition (v1.PodConditionType).
type ConditionType string

// Condition types, in the order in which they become true while a pod starts.
const (
	PodScheduled              ConditionType = "PodScheduled"
	PodReadyToStartContainers ConditionType = "PodReadyToStartContainers"
	PodInitialized            ConditionType = "Initialized"
	ContainersReady           ConditionType = "ContainersReady"
	PodReady                  ConditionType = "Ready"
	// DisruptionTarget is present, and True, if the pod was evicted.
	DisruptionTarget ConditionType = "DisruptionTarget"
	// PodWaitedFor is present if the pod waits for conditions before it starts. It is True when they were met.
	PodWaitedFor ConditionType = "WaitedFor"
	// PodUnhealthy is present if the pod has spec.Pod.OnUnhealthy. It is True after the first step for a pod that stays unready.
	PodUnhealthy ConditionType = "Unhealthy"
	// PodResizeInProgress is present, and True, while the cgroups of the pod do not have the requests and limits of its definition.
	PodResizeInProgress ConditionType = "PodResizeInProgress"
	// PodResizePending is present in its place, with [ReasonInfeasible], if the pod cannot get them until it restarts.
	PodResizePending ConditionType = "PodResizePending"
	// AllContainersRestarting is present if the pod has a RestartAllContainers rule (KEP-5532).
	AllContainersRestarting ConditionType = "AllContainersRestarting"
)

const conditionTrue = "True"

// Condition is v1.PodCondition.
type Condition struct {
	Type               ConditionType `json:"type"`
	Status             string        `json:"status"` // "True", "False", or "Unknown" if a client set that
	Reason             Reason        `json:"reason,omitempty"`
	Message            string        `json:"message,omitempty"`
	LastTransitionTime time.Time     `json:"lastTransitionTime,omitzero"`
}

// Terminal reports whether the phase is final.
func (p Phase) Terminal() bool { return p == PhaseSucceeded || p == PhaseFailed }

// stamp returns the time of an instant as it is shown in the status.
func stamp(t Instant) time.Time { return t.Wall.UTC().Truncate(time.Second) }

// roleOf returns the role of an init container.
func roleOf(c *spec.Container) role {
	if c.IsSidecar() {
		return roleSidecar
	}
	return roleInit
}

func condition(t ConditionType, holds bool, reason Reason, message string) Condition {
	if holds {
		return Condition{Type: t, Status: conditionTrue, Reason: reason, Message: message}
	}
	return Condition{Type: t, Status: "False", Reason: reason, Message: message}
}

// Since sets the transition times of the conditions: the earlier time if the status is unchanged, else now. Initialized stays
// True once it was (contract 2.2), also if the pod is stopped before its app containers start.
func (s Status) Since(earlier []Condition, now Instant) Status {
	conditions := make([]Condition, len(s.Conditions))
	for i, c := range s.Conditions {
		c.LastTransitionTime = stamp(now)
		for _, old := range earlier {
			if old.Type != c.Type {
				continue
			}
			if c.Type == PodInitialized && old.Status == conditionTrue && c.Status != conditionTrue {
				c = condition(PodInitialized, true, "", "")
			}
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		conditions[i] = c
	}
	s.Conditions = conditions
	return s
}
