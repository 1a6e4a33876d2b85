package lifecycle

import (
	"cmp"
	"time"

	"github.com/podstead/podstead/spec"
)

// terminate stops the pod: containers first, then the sandbox, then, if the pod was deleted, everything else.
func (p *plan) terminate(why Reason) {
	if p.cancelPulls()+p.stopAll(why) > 0 {
		return
	}
	switch s := &p.facts.Sandbox; {
	case s.inFlight():
	case s.mayExist():
		if p.removable(&s.Removal) {
			p.do(RemoveSandbox{Sandbox: s.N})
		}
	case p.facts.Stop.Delete && p.removable(&p.facts.Removal):
		p.do(RemovePod{})
	case !p.facts.Stop.ByUser && !p.facts.Collection.Requested.IsZero() && p.removable(&p.facts.Collection.Removal):
		p.do(CollectPod{})
	}
}

// cancelPulls cancels image pulls in progress and returns their number. A pull does not depend on the sandbox, so only the
// termination of the pod cancels it.
func (p *plan) cancelPulls() int {
	busy := 0
	for _, list := range [...][]spec.Container{p.pod.Containers, p.pod.InitContainers, p.facts.Ephemeral} {
		for i := range list {
			if p.cancelPull(list[i].Name) {
				busy++
			}
		}
	}
	return busy
}

// cancelPull cancels the pull of a container's image if it is in progress, and reports whether it is.
func (p *plan) cancelPull(container string) bool {
	pull := p.facts.Containers[container].Pull
	if pull.inFlight() && pull.Cancelled.IsZero() {
		p.do(CancelPull{Container: container, For: pull.For})
	}
	return pull.inFlight()
}

// stopAll stops all containers and returns the number of those that have not terminated. Sidecars support the app containers and
// the sidecars before them, so each gets its stop signal after the following ones have terminated (contract 7.3). Init
// containers and ephemeral containers are stopped at once. A restart of all containers does not stop ephemeral containers
// (contract 4.2). Removed containers are stopped by [plan.retire].
func (p *plan) stopAll(why Reason) int {
	busy := 0
	for i := range p.pod.Containers {
		h := p.facts.Containers[p.pod.Containers[i].Name]
		if h.Newest.live() {
			busy++
			p.stop(&p.pod.Containers[i], &h.Newest, why, true)
		}
	}
	ahead := busy
	if why != ReasonRestartingAllContainers {
		busy += p.stopEphemeralContainers(why)
	}
	for i := len(p.pod.InitContainers) - 1; i >= 0; i-- {
		c := &p.pod.InitContainers[i]
		h := p.facts.Containers[c.Name]
		if !h.Newest.live() {
			continue
		}
		busy++
		p.stop(c, &h.Newest, why, ahead == 0 || !c.IsSidecar())
		if c.IsSidecar() {
			ahead++
		}
	}
	return busy + p.retiring()
}

// stop terminates one run: preStop hook, stop signal, SIGKILL after the grace period, and SIGKILL again while the process
// exists. A start in progress is awaited, and its process is stopped then. A run whose turn has not come delays the stop signal,
// but not the preStop hook, and at most until its grace period ends. A run of an earlier definition is stopped with its hook.
func (p *plan) stop(c *spec.Container, a *Attempt, why Reason, turn bool) {
	if o := p.facts.outgoing(c.Name); o != nil && a.N() <= o.Attempt {
		c = &o.Container
	}
	switch {
	case a.Started.IsZero() && a.Retry.IsZero():
	case a.Started.IsZero():
		p.kill(a)
	case p.facts.Stop.Force, a.StopRequested.IsZero() && !a.KillRequested.IsZero(): // no stop signal after SIGKILL
		p.kill(a)
	case a.StopRequested.IsZero():
		p.signal(c, a, why, turn)
	case p.due(p.killDue(a)):
		p.kill(a)
	case !a.SignalFailed.IsZero() && p.due(a.SignalFailed.Add(unavailableDelay)):
		p.do(StopContainer{Ref: a.Ref, Grace: a.StopGrace, Reason: a.StopReason})
	}
}

