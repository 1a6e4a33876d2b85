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

// unreadyCounts reports whether the time counts in which the pod is not ready. It does not count while the pod waits for something
// that neither a restart nor a reboot changes, and while a container starts.
func (f *Facts) unreadyCounts(pod *spec.Pod) bool {
	if !f.EngineUnavailable.IsZero() || !f.Stop.Requested.IsZero() || f.Restart.pending() || Terminating(pod, *f) {
		return false
	}
	if len(Unmet(pod, *f)) > 0 || f.Sandbox.Failures > 0 && f.Sandbox.Reason.ofHost() {
		return false
	}
	return !slices.ContainsFunc(pod.InitContainers, func(c spec.Container) bool { return f.holdsEscalation(&c, !c.IsSidecar()) }) &&
		!slices.ContainsFunc(pod.Containers, func(c spec.Container) bool { return f.holdsEscalation(&c, false) })
}

// holdsEscalation reports whether a container waits for its image or its configuration, stops for a new run, or is starting up: an init
// container that runs, or a startup probe that has not succeeded.
func (f *Facts) holdsEscalation(c *spec.Container, init bool) bool {
	h := f.Container(c.Name)
	a := &h.Newest
	switch {
	case h.Pull.For > a.N() && h.Pull.Done.IsZero():
		return true // the image is being pulled, or cannot be pulled
	case a.misses() || !a.CreateFailed.IsZero() && a.Exit.Reason == ReasonCreateConfigError:
		return true
	case !a.running():
		return false
	}
	why := h.mustStop()
	return init || why == ReasonDefinitionChanged || why == ReasonDeviceRemoved || c.StartupProbe != nil && !a.started(c)
}

// CountUnready records that the pod's unready time counts from now on. See [RecordOnly].
type CountUnready struct{}

func (CountUnready) issued(f *Facts, at Instant) {
	f.Escalation.Since, f.Escalation.Ready = at, Instant{}
}

func (CountUnready) failed(*Facts, Failure, Instant) {}

// PauseUnready records that the pod's unready time does not count from now on: the pod is ready, or it waits for something that no
// step can change. See [RecordOnly].
type PauseUnready struct{ Ready bool }

func (a PauseUnready) issued(f *Facts, at Instant) {
	f.Escalation.count(at)
	f.Escalation.Ready = Instant{}
	if a.Ready {
		f.Escalation.Ready = at
	}
}

func (PauseUnready) failed(*Facts, Failure, Instant) {}

// EndEscalation records that the pod has recovered. See [RecordOnly].
type EndEscalation struct{}

func (EndEscalation) issued(f *Facts, _ Instant) { f.Escalation = Escalation{} }

func (EndEscalation) failed(*Facts, Failure, Instant) {}

// Escalate takes [StepRestart] or [StepReplace]. See [RecordOnly].
type Escalate struct {
	Step    Step
	Unready time.Duration // for how long the pod was unready
}

func (a Escalate) issued(f *Facts, at Instant) {
	f.Escalation = Escalation{Gap: f.Escalation.Gap, Step: a.Step, At: at}
	if a.Step == StepReplace {
		f.Restart = Restart{Requested: at, By: EscalationBy}
	}
}

func (Escalate) failed(*Facts, Failure, Instant) {}

// RestartUnhealthy restarts one container in [StepRestart], with its preStop hook and its grace period. See [RecordOnly].
type RestartUnhealthy struct{ Container string }

func (a RestartUnhealthy) issued(f *Facts, _ Instant) { f.replace(a.Container, ReasonRestartRequested) }

func (RestartUnhealthy) failed(*Facts, Failure, Instant) {}

// RebootHost requests a reboot of the host. Its outcome is [HostRebootRequested], or a failure if the reboot is held back.
type RebootHost struct{ Unready time.Duration }

func (a RebootHost) issued(f *Facts, at Instant) {
	e := &f.Escalation
	*e = Escalation{
		Gap: e.Gap, Step: StepReboot, At: at, Reboot: HostReboot{Requested: at, Reason: e.Reboot.Reason, Message: e.Reboot.Message},
	}
}

func (RebootHost) failed(f *Facts, why Failure, at Instant) {
	if r := &f.Escalation.Reboot; r.pending() {
		r.Failed, r.Reason, r.Message = at, why.Reason, why.Message
	}
}

// HostRebootRequested reports that the host was asked to reboot.
type HostRebootRequested struct{ At Instant }

func (e HostRebootRequested) apply(f *Facts) {
	if r := &f.Escalation.Reboot; r.pending() {
		r.Accepted, r.Reason, r.Message = e.At, "", ""
	}
}

// SupervisionGap reports that the pod was not supervised until now, because the daemon did not run or the host was suspended. The
// next step waits until probes have run again.
type SupervisionGap struct{ At Instant }

func (e SupervisionGap) apply(f *Facts) {
	if f.Escalation != (Escalation{}) {
		f.Escalation.Gap = e.At
	}
	f.Trial.resume(e.At)
}
