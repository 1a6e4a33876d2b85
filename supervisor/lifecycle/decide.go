package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// The fixed delays of the contract; what a pod file can set is in [spec.Backoff].
const (
	// retryDelay is how long what failed for a reason of its own waits to be tried again (the kubelet's backOffPeriod,
	// without its jitter).
	retryDelay = 10 * time.Second
	// unavailableDelay is how long to wait before an engine that was away is asked again.
	unavailableDelay = time.Second
	// sandboxPace is the least time from one start of a sandbox to the next (the pace of the kubelet's relist), so that
	// one which is lost at once is not made again without end.
	sandboxPace = time.Second
	// killRepeat is how long a killed process may go on before it is killed again.
	killRepeat = 10 * time.Second
)

// Decision is what [Decide] found. It says nothing of the status: see [StatusOf].
type Decision struct {
	Actions []Action // to be done now, in this order
	Wake    Instant  // when to decide again if nothing happens before; zero: only an event changes anything
	Gone    bool     // nothing of the pod is left, and nothing will ever happen to it again
}

// Decide says what a pod needs now. It is pure: the same arguments give the same answer. Every action in the answer is
// to be folded in as [Issued] before the next call, or it is given again.
func Decide(pod *spec.Pod, f Facts, now Instant) Decision {
	p := plan{pod: pod, facts: &f, now: now}
	if !f.Removal.Done.IsZero() {
		p.decision.Gone = true
		return p.decision
	}
	p.reap() // before a start, which forgets the run that is reaped
	switch {
	case !f.Stop.Asked.IsZero():
		p.end(ReasonStopped)
	case !f.Evicted.At.IsZero():
		p.end(ReasonEvicted)
	case finished(pod, &f):
		p.end(ReasonPodFinished)
	default:
		if p.sandbox() && p.inits() {
			p.apps()
		}
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
	case s.N > 0 && !p.due(s.Asked.Add(sandboxPace)):
	default:
		p.do(StartSandbox{Sandbox: s.N + 1, Round: p.facts.Round + 1})
	}
	return false
}

// inits brings the init containers forward, one after another, and reports whether all of them are done in this round.
// An app container that was asked for in this round proves it: a record of a finished init container may be gone.
func (p *plan) inits() bool {
	for i := range p.pod.Containers {
		if a := p.facts.Containers[p.pod.Containers[i].Name].Newest; a.Round == p.facts.Round {
			return true
		}
	}
	for i := range p.pod.InitContainers {
		c := &p.pod.InitContainers[i]
		h := p.facts.Containers[c.Name]
		switch a := &h.Newest; {
		case initDone(a, p.facts.Round):
		case a.live():
			p.await(a)
			return false
		default:
			p.run(c, &h, true)
			return false
		}
	}
	return true
}

// apps brings the app containers forward. The first start of each in a round waits for the outcome of those before it,
// so that they start in the order of the file; a restart waits for nobody.
func (p *plan) apps() {
	blocked := false
	for i := range p.pod.Containers {
		c := &p.pod.Containers[i]
		h := p.facts.Containers[c.Name]
		a := &h.Newest
		first := a.Round != p.facts.Round || (!a.ran() && a.Refused.IsZero())
		switch {
		case a.live():
			p.await(a)
		case a.over() && !restarts(p.pod, a.Exit):
		default:
			p.run(c, &h, !first || !blocked)
		}
		blocked = blocked || (first && (a.live() || p.pulling(c.Name)))
	}
}

// pulling reports whether the container's image is on its way, an action of this very decision included.
func (p *plan) pulling(name string) bool {
	pull := p.facts.Containers[name].Pull
	if pull.inFlight() {
		return true
	}
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

// await looks after a run whose start had no outcome because the engine was away.
func (p *plan) await(a *Attempt) {
	if a.Started.IsZero() && !a.Retry.IsZero() && p.due(a.Retry.Add(unavailableDelay)) {
		p.do(StartContainer{Ref: a.Ref, Sandbox: a.Sandbox, Restarts: a.Restarts})
	}
}

// run brings a container that does not run one step towards its next run: wait out the backoff, have its image, start.
// Its image may be fetched before it may start.
func (p *plan) run(c *spec.Container, h *Container, mayStart bool) {
	at, level := restartDue(p.pod, c, h, p.facts.Round)
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
		return
	}
	p.do(PullImage{Container: name, For: attempt, Level: pullLevel(pull, p.now)})
}

