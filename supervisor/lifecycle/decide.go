package lifecycle

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// Decision is the result of [Decide]. It does not contain the status: see [StatusOf].
type Decision struct {
	Actions []Action     // to be carried out now, in this order
	Probes  []ProbeOrder // the probes that must run, and no others
	Waits   []WaitRef    // the conditions that must be watched, and no others
	Wake    Instant      // when to decide again if no event arrives before; zero: only an event can change the decision
	Removed bool         // everything of the pod is removed; no further decision is needed
}

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
	case p.failExpired():
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

// sandbox ensures that there is a sandbox to start containers in, and reports whether it is ready. Before a lost sandbox is
// removed, the containers that still run in it are stopped.
func (p *plan) sandbox() bool {
	s := &p.facts.Sandbox
	switch {
	case s.ready():
		return true
	case s.inFlight():
		return false
	case p.stopAll(ReasonSandboxChanged) > 0:
	case p.held:
	case s.Unavailable && s.Lost.IsZero() && s.Removal.Requested.IsZero(): // after a reboot the pod waits first
		if p.due(s.Failed.Add(unavailableDelay)) {
			p.do(StartSandbox{Sandbox: s.N, Round: p.facts.Round})
		}
	case s.mayExist():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	case !s.Failed.IsZero() && !p.due(s.Failed.Add(sandboxDelay(s))):
	case p.facts.Collection.Removal.pending(): // what the new sandbox creates must not be removed
	case !p.waited():
	case s.N > 0 && !p.due(s.Requested.Add(sandboxPace)):
	default:
		p.do(StartSandbox{Sandbox: s.N + 1, Round: p.facts.Round + 1})
	}
	return false
}

// initContainers starts the init containers, one after another, and reports whether all have passed in this round: init
// containers completed, sidecars started. It keeps the sidecars that have passed running.
func (p *plan) initContainers() bool {
	turn := NextInitContainer(p.pod, *p.facts)
	for i := range p.pod.InitContainers {
		c := &p.pod.InitContainers[i]
		h := p.facts.Containers[c.Name]
		if c.IsSidecar() || c.Name == turn {
			p.ensureRunning(c, &h)
		}
		if c.Name == turn {
			return false
		}
	}
	return true
}

// NextInitContainer returns the init container that the following ones wait for in this round; empty if all have passed (the
// kubelet's findNextInitContainerToRun).
func NextInitContainer(pod *spec.Pod, f Facts) string {
	for i := reached(pod, &f); i < len(pod.InitContainers); i++ {
		c := &pod.InitContainers[i]
		if a := f.Containers[c.Name].Newest; !initPassed(c, &a, f.Round) {
			return c.Name
		}
	}
	return ""
}

// reached returns how many init containers are known to have passed in this round. A run of an init container proves it for
// those before, because the record of a completed init container may have been removed; a run of an app container proves it for
// all.
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

// ensureRunning checks a running container, or takes the next step towards its next run.
func (p *plan) ensureRunning(c *spec.Container, h *Container) {
	if h.Newest.live() {
		p.checkRunning(c, h)
	} else {
		p.startNext(c, h, true)
	}
}

// appContainers starts the app containers. The first start of each in a round waits for the outcome of the previous ones,
// postStart hooks included, so that they start in the order of the pod file. Restarts do not wait.
func (p *plan) appContainers() {
	blocked := false
	for i := range p.pod.Containers {
		c := &p.pod.Containers[i]
		h := p.facts.Containers[c.Name]
		a := &h.Newest
		first := p.facts.firstInRound(a)
		switch {
		case a.live():
			p.checkRunning(c, &h)
		case p.facts.countsAsTerminated(a) && !shouldRestart(p.pod, c, a):
		default:
			p.startNext(c, &h, !first || !blocked)
		}
		blocked = blocked || p.facts.startInProgress(c) || (first && p.planned(c.Name))
	}
}

// firstInRound reports whether an app container is not known to have run in this round yet.
func (f *Facts) firstInRound(a *Attempt) bool {
	return a.Round != f.Round || (!a.ran() && a.CreateFailed.IsZero())
}

// startInProgress reports whether the first start of an app container in this round is in progress, including its image pull and
// its postStart hook.
func (f *Facts) startInProgress(c *spec.Container) bool {
	h := f.Containers[c.Name]
	a := &h.Newest
	return a.postStartPending(c) && h.Previous.Round != a.Round || f.firstInRound(a) && (a.live() || h.Pull.inFlight())
}

// StartBlockedBy returns the app container whose start the given one waits for; empty if it waits for none.
func StartBlockedBy(pod *spec.Pod, f Facts, container string) string {
	own := slices.IndexFunc(pod.Containers, func(c spec.Container) bool { return c.Name == container })
	for i := range max(own, 0) {
		if f.startInProgress(&pod.Containers[i]) {
			return pod.Containers[i].Name
		}
	}
	return ""
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

// checkRunning retries a start that failed because the engine was unavailable, runs the postStart hook of a run that has just
// started, and stops a run that must stop.
func (p *plan) checkRunning(c *spec.Container, h *Container) {
	a := &h.Newest
	switch why := h.mustStop(); {
	case why != "":
		p.stop(c, a, why, true)
	case a.Started.IsZero():
		if !a.Retry.IsZero() && !p.held && p.due(a.Retry.Add(unavailableDelay)) {
			p.do(StartContainer{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts, ImageID: h.Image.ID})
		}
	case a.postStartPending(c):
		if p.hookDue(&a.PostStart) {
			p.do(RunPostStart{Ref: a.Ref})
		}
	}
}

// hookDue reports whether a hook must be run: it was not run yet, or its retry is due after the engine was unavailable.
func (p *plan) hookDue(h *Hook) bool {
	return h.Requested.IsZero() || (!h.Retry.IsZero() && p.due(h.Retry.Add(unavailableDelay)))
}

// startNext takes the next step towards the next run of a container: wait for the back-off, get the image, start. The image may
// be pulled before mayStart is true.
func (p *plan) startNext(c *spec.Container, h *Container, mayStart bool) {
	if p.held {
		return
	}
	at, level := restartDue(p.pod, p.facts, c, h)
	if !p.due(at) {
		return
	}
	next := p.facts.nextAttempt(h)
	if h.Pull.For != next || h.Pull.Done.IsZero() {
		p.pull(c.Name, h, next)
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
		Sandbox: p.facts.Sandbox.N, Restarts: restarts, Backoff: level, ImageID: h.Image.ID,
	})
}

// pull pulls the image for the given attempt, unless a pull is in progress or backs off.
func (p *plan) pull(name string, h *Container, attempt int) {
	pull := &h.Pull
	switch {
	case pull.inFlight():
		return
	case !pull.Retry.IsZero() && !p.due(pull.Retry.Add(unavailableDelay)):
		return
	case !pull.Failed.IsZero() && !p.due(pull.Failed.Add(pullDelay(pull))):
		p.find(name, h, attempt)
		return
	}
	p.do(PullImage{
		Container: name, For: attempt, Level: pullLevel(pull, p.now), Image: h.Image, Imported: p.facts.imported(),
	})
}

// find checks for an image whose pull backs off: another pod may have pulled it, or it was imported from an archive. Only pulls
// back off (contract 4.4).
func (p *plan) find(name string, h *Container, attempt int) {
	if pull := &h.Pull; pull.For != attempt || p.due(later(pull.Failed, pull.Checked).Add(retryDelay)) {
		p.do(FindImage{Container: name, For: attempt, Image: h.Image})
	}
}
