package lifecycle

import (
	"github.com/podstead/podstead/spec"
)

// Decide returns what the pod needs now. It is a pure function. Fold in every returned action as [Issued] before the next call,
// or it is returned again.
func Decide(pod *spec.Pod, f Facts, now Instant) Decision {
	p := plan{pod: pod, facts: &f, now: now}
	if !f.Removal.Done.IsZero() {
		p.decision.Removed = true
		return p.decision
	}
	p.cleanUp() // before a start, which drops the run that is removed here
	p.retire()
	p.tryOut()
	switch {
	case p.failExpired(), p.failRetried(), p.failWithJob():
	case !f.Stop.Requested.IsZero():
		p.terminate(ReasonStopped)
	case p.restartPod():
	case finished(pod, &f):
		p.terminate(ReasonPodFinished)
	case !p.held && p.restartAll():
	default:
		if !p.sandbox() {
			break
		}
		p.resize()
		p.ephemeralContainers()
		if p.initContainers() {
			p.appContainers()
		}
	}
	p.escalate()
	p.probes()
	if !f.EngineUnavailable.IsZero() && !f.phaseUnknown(now) && !f.Idle() {
		p.due(f.EngineUnavailable.Add(unavailableLimit + 1)) // wake up when the phase becomes Unknown
	}
	return p.decision
}

// RefOf returns the run that an action is about; the zero Ref if it is about none.
func RefOf(a Action) Ref {
	switch a := a.(type) {
	case StartContainer:
		return a.Ref
	case StopContainer:
		return a.Ref
	case KillContainer:
		return a.Ref
	case RunPostStart:
		return a.Ref
	case RunPreStop:
		return a.Ref
	case RemoveContainer:
		return a.Ref
	}
	return Ref{}
}

// RecordOnly reports whether an action only records a decision in the facts. Such an action has no effect outside of the facts
// and no outcome event.
func RecordOnly(a Action) bool {
	switch a.(type) {
	case StartRound, StartAgain, FailPod, WaitForTurn, ForgetContainer, StartWait,
		CountUnready, PauseUnready, EndEscalation, Escalate, RestartUnhealthy, TimeTrial, PassTrial, FailTrial:
		return true
	}
	return false
}
