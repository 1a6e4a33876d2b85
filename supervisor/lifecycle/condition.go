package lifecycle

import (
	"fmt"
	"maps"
	"strings"
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