// end brings the pod to rest: containers first, then the sandbox, then, if the pod was deleted, all the rest.
func (p *plan) end(why Reason) {
	if p.cancelPulls()+p.stopAll(why) > 0 {
		return
	}
	switch s := &p.facts.Sandbox; {
	case s.inFlight():
	case s.standing():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	case p.facts.Stop.Delete && p.removable(&p.facts.Removal):
		p.do(RemovePod{})
	}
}

// cancelPulls cancels whatever is being pulled, and returns how many pulls there are. A pull outlives the sandbox: only
// the end of the pod ends it.
func (p *plan) cancelPulls() int {
	busy := 0
	for _, list := range [...][]spec.Container{p.pod.Containers, p.pod.InitContainers} {
		for i := range list {
			pull := p.facts.Containers[list[i].Name].Pull
			if !pull.inFlight() {
				continue
			}
			busy++
			if pull.Cancelled.IsZero() {
				p.do(CancelPull{Container: list[i].Name, For: pull.For})
			}
		}
	}
	return busy
}

// stopAll stops whatever runs or is on its way, and returns how many there are.
func (p *plan) stopAll(why Reason) int {
	busy := 0
	for _, list := range [...][]spec.Container{p.pod.Containers, p.pod.InitContainers} {
		for i := range list {
			h := p.facts.Containers[list[i].Name]
			if h.Newest.live() {
				busy++
				p.stop(&h.Newest, why)
			}
		}
	}
	return busy
}

// stop brings one run to its end: the stop signal, SIGKILL when the grace period is over, and SIGKILL again as long as
// the process does not go. A start that has no outcome is waited for: it ends in one, and its process is stopped then.
func (p *plan) stop(a *Attempt, why Reason) {
	switch {
	case a.Started.IsZero() && a.Retry.IsZero():
	case a.Started.IsZero():
		p.kill(a)
	case p.facts.Stop.Force:
		p.kill(a)
	case a.StopAsked.IsZero():
		p.do(StopContainer{Ref: a.Ref, Grace: p.grace(), Reason: why})
	case p.due(p.killDue(a)):
		p.kill(a)
	case !a.Unsent.IsZero() && p.due(a.Unsent.Add(unavailableDelay)):
		p.do(StopContainer{Ref: a.Ref, Grace: a.StopGrace, Reason: a.StopReason})
	}
}

// grace is the time that a container has from now on until it is killed.
func (p *plan) grace() time.Duration {
	grace := p.pod.TerminationGracePeriodSeconds.Duration()
	if !p.facts.Evicted.At.IsZero() {
		grace = evictionGrace
	}
	if !p.facts.Stop.Asked.IsZero() {
		grace = p.facts.Stop.Deadline.Sub(p.now)
	}
	return max(grace, minimumGrace)
}

// killDue is when a run that was told to stop is killed. A deadline that was set or shortened after the signal holds,
// but the process keeps its least time.
func (p *plan) killDue(a *Attempt) Instant {
	due := a.StopAsked.Add(a.StopGrace)
	if stop := p.facts.Stop; !stop.Asked.IsZero() && stop.Deadline.Before(due) {
		due = later(stop.Deadline, a.StopAsked.Add(minimumGrace))
	}
	return due
}

func (p *plan) kill(a *Attempt) {
	unsent := !a.Unsent.IsZero() && p.due(a.Unsent.Add(unavailableDelay))
	if a.KillAsked.IsZero() || unsent || p.due(a.KillAsked.Add(killRepeat)) {
		p.do(KillContainer{Ref: a.Ref})
	}
}

// reap takes away what dead runs have left, but for the newest dead run of each container, which a person may want to
// look at. Of a pod that is deleted everything goes in one.
func (p *plan) reap() {
	if p.facts.Stop.Delete {
		return
	}
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			h := p.facts.Containers[list[i].Name]
			if h.Previous.over() && h.Newest.over() && p.removable(&h.Previous.Removal) {
				p.do(RemoveContainer{Ref: h.Previous.Ref})
			}
		}
	}
}

// removable reports whether a removal is neither done nor under way, and has not failed just now.
func (p *plan) removable(r *Removal) bool {
	return r.Done.IsZero() && !r.pending() && (r.Failed.IsZero() || p.due(r.Failed.Add(retryDelay)))
}
