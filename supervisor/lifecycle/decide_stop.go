package lifecycle

import (
	"cmp"
	"time"

	"github.com/podstead/podstead/spec"
)

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
	for _, list := range [...][]spec.Container{p.pod.Containers, p.pod.InitContainers, p.facts.Ephemeral} {
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

// stopAll stops whatever runs or is on its way, and returns how many there are. Sidecars serve the app containers and the
// sidecars before them, so each has its stop signal when those behind it have ended; init containers have no turn
// (contract 7.3), nor have ephemeral ones, which a restart of all containers leaves alone (contract 4.2).
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
		busy += p.stopEphemerals(why)
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
	return busy
}

// stop brings one run to its end: the preStop hook, the stop signal, SIGKILL when the grace period is over, and SIGKILL
// again as long as the process does not go. A start that has no outcome is waited for: it ends in one, and its process is
// stopped then. A run whose turn it is not waits with the signal, but not with the hook, and not for longer than it has.
func (p *plan) stop(c *spec.Container, a *Attempt, why Reason, turn bool) {
	switch {
	case a.Started.IsZero() && a.Retry.IsZero():
	case a.Started.IsZero():
		p.kill(a)
	case p.facts.Stop.Force:
		p.kill(a)
	case a.StopRequested.IsZero():
		p.signal(c, a, why, turn)
	case p.due(p.killDue(a)):
		p.kill(a)
	case !a.SignalFailed.IsZero() && p.due(a.SignalFailed.Add(unavailableDelay)):
		p.do(StopContainer{Ref: a.Ref, Grace: a.StopGrace, Reason: a.StopReason})
	}
}

// signal sends a run its stop signal, after its preStop hook. The hook is part of the grace period, but the process has
// [minimumGrace] after it all the same; where no grace is left there is no hook.
func (p *plan) signal(c *spec.Container, a *Attempt, why Reason, turn bool) {
	left := p.left(c, a, why)
	hooked := !hasPreStop(c) || !a.PreStop.Done.IsZero()
	switch {
	case left <= 0 || (hooked && turn):
		p.do(StopContainer{Ref: a.Ref, Grace: max(left, minimumGrace), Reason: cmp.Or(a.StopReason, why)})
	case !hooked && p.askable(&a.PreStop):
		p.do(RunPreStop{Ref: a.Ref, Limit: left, Reason: why})
	case hooked && a.TerminationRequested.IsZero():
		p.do(WaitForTurn{Ref: a.Ref, Limit: left, Reason: why})
	default:
		p.due(p.now.Add(left))
	}
}

// left is what is left of the grace period of a run that has had no stop signal yet. It begins with the end of the run; a
// stop of the pod has one for all, which can only shorten what a run was given before. A restart of all containers gives
// none (contract 4.2).
func (p *plan) left(c *spec.Container, a *Attempt, why Reason) time.Duration {
	stop := &p.facts.Stop
	switch {
	case why == ReasonRestartingAllContainers:
		return 0
	case a.TerminationRequested.IsZero() && stop.Requested.IsZero():
		return grace(p.pod, c, why)
	}
	return earlier(a.TerminationRequested.Add(a.TerminationGrace), stop.Deadline).Sub(p.now)
}

// killDue is when a run that was told to stop is killed. A deadline that was set or shortened after the signal holds,
// but the process keeps its least time.
func (p *plan) killDue(a *Attempt) Instant {
	due := a.StopRequested.Add(a.StopGrace)
	if stop := p.facts.Stop; !stop.Requested.IsZero() && stop.Deadline.Before(due) {
		due = later(stop.Deadline, a.StopRequested.Add(minimumGrace))
	}
	return due
}

func (p *plan) kill(a *Attempt) {
	unsent := !a.SignalFailed.IsZero() && p.due(a.SignalFailed.Add(unavailableDelay))
	if a.KillRequested.IsZero() || unsent || p.due(a.KillRequested.Add(killRepeat)) {
		p.do(KillContainer{Ref: a.Ref})
	}
}

// tidy ends what has outlived its purpose: hooks whose run is over or was sent its signal, and what dead runs have left,
// but for the newest dead run of each container, which a person may want to look at. Of a pod that is deleted everything
// goes in one.
func (p *plan) tidy() {
	for _, list := range [...][]spec.Container{p.pod.InitContainers, p.pod.Containers} {
		for i := range list {
			h := p.facts.Containers[list[i].Name]
			p.cancelHooks(&h.Newest)
			if p.facts.Stop.Delete {
				continue
			}
			if h.Previous.over() && h.Newest.over() && p.removable(&h.Previous.Removal) {
				p.do(RemoveContainer{Ref: h.Previous.Ref})
			}
		}
	}
}

// cancelHooks ends the hooks of a run that nobody waits for any more: a stop interrupts a postStart hook, and a preStop
// hook has its time (DEVIATIONS 1 and 2).
func (p *plan) cancelHooks(a *Attempt) {
	signalled := a.over() || !a.StopRequested.IsZero() || !a.KillRequested.IsZero()
	if h := &a.PostStart; h.inFlight() && h.Cancelled.IsZero() && (signalled || a.ending()) {
		p.do(CancelHook{Ref: a.Ref, Hook: PostStart})
	}
	if h := &a.PreStop; h.inFlight() && h.Cancelled.IsZero() && signalled {
		p.do(CancelHook{Ref: a.Ref, Hook: PreStop})
	}
}

// removable reports whether a removal is neither done nor under way, and has not failed just now.
func (p *plan) removable(r *Removal) bool {
	return r.Done.IsZero() && !r.pending() && (r.Failed.IsZero() || p.due(r.Failed.Add(retryDelay)))
}
