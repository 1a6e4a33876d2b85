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
	unmet := ""
	if c := spec.ParseWaitCondition(ref.Condition); c.Kind == spec.WaitJob {
		unmet = lifecycle.JobTurn(p.Spec.Name, lifecycle.JobTurns(p.world.job(c.Object), p.world.Now()))
		if unmet != "" && unmet == p.Facts.Wait.Conditions[ref.Condition].Message {
			return // it is known, and the pods of a Job would report it to each other for ever
		}
	} else {
		unmet = p.world.unmet(ref.Condition)
	}
	if unmet != "" {
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

// job returns the pods of a Job.
func (w *World) job(name string) (pods []lifecycle.JobPod) {
	for _, p := range w.pods {
		if job := p.Spec.Job; job != nil && job.Name == name && !p.removed && p.status.Phase != "" {
			pods = append(pods, lifecycle.JobPod{Pod: p.Spec, Facts: &p.Facts, Phase: p.status.Phase})
		}
	}
	return pods
}

// nextRun returns the run of its Job in which the pod takes part if it is started again.
func (p *Pod) nextRun() int {
	if p.Spec.Job == nil {
		return 0
	}
	return lifecycle.NextRun(p.world.job(p.Spec.Job.Name))
}

// endJob tells the pods of the Job of a pod that it has ended.
func (w *World) endJob(job *spec.Job) {
	end, unaware := lifecycle.EndOfJob(w.job(job.Name), w.Now())
	for _, name := range unaware {
		if p := w.Find(name); !end.Ended.IsZero() && !p.idle() {
			p.deliver(lifecycle.JobEnded{Part: end})
		}
	}
}

// reportPeer reports what is about a pod to the pods that wait for it, and to those of its Job.
func (w *World) reportPeer(p *Pod) {
	if job := p.Spec.Job; job != nil {
		w.endJob(job)
		w.report(func(c string) bool { return c == job.Turn() })
	}
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
