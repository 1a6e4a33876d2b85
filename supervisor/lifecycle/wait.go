package lifecycle

import (
	"maps"

	"github.com/podstead/podstead/spec"
)

// StartWait begins to wait for the conditions of the pod. See [RecordOnly]. The first wait is since the pod was accepted, which is saved at
// once: a supervisor that was killed before the wait was saved does not begin it later.
type StartWait struct{ Wait int }

func (a StartWait) issued(f *Facts, at Instant) {
	f.Wait = Wait{N: a.Wait, Since: at}
	if a.Wait == 1 {
		f.Wait.Since = f.Accepted
	}
}

func (StartWait) failed(*Facts, Failure, Instant) {}

// ConditionMet reports that a condition that the pod waits for is met.
type ConditionMet struct {
	WaitRef
	At Instant
}

func (e ConditionMet) apply(f *Facts) {
	f.updateWait(e.WaitRef, func(c *WaitedFor) { c.Met, c.Message = e.At, "" })
}

// ConditionUnmet reports why a condition that the pod waits for is not met yet.
type ConditionUnmet struct {
	WaitRef
	Message string // such as "not ready"
}

func (e ConditionUnmet) apply(f *Facts) {
	f.updateWait(e.WaitRef, func(c *WaitedFor) { c.Message = e.Message })
}

// updateWait folds into a condition of the current wait that is not met yet.
func (f *Facts) updateWait(ref WaitRef, fold func(*WaitedFor)) {
	c := f.Wait.Conditions[ref.Condition]
	if ref.Wait == 0 || ref.Wait != f.Wait.N || !f.Wait.Ended.IsZero() || !c.Met.IsZero() {
		return
	}
	fold(&c)
	conditions := maps.Clone(f.Wait.Conditions)
	if conditions == nil {
		conditions = map[string]WaitedFor{}
	}
	conditions[ref.Condition] = c
	f.Wait.Conditions = conditions
}

// Unmet returns the conditions that the pod waits for, in the order of the pod file. It is empty if the pod does not wait.
func Unmet(pod *spec.Pod, f Facts) []string {
	if f.Wait.Since.IsZero() || !f.Wait.Ended.IsZero() || Terminating(pod, f) {
		return nil
	}
	return f.Wait.unmet(pod)
}

func (w *Wait) unmet(pod *spec.Pod) []string {
	var list []string
	for _, condition := range pod.Conditions() {
		if w.Conditions[condition].Met.IsZero() {
			list = append(list, condition)
		}
	}
	return list
}

// waited reports whether the conditions that the pod waits for are met. Until then the decision names those that must be watched.
func (p *plan) waited() bool {
	w := &p.facts.Wait
	switch {
	case len(p.pod.Conditions()) == 0 || !w.Ended.IsZero():
		return true
	case w.Since.IsZero():
		p.do(StartWait{Wait: w.N + 1})
		return false
	}
	unmet := w.unmet(p.pod)
	for _, condition := range unmet {
		p.decision.Waits = append(p.decision.Waits, WaitRef{Wait: w.N, Condition: condition})
	}
	return len(unmet) == 0
}
