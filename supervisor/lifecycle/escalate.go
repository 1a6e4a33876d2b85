package lifecycle

import (
	"slices"
	"time"

	"github.com/podstead/podstead/spec"
)

// escalate counts the unready time of the pod and takes the next step when it is due.
func (p *plan) escalate() {
	e, last := &p.facts.Escalation, LastStep(p.pod)
	if len(p.decision.Actions) > 0 {
		return // decide with their result
	}
	if last == StepNone {
		if *e != (Escalation{}) {
			p.do(EndEscalation{})
		}
		return
	}
	after := p.pod.UnhealthyAfter()
	v := view{pod: p.pod, facts: p.facts, now: p.now}
	switch ready, counts := v.ready(true), p.facts.unreadyCounts(p.pod); {
	case ready && *e == (Escalation{}):
	case ready && e.Ready.IsZero():
		p.do(PauseUnready{Ready: true})
	case ready && p.due(e.Ready.Add(min(maxRecovery, after))):
		p.do(EndEscalation{})
	case ready:
	case !counts && (!e.Since.IsZero() || !e.Ready.IsZero()):
		p.do(PauseUnready{})
	case !counts:
	case e.Since.IsZero():
		p.do(CountUnready{})
	case p.due(e.due(after)):
		p.step(min(e.Step+1, last), e.Counted+p.now.Sub(e.Since))
	}
}

// due returns when the next step is due while unready time counts.
func (e *Escalation) due(after time.Duration) Instant {
	at := e.Since.Add(after - e.Counted)
	if !e.Gap.IsZero() {
		at = later(at, e.Gap.Add(min(settleTime, after)))
	}
	return at
}

// step takes one step.
func (p *plan) step(s Step, unready time.Duration) {
	if s == StepReboot {
		p.do(RebootHost{Unready: unready})
		return
	}
	p.do(Escalate{Step: s, Unready: unready})
	if s != StepRestart {
		return
	}
	for i := range p.pod.InitContainers {
		if c := &p.pod.InitContainers[i]; c.IsSidecar() || c.Name == NextInitContainer(p.pod, *p.facts) {
			p.do(RestartUnhealthy{c.Name})
		}
	}
	v := view{pod: p.pod, facts: p.facts, now: p.now}
	for i := range p.pod.Containers {
		if c := &p.pod.Containers[i]; !v.over(c) {
			p.do(RestartUnhealthy{c.Name})
		}
	}
}

// LastStep returns the step that the escalation of a pod may go up to.
func LastStep(pod *spec.Pod) Step {
	switch pod.OnUnhealthy {
	case spec.UnhealthyRestart:
		return StepRestart
	case spec.UnhealthyReplace:
		return StepReplace
	case spec.UnhealthyReboot:
		return StepReboot
	}
	return StepNone
}

// over reports whether an app container has terminated and does not run again. No step changes that.
func (v *view) over(c *spec.Container) bool {
	a := v.facts.Containers[c.Name].Newest
	return a.terminated() && !v.runsAgain(c, &a, roleApp)
}

// ready reports whether the condition Ready is True. With over, containers that do not run again count as ready.
func (v *view) ready(over bool) bool { return v.readyNow(over).Status == conditionTrue }

// readyNow computes the condition Ready of a pod that has not terminated.
func (v *view) readyNow(over bool) Condition {
	v.ended = Terminating(v.pod, *v.facts)
	s := Status{}
	for i := range v.pod.InitContainers {
		c := &v.pod.InitContainers[i]
		s.InitContainerStatuses = append(s.InitContainerStatuses, v.container(c, roleOf(c)))
	}
	for i := range v.pod.Containers {
		c := v.container(&v.pod.Containers[i], roleApp)
		c.Ready = c.Ready || over && v.over(&v.pod.Containers[i])
		s.ContainerStatuses = append(s.ContainerStatuses, c)
	}
	return v.readyCondition(v.containersReady(&s))
}

// unreadyCounts reports whether the time counts in which the pod is not ready. It does not count while the pod waits for something
// that neither a restart nor a reboot changes, and while a container starts.
func (f *Facts) unreadyCounts(pod *spec.Pod) bool {
	if !f.EngineUnavailable.IsZero() || !f.Stop.Requested.IsZero() || f.Restart.pending() || Terminating(pod, *f) {
		return false
	}
	if len(Unmet(pod, *f)) > 0 || f.Sandbox.Failures > 0 && f.Sandbox.Reason == ReasonFailedMount {
		return false
	}
	return !slices.ContainsFunc(pod.InitContainers, func(c spec.Container) bool { return f.holdsEscalation(&c, !c.IsSidecar()) }) &&
		!slices.ContainsFunc(pod.Containers, func(c spec.Container) bool { return f.holdsEscalation(&c, false) })
}

// holdsEscalation reports whether a container waits for its image or its configuration, stops for a new run, or is starting up: an init
// container that runs, or a startup probe that has not succeeded.
func (f *Facts) holdsEscalation(c *spec.Container, init bool) bool {
	h := f.Containers[c.Name]
	a := &h.Newest
	switch {
	case h.Pull.For > a.N() && h.Pull.Done.IsZero():
		return true // the image is being pulled, or cannot be pulled
	case !a.CreateFailed.IsZero() && a.Exit.Reason == ReasonCreateConfigError:
		return true
	case !a.running():
		return false
	}
	return init || h.mustStop() == ReasonDefinitionChanged || c.StartupProbe != nil && !a.started(c)
}
