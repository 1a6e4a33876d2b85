package simulate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// watchConditions watches exactly the conditions of a decision. A condition that is met already is reported at once.
func (p *Pod) watchConditions(orders []lifecycle.WaitRef) {
	for ref := range p.watched {
		if !slices.Contains(orders, ref) {
			delete(p.watched, ref)
		}
	}
	for _, ref := range orders {
		if !p.watched[ref] {
			p.watched[ref] = true
			p.reportCondition(ref)
		}
	}
}

func (p *Pod) reportCondition(ref lifecycle.WaitRef) {
	if unmet := p.world.unmet(ref.Condition); unmet != "" {
		p.deliver(lifecycle.ConditionUnmet{WaitRef: ref, Message: unmet})
	} else {
		p.deliver(lifecycle.ConditionMet{WaitRef: ref, At: p.world.Now()})
	}
}

// unmet returns why a condition is not met; empty if it is.
func (w *World) unmet(condition string) string {
	c := spec.ParseWaitCondition(condition)
	switch {
	case w.met[condition]:
		return ""
	case c.Kind != spec.WaitPod:
		return "not met"
	}
	p := w.Find(c.Object)
	switch {
	case p == nil:
		return "not found"
	case c.State == spec.WaitReady && !ready(&p.status):
		return "not ready"
	case c.State == spec.WaitSucceeded && p.status.Phase == lifecycle.PhaseFailed:
		return "failed"
	case c.State == spec.WaitSucceeded && p.status.Phase != lifecycle.PhaseSucceeded:
		return "not succeeded"
	}
	return ""
}

// ready reports whether the pod of a status is ready.
func ready(s *lifecycle.Status) bool {
	i := slices.IndexFunc(s.Conditions, func(c lifecycle.Condition) bool { return c.Type == lifecycle.PodReady })
	return i >= 0 && s.Conditions[i].Status == "True"
}

// SetCondition makes a condition that pods wait for true or false.
func (w *World) SetCondition(condition string, met bool) {
	w.met[condition] = met
	w.report(func(c string) bool { return c == condition })
}

// reportPeer reports the conditions that are about a pod to the pods that wait for them.
func (w *World) reportPeer(p *Pod) {
	w.report(func(c string) bool {
		condition := spec.ParseWaitCondition(c)
		return condition.Kind == spec.WaitPod && condition.Object == p.Spec.Name
	})
}

// report reports conditions to the pods that wait for them.
func (w *World) report(concerns func(condition string) bool) {
	if w.down {
		return
	}
	for _, p := range w.pods {
		watched := slices.SortedFunc(maps.Keys(p.watched),
			func(a, b lifecycle.WaitRef) int { return cmp.Compare(a.Condition, b.Condition) })
		for _, ref := range watched {
			if concerns(ref.Condition) {
				p.reportCondition(ref)
			}
		}
	}
}
