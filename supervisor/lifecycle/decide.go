package lifecycle

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// Decision is what [Decide] found. It says nothing of the status: see [StatusOf].
type Decision struct {
	Actions []Action     // to be done now, in this order
	Probes  []ProbeOrder // which probes are to be on, and no others
	Wake    Instant      // when to decide again if nothing happens before; zero: only an event changes anything
	Removed bool         // nothing of the pod is left, and nothing will ever happen to it again
}

// Decide says what a pod needs now. It is pure: the same arguments give the same answer. Every action in the answer is
// to be folded in as [Issued] before the next call, or it is given again.
func Decide(pod *spec.Pod, f Facts, now Instant) Decision {
	p := plan{pod: pod, facts: &f, now: now}
	if !f.Removal.Done.IsZero() {
		p.decision.Removed = true
		return p.decision
	}
	p.tidy() // before a start, which forgets the run that is reaped
	switch {
	case p.expired():
	case !f.Stop.Requested.IsZero():
		p.end(ReasonStopped)
	case finished(pod, &f):
		p.end(ReasonPodFinished)
	case p.restartAll():
	default:
		if !p.sandbox() {
			break
		}
		p.ephemerals()
		if p.inits() {
			p.apps()
		}
	}
	p.probes()
	if !f.EngineUnavailable.IsZero() && !f.unknown(now) && !f.Idle() {
		p.due(f.EngineUnavailable.Add(unavailableLimit + 1)) // the status will say so
	}
	return p.decision
}

// plan is one decision in the making.
type plan struct {
	pod      *spec.Pod
	facts    *Facts
	now      Instant
	decision Decision
}

func (p *plan) do(a Action) { p.decision.Actions = append(p.decision.Actions, a) }

// due reports whether the instant has come; if not, it is a reason to wake.
func (p *plan) due(t Instant) bool {
	if p.now.Before(t) {
		p.decision.Wake = earlier(p.decision.Wake, t)
		return false
	}
	return true
}

// sandbox makes sure that there is a sandbox to start containers in, and reports whether there is. One that was lost is
// taken away first, and before that whatever still runs in it.
func (p *plan) sandbox() bool {
	s := &p.facts.Sandbox
	switch {
	case s.ready():
		return true
	case s.inFlight():
		return false
	case p.stopAll(ReasonSandboxChanged) > 0:
	case s.Unavailable:
		if p.due(s.Failed.Add(unavailableDelay)) {
			p.do(StartSandbox{Sandbox: s.N, Round: p.facts.Round})
		}
	case s.standing():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	case !s.Failed.IsZero() && !p.due(s.Failed.Add(sandboxDelay(s))):
	case s.N > 0 && !p.due(s.Requested.Add(sandboxPace)):
	default:
		p.do(StartSandbox{Sandbox: s.N + 1, Round: p.facts.Round + 1})
	}
	return false
}

// inits brings the init containers forward, one after another, and reports whether all of them have had their turn in this
// round: an init container that is done, a sidecar that is started. Sidecars whose turn is over are kept running.
func (p *plan) inits() bool {
	turn := NextInitContainer(p.pod, *p.facts)
	for i := range p.pod.InitContainers {
		c := &p.pod.InitContainers[i]
		h := p.facts.Containers[c.Name]
		if c.IsSidecar() || c.Name == turn {
			p.keep(c, &h)
		}
		if c.Name == turn {
			return false
		}
	}
	return true
}

// Turn is the init container whose turn it is in this round, for which all behind it wait; empty if all have had theirs.
func NextInitContainer(pod *spec.Pod, f Facts) string {
	for i := reached(pod, &f); i < len(pod.InitContainers); i++ {
		c := &pod.InitContainers[i]
		if a := f.Containers[c.Name].Newest; !passed(c, &a, f.Round) {
			return c.Name
		}
	}
	return ""
}

// reached is how many init containers are known to have had their turn in this round. Who was asked for proves it for
// those before, as a record of a finished init container may be gone; an app container proves it for all.
func reached(pod *spec.Pod, f *Facts) int {
	for i := range pod.Containers {
		if f.Containers[pod.Containers[i].Name].Newest.Round == f.Round {
			return len(pod.InitContainers)
		}
	}
	newest := 0
	for i := range pod.InitContainers {
		if f.Containers[pod.InitContainers[i].Name].Newest.Round == f.Round {
			newest = i
		}
	}
	return newest
}

// keep looks after a container that is to run: one that lives, or the way to its next run.
func (p *plan) keep(c *spec.Container, h *Container) {
	if h.Newest.live() {
		p.attend(c, &h.Newest)
	} else {
		p.run(c, h, true)
	}
}

