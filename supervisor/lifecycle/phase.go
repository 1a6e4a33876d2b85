package lifecycle

import (
	"strings"
	"time"
)

// phase computes the phase from the container statuses as the kubelet does (contract 2.1). Two things make it shorter
// here: nothing is unknown, and a phase is terminal if and only if the pod is at rest.
func (v *view) phase(s *Status) Phase {
	if v.atRest() {
		if !v.facts.Evicted.At.IsZero() {
			return PhaseFailed
		}
		for i := range s.ContainerStatuses {
			if end := s.ContainerStatuses[i].State.Terminated; end == nil || end.ExitCode != 0 {
				return PhaseFailed
			}
		}
		return PhaseSucceeded
	}
	for i := range s.InitContainerStatuses {
		if lastEnd(&s.InitContainerStatuses[i]) == nil {
			return PhasePending
		}
	}
	for i := range s.ContainerStatuses {
		if c := &s.ContainerStatuses[i]; c.State.Running == nil && lastEnd(c) == nil {
			return PhasePending
		}
	}
	return PhaseRunning
}

// lastEnd is how the container ended, if it does not run and has run before.
func lastEnd(c *ContainerStatus) *Terminated {
	switch {
	case c.State.Running != nil:
		return nil
	case c.State.Terminated != nil:
		return c.State.Terminated
	default:
		return c.LastState.Terminated
	}
}

// ConditionType names a condition (v1.PodConditionType).
type ConditionType string

// The conditions, in the order in which a pod on its way up makes them true.
const (
	PodScheduled              ConditionType = "PodScheduled"
	PodReadyToStartContainers ConditionType = "PodReadyToStartContainers"
	PodInitialized            ConditionType = "Initialized"
	ContainersReady           ConditionType = "ContainersReady"
	PodReady                  ConditionType = "Ready"
	// DisruptionTarget is there, and true, of a pod that was evicted.
	DisruptionTarget ConditionType = "DisruptionTarget"
)

// Condition is v1.PodCondition.
type Condition struct {
	Type               ConditionType `json:"type"`
	Status             string        `json:"status"` // "True" or "False"
	Reason             Reason        `json:"reason,omitempty"`
	Message            string        `json:"message,omitempty"`
	LastTransitionTime time.Time     `json:"lastTransitionTime"`
}

func condition(t ConditionType, holds bool, reason Reason, message string) Condition {
	if holds {
		return Condition{Type: t, Status: "True", Reason: reason, Message: message}
	}
	return Condition{Type: t, Status: "False", Reason: reason, Message: message}
}

// conditions computes the conditions (contract 2.2); s has its phase and container statuses already.
func (v *view) conditions(s *Status) []Condition {
	ready := v.containersReady(s)
	gates := ready
	gates.Type = PodReady
	list := []Condition{
		condition(PodScheduled, true, "", ""),
		condition(PodReadyToStartContainers, v.facts.Sandbox.ready(), "", ""),
		v.initializedCondition(s),
		ready,
		gates,
	}
	if s.Reason == ReasonEvicted {
		list = append(list, condition(DisruptionTarget, true, ReasonTerminationByKubelet, s.Message))
	}
	return list
}

func (v *view) initializedCondition(s *Status) Condition {
	if s.Phase == PhaseSucceeded {
		return condition(PodInitialized, true, ReasonPodCompleted, "")
	}
	names := unready(s.InitContainerStatuses)
	if v.initialized() || len(names) == 0 {
		return condition(PodInitialized, true, "", "")
	}
	return condition(PodInitialized, false, ReasonContainersNotInitialized,
		"containers with incomplete status: ["+strings.Join(names, " ")+"]")
}

func (v *view) containersReady(s *Status) Condition {
	switch s.Phase {
	case PhaseSucceeded:
		return condition(ContainersReady, false, ReasonPodCompleted, "")
	case PhaseFailed:
		return condition(ContainersReady, false, ReasonPodFailed, "")
	case PhasePending, PhaseRunning:
	}
	if names := unready(s.ContainerStatuses); len(names) > 0 {
		return condition(ContainersReady, false, ReasonContainersNotReady,
			"containers with unready status: ["+strings.Join(names, " ")+"]")
	}
	return condition(ContainersReady, true, "", "")
}

func unready(list []ContainerStatus) []string {
	var names []string
	for i := range list {
		if !list[i].Ready {
			names = append(names, list[i].Name)
		}
	}
	return names
}

// Since fills in when each condition last changed: an instant of the earlier status where it is as it was, else now.
func (s Status) Since(earlier []Condition, now Instant) Status {
	conditions := make([]Condition, len(s.Conditions))
	for i, c := range s.Conditions {
		c.LastTransitionTime = stamp(now)
		for _, old := range earlier {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		conditions[i] = c
	}
	s.Conditions = conditions
	return s
}
