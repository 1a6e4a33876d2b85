package lifecycle

import (
	"github.com/podstead/podstead/spec"
)

// Decision is the result of [Decide]. It does not contain the status: see [StatusOf].
type Decision struct {
	Actions []Action      // to be carried out now, in this order
	Probes  []ProbeOrder  // the probes that must run, and no others
	Waits   []WaitRef     // the conditions that must be watched, and no others
	Devices []DeviceOrder // the runs whose devices must be watched, and no others
	Wake    Instant       // when to decide again if no event arrives before; zero: only an event can change the decision
	Removed bool          // everything of the pod is removed; no further decision is needed
}

// plan is a decision under construction.
type plan struct {
	pod      *spec.Pod
	facts    *Facts
	now      Instant
	decision Decision
	held     bool // no container is started: see [Trial.Holds]
}

func (p *plan) do(a Action) { p.decision.Actions = append(p.decision.Actions, a) }

// due reports whether the instant has passed. If not, the decision wakes up then.
func (p *plan) due(t Instant) bool {
	if p.now.Before(t) {
		p.decision.Wake = earlier(p.decision.Wake, t)
		return false
	}
	return true
}

// planned reports whether this decision pulls the image of a container or starts it.
func (p *plan) planned(name string) bool {
	for _, a := range p.decision.Actions {
		switch a := a.(type) {
		case PullImage:
			if a.Container == name {
				return true
			}
		case StartContainer:
			if a.Container == name {
				return true
			}
		}
	}
	return false
}
