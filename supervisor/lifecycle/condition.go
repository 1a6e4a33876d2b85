package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxConditions is the maximum number of conditions that clients may set on a pod.
const maxConditions = 64

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

// SetCondition is a condition that a client set.
type SetCondition struct {
	Status  string  `json:"status"`
	Reason  Reason  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	At      Instant `json:"at,omitzero"` // when the status changed; set by the event
}

// readyCondition computes the condition Ready: all containers are ready, and the condition of every readiness gate is True
// (contract 2.2).
func (v *view) readyCondition(ready Condition) Condition {
	ready.Type = PodReady
	if ready.Status != conditionTrue {
		return ready
	}
	var open []string
	for _, g := range v.pod.ReadinessGates {
		c, known := v.facts.Conditions[ConditionType(g.ConditionType)]
		switch {
		case !known:
			open = append(open, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		case c.Status != conditionTrue:
			open = append(open, fmt.Sprintf("the status of pod readiness gate %q is not %q, but %v", g.ConditionType, conditionTrue, c.Status))
		}
	}
	if len(open) > 0 {
		return condition(PodReady, false, ReasonReadinessGatesNotReady, strings.Join(open, ", "))
	}
	return ready
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

func condition(t ConditionType, holds bool, reason Reason, message string) Condition {
	if holds {
		return Condition{Type: t, Status: conditionTrue, Reason: reason, Message: message}
	}
	return Condition{Type: t, Status: "False", Reason: reason, Message: message}
}

// conditions computes the conditions (contract 2.2). The phase and the container statuses of s must be set.
func (v *view) conditions(s *Status) []Condition {
	ready := v.containersReady(s)
	list := []Condition{
		condition(PodScheduled, true, "", ""),
		condition(PodReadyToStartContainers, v.facts.Sandbox.ready(), "", ""),
		v.initializedCondition(s),
		ready,
		v.readyCondition(ready),
	}
	if len(v.pod.WaitFor) > 0 {
		list = append(list, v.waitedCondition())
	}
	if LastStep(v.pod) != StepNone {
		list = append(list, v.escalationCondition())
	}
	if hasRestartAllRule(v.pod) {
		list = append(list, v.restartingCondition(s))
	}
	if s.Phase == PhaseFailed && (v.facts.Stop.Reason == ReasonEvicted || v.facts.Stop.Reason == ReasonTerminated) {
		list = append(list, condition(DisruptionTarget, true, ReasonTerminationByKubelet, v.facts.Stop.Message))
	}
	for _, t := range slices.Sorted(maps.Keys(v.facts.Conditions)) {
		c := v.facts.Conditions[t]
		list = append(list, Condition{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	return list
}

// restartingCondition is true while a restart of all containers stops those of the previous round.
func (v *view) restartingCondition(s *Status) Condition {
	switch {
	case s.Phase == PhaseSucceeded:
		return condition(AllContainersRestarting, false, ReasonPodCompleted, "")
	case s.Phase == PhaseFailed:
		return condition(AllContainersRestarting, false, ReasonPodFailed, "")
	case v.facts.Stop.Requested.IsZero() && restartAllTrigger(v.pod, v.facts) != (Ref{}):
		return condition(AllContainersRestarting, true, ReasonAllContainersRestarting, "container exited with restart policy rule")
	}
	return condition(AllContainersRestarting, false, "", "")
}

func (v *view) initializedCondition(s *Status) Condition {
	if s.Phase == PhaseSucceeded {
		return condition(PodInitialized, true, ReasonPodCompleted, "")
	}
	if v.initialized() {
		return condition(PodInitialized, true, "", "")
	}
	var names []string
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		done := c.Ready
		if v.pod.InitContainers[i].IsSidecar() {
			done = *c.Started
		}
		if !done {
			names = append(names, c.Name)
		}
	}
	return condition(PodInitialized, false, ReasonContainersNotInitialized,
		"containers with incomplete status: ["+strings.Join(names, " ")+"]")
}

func (v *view) containersReady(s *Status) Condition {
	if s.Phase == PhaseSucceeded {
		return condition(ContainersReady, false, ReasonPodCompleted, "")
	}
	if s.Phase == PhaseFailed {
		return condition(ContainersReady, false, ReasonPodFailed, "")
	}
	if names := v.unready(s); len(names) > 0 {
		return condition(ContainersReady, false, ReasonContainersNotReady,
			"containers with unready status: ["+strings.Join(names, " ")+"]")
	}
	return condition(ContainersReady, true, "", "")
}

// Completed reports whether a pod with these conditions has completed, in phase Succeeded or Failed.
func Completed(conditions []Condition) bool {
	return slices.ContainsFunc(conditions, func(c Condition) bool {
		return c.Type == ContainersReady && (c.Reason == ReasonPodCompleted || c.Reason == ReasonPodFailed)
	})
}

// unready returns the sidecars and app containers that are not ready, in the order of the pod file.
func (v *view) unready(s *Status) []string {
	var names []string
	for i := range s.InitContainerStatuses {
		if c := &s.InitContainerStatuses[i]; v.pod.InitContainers[i].IsSidecar() && !c.Ready {
			names = append(names, c.Name)
		}
	}
	for i := range v.pod.Containers {
		name := v.pod.Containers[i].Name
		if slices.ContainsFunc(s.ContainerStatuses, func(c ContainerStatus) bool { return c.Name == name && !c.Ready }) {
			names = append(names, name)
		}
	}
	return names
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