// signal sends the stop signal after the preStop hook. The hook counts against the grace period, but the process has
// [minimumGrace] afterwards. There is no hook if no grace period is left.
func (p *plan) signal(c *spec.Container, a *Attempt, why Reason, turn bool) {
	left := p.remainingGrace(c, a, why)
	hooked := !hasPreStop(c) || !a.PreStop.Done.IsZero()
	switch {
	case left <= 0 || (hooked && turn):
		p.do(StopContainer{Ref: a.Ref, Grace: max(left, minimumGrace), Reason: cmp.Or(a.StopReason, why)})
	case !hooked && p.hookDue(&a.PreStop):
		p.do(RunPreStop{Ref: a.Ref, Limit: left, Reason: why})
	case hooked && a.TerminationRequested.IsZero():
		p.do(WaitForTurn{Ref: a.Ref, Limit: left, Reason: why})
	default:
		p.due(p.now.Add(left))
	}
}

// remainingGrace returns what is left of the grace period of a run that got no stop signal yet. The period starts when
// termination of the run is requested. The deadline of the pod can only shorten it. A restart of all containers gives no grace
// period (contract 4.2).
func (p *plan) remainingGrace(c *spec.Container, a *Attempt, why Reason) time.Duration {
	stop := &p.facts.Stop
	switch {
	case why == ReasonRestartingAllContainers:
		return 0
	case a.TerminationRequested.IsZero() && stop.Requested.IsZero():
		return p.grace(c, a, why)
	}
	return earlier(a.TerminationRequested.Add(a.TerminationGrace), stop.Deadline).Sub(p.now)
}

// grace returns the grace period of a run of the present or of an earlier definition, see [grace].
func (p *plan) grace(c *spec.Container, a *Attempt, why Reason) time.Duration {
	o := p.facts.outgoing(c.Name)
	if o != nil && a.N() <= o.Attempt && (why == ReasonDefinitionChanged || why == ReasonContainerRemoved) {
		return o.Grace
	}
	return grace(p.pod, c, why)
}

// killDue returns when a stopped run is killed. A deadline that was set or shortened after the stop signal applies, but the
// process has [minimumGrace].
func (p *plan) killDue(a *Attempt) Instant {
	due := a.StopRequested.Add(a.StopGrace)
	if stop := p.facts.Stop; !stop.Requested.IsZero() && stop.Deadline.Before(due) {
		due = later(stop.Deadline, a.StopRequested.Add(minimumGrace))
	}
	return due
}

func (p *plan) kill(a *Attempt) {
	signalFailed := !a.SignalFailed.IsZero() && p.due(a.SignalFailed.Add(unavailableDelay))
	if a.KillRequested.IsZero() || signalFailed || p.due(a.KillRequested.Add(killRepeat)) {
		p.do(KillContainer{Ref: a.Ref})
	}
}

// cleanUp cancels hooks that are no longer needed and removes terminated runs. It keeps the newest terminated run of each
// container for inspection. A deleted pod is removed as a whole by [RemovePod].
func (p *plan) cleanUp() {
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			h := p.facts.Containers[list[i].Name]
			p.cancelHooks(&h.Newest)
			if p.facts.Stop.Delete {
				continue
			}
			if h.Previous.terminated() && h.Newest.terminated() && p.removable(&h.Previous.Removal) {
				p.do(RemoveContainer{Ref: h.Previous.Ref})
			}
		}
	}
}

// cancelHooks cancels the hooks of a run that is stopped: the postStart hook at the start of its termination, the preStop hook
// when the signal is sent (deviations 1 and 2).
func (p *plan) cancelHooks(a *Attempt) {
	signalled := a.terminated() || !a.StopRequested.IsZero() || !a.KillRequested.IsZero()
	if h := &a.PostStart; h.inFlight() && h.Cancelled.IsZero() && (signalled || a.terminating()) {
		p.do(CancelHook{Ref: a.Ref, Hook: PostStart})
	}
	if h := &a.PreStop; h.inFlight() && h.Cancelled.IsZero() && signalled {
		p.do(CancelHook{Ref: a.Ref, Hook: PreStop})
	}
}

// removable reports whether a removal is neither done nor in progress, and its retry is due.
func (p *plan) removable(r *Removal) bool {
	return r.Done.IsZero() && !r.pending() && (r.Failed.IsZero() || p.due(r.Failed.Add(retryDelay)))
}
