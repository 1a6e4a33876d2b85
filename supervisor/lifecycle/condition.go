package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxConditions bounds the conditions that others may set on a pod.
const maxConditions = 64

// ConditionSet says that somebody has set a condition of the pod that is none of ours: what a readiness gate waits for
// (v1.PodReadinessGate). Facts hold 64 at most; one more is not taken in.
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
	conditions[e.Type] = SetCondition{Status: e.Status, Reason: e.Reason, Message: e.Message}
	f.Conditions = conditions
}

// SetCondition is a condition as somebody has set it.
type SetCondition struct {
	Status  string `json:"status"`
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// gates is the condition Ready: that of the containers, and every readiness gate True (contract 2.2).
func (v *view) gates(ready Condition) Condition {
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
	// AllContainersRestarting is shown of pods that have a rule for it only (KEP-5532).
	AllContainersRestarting ConditionType = "AllContainersRestarting"
)

const conditionTrue = "True"

// Condition is v1.PodCondition.
type Condition struct {
	Type               ConditionType `json:"type"`
	Status             string        `json:"status"` // "True", "False", or "Unknown" if others have set that
	Reason             Reason        `json:"reason,omitempty"`
	Message            string        `json:"message,omitempty"`
	LastTransitionTime time.Time     `json:"lastTransitionTime"`
}

func condition(t ConditionType, holds bool, reason Reason, message string) Condition {
	if holds {
		return Condition{Type: t, Status: conditionTrue, Reason: reason, Message: message}
	}
	return Condition{Type: t, Status: "False", Reason: reason, Message: message}
}

// conditions computes the conditions (contract 2.2); s has its phase and container statuses already.
func (v *view) conditions(s *Status) []Condition {
	ready := v.containersReady(s)
	list := []Condition{
		condition(PodScheduled, true, "", ""),
		condition(PodReadyToStartContainers, v.facts.Sandbox.ready(), "", ""),
		v.initializedCondition(s),
		ready,
		v.gates(ready),
	}
	if restartsAll(v.pod) {
		list = append(list, v.restarting(s))
	}
	if s.Phase == PhaseFailed && v.facts.Stop.Reason == ReasonEvicted {
		list = append(list, condition(DisruptionTarget, true, ReasonTerminationByKubelet, v.facts.Stop.Message))
	}
	for _, t := range slices.Sorted(maps.Keys(v.facts.Conditions)) {
		c := v.facts.Conditions[t]
		list = append(list, Condition{Type: t, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	return list
}

// restarting is true while a restart of all containers ends those of the round before.
func (v *view) restarting(s *Status) Condition {
	switch {
	case s.Phase == PhaseSucceeded:
		return condition(AllContainersRestarting, false, ReasonPodCompleted, "")
	case s.Phase == PhaseFailed:
		return condition(AllContainersRestarting, false, ReasonPodFailed, "")
	case v.facts.Stop.Requested.IsZero() && restartAllBy(v.pod, v.facts) != (Ref{}):
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

// unready are the sidecars and app containers that are not ready, in the order of the file.
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

// Since fills in when each condition last changed: an instant of the earlier status where it is as it was, else now. A pod that
// was initialized stays so (contract 2.2), also where a stop came before its app containers' turn did.
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
