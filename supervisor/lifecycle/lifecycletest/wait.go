package lifecycletest

import (
	"maps"
	"slices"
	"strings"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// conditions is the state of what pods wait for, and which of it the supervisor watches.
type conditions struct {
	met     map[string]bool
	watched map[lifecycle.WaitRef]bool
}

// watchConditions watches exactly the conditions of a decision. A condition that is met already is reported at once.
func (w *World) watchConditions(orders []lifecycle.WaitRef) {
	for ref := range w.waits.watched {
		if !slices.Contains(orders, ref) {
			delete(w.waits.watched, ref)
		}
	}
	for _, ref := range orders {
		if !w.waits.watched[ref] {
			w.waits.watched[ref] = true
			w.reportCondition(ref)
		}
	}
}

func (w *World) reportCondition(ref lifecycle.WaitRef) {
	if w.waits.met[ref.Condition] {
		w.deliver(lifecycle.ConditionMet{WaitRef: ref, At: w.Now()})
	} else {
		w.deliver(lifecycle.ConditionUnmet{WaitRef: ref, Message: "not met"})
	}
}

// SetCondition makes a condition that pods wait for true or false.
func (w *World) SetCondition(condition string, met bool) {
	w.waits.met[condition] = met
	watched := slices.SortedFunc(maps.Keys(w.waits.watched),
		func(a, b lifecycle.WaitRef) int { return strings.Compare(a.Condition, b.Condition) })
	for _, ref := range watched {
		if ref.Condition == condition {
			w.reportCondition(ref)
		}
	}
}