// apps brings the app containers forward. The first start of each in a round waits for the outcome of those before it,
// their postStart hooks included, so that they start in the order of the file; a restart waits for nobody.
func (p *plan) apps() {
	blocked := false
	for i := range p.pod.Containers {
		c := &p.pod.Containers[i]
		h := p.facts.Containers[c.Name]
		a := &h.Newest
		first := p.facts.first(a)
		switch {
		case a.live():
			p.attend(c, a)
		case p.facts.counts(a) && !restarts(p.pod, c, a):
		default:
			p.run(c, &h, !first || !blocked)
		}
		blocked = blocked || p.facts.holdsUp(c) || (first && p.begun(c.Name))
	}
}

// first reports whether an app container has not run in this round yet, as far as is known.
func (f *Facts) first(a *Attempt) bool {
	return a.Round != f.Round || (!a.ran() && a.CreateFailed.IsZero())
}

// holdsUp reports whether the first start of an app container in this round is under way, its image and its postStart hook included.
func (f *Facts) holdsUp(c *spec.Container) bool {
	h := f.Containers[c.Name]
	a := &h.Newest
	return a.hooking(c) && h.Previous.Round != a.Round || f.first(a) && (a.live() || h.Pull.inFlight())
}

// Ahead is the app container for whose start one that is behind it in the file waits; empty if it waits for none.
func StartBlockedBy(pod *spec.Pod, f Facts, container string) string {
	own := slices.IndexFunc(pod.Containers, func(c spec.Container) bool { return c.Name == container })
	for i := range max(own, 0) {
		if f.holdsUp(&pod.Containers[i]) {
			return pod.Containers[i].Name
		}
	}
	return ""
}

// begun reports whether this very decision pulls the image of a container, or starts it.
func (p *plan) begun(name string) bool {
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

// attend looks after a run that lives: one whose start had no outcome because the engine was away is asked for again, one
// that has just started gets its postStart hook, and one that has to end does.
func (p *plan) attend(c *spec.Container, a *Attempt) {
	switch why := a.doomed(); {
	case why != "":
		p.stop(c, a, why, true)
	case a.Started.IsZero():
		if !a.Retry.IsZero() && p.due(a.Retry.Add(unavailableDelay)) {
			p.do(StartContainer{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts})
		}
	case a.hooking(c):
		if p.askable(&a.PostStart) {
			p.do(RunPostStart{Ref: a.Ref})
		}
	}
}

// askable reports whether a hook is to be asked for: it was not yet, or the engine was away a while ago.
func (p *plan) askable(h *Hook) bool {
	return h.Requested.IsZero() || (!h.Retry.IsZero() && p.due(h.Retry.Add(unavailableDelay)))
}

// run brings a container that does not run one step towards its next run: wait out the backoff, have its image, start.
// Its image may be fetched before it may start.
func (p *plan) run(c *spec.Container, h *Container, mayStart bool) {
	at, level := restartDue(p.pod, p.facts, c, h)
	if !p.due(at) {
		return
	}
	next := h.Newest.N() + 1
	if h.Pull.For != next || h.Pull.Done.IsZero() {
		p.pull(c.Name, &h.Pull, next)
		return
	}
	if !mayStart {
		return
	}
	restarts := h.Newest.Restarts
	if h.Newest.ran() {
		restarts++
	}
	p.do(StartContainer{
		Ref:     Ref{Container: c.Name, Round: p.facts.Round, Attempt: next},
		Sandbox: p.facts.Sandbox.N, Restarts: restarts, Backoff: level,
	})
}

// pull asks for the image of the given attempt, unless it is on its way or backs off.
func (p *plan) pull(name string, pull *Pull, attempt int) {
	switch {
	case pull.inFlight():
		return
	case !pull.Retry.IsZero() && !p.due(pull.Retry.Add(unavailableDelay)):
		return
	case !pull.Failed.IsZero() && !p.due(pull.Failed.Add(pullDelay(pull))):
		p.find(name, pull, attempt)
		return
	}
	p.do(PullImage{Container: name, For: attempt, Level: pullLevel(pull, p.now)})
}

// find looks for an image whose pull backs off: it may have come with another pod, or from an archive. Only pulls have to wait
// (contract 4.4).
func (p *plan) find(name string, pull *Pull, attempt int) {
	if pull.For != attempt || p.due(later(pull.Failed, pull.Checked).Add(retryDelay)) {
		p.do(FindImage{Container: name, For: attempt})
	}
}
