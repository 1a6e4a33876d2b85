package lifecycle

import (
	"slices"

	"github.com/podstead/podstead/spec"
)

// The actions of [spec.RestartRule].
const (
	actionRestart    = "Restart"
	actionRestartAll = "RestartAllContainers"
)

// StartRound opens a round in the current sandbox after all containers of the previous round have terminated, for a restart of
// all containers (KEP-5532). Runs of earlier rounds are reset: decisions ignore them, as if the engine had no record of them.
// See [RecordOnly].
type StartRound struct {
	Round int
	By    Ref // the run whose exit triggered it
}

func (a StartRound) issued(f *Facts, at Instant) {
	f.Round, f.Restarted, f.RestartedAt = a.Round, a.Round, at
}

func (StartRound) failed(*Facts, Failure, Instant) {}

// wasReset reports whether a run belongs to a round before the newest restart of all containers.
func (f *Facts) wasReset(a *Attempt) bool {
	return a.N() > 0 && a.Round < f.Restarted && !f.ephemeral(a.Container)
}

// countsAsTerminated reports whether a run has terminated and was not superseded.
func (f *Facts) countsAsTerminated(a *Attempt) bool { return a.terminated() && !f.superseded(a) }

// restartAll restarts all containers if an exit triggers it, and reports whether it does (contract 4.2). It stops all containers
// with the minimum grace period and without hooks, then opens a new round.
func (p *plan) restartAll() bool {
	by := restartAllTrigger(p.pod, p.facts)
	if by == (Ref{}) {
		return false
	}
	if p.stopAll(ReasonRestartingAllContainers) == 0 && p.due(p.earliestRound()) {
		p.do(StartRound{Round: p.facts.Round + 1, By: by})
	}
	return true
}

// earliestRound returns when the next restart of all containers may happen. There is no back-off (contract 4.2), only a minimum
// interval, which bounds the rate for a pod whose containers exit at once.
func (p *plan) earliestRound() Instant {
	if p.facts.Restarted != p.facts.Round {
		return Instant{}
	}
	return p.facts.RestartedAt.Add(sandboxPace)
}

// restartAllTrigger returns the run whose exit triggers a restart of all containers, the earliest if there are several; the zero
// Ref if there is none. The exit of a sidecar after the pod's work was finished triggers nothing (contract 7.4).
func restartAllTrigger(pod *spec.Pod, f *Facts) Ref {
	var by Attempt
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			a := f.Containers[list[i].Name].Newest
			if f.triggersRestartAll(&list[i], &a) && (!by.terminated() || a.Exited.Before(by.Exited)) {
				by = a
			}
		}
	}
	if over := WorkFinishedAt(pod, f); !over.IsZero() && over.Before(by.Exited) {
		return Ref{}
	}
	return by.Ref
}

// triggersRestartAll reports whether the exit of a run triggers a restart of all containers of its round. It does not if the
// sandbox was lost, because that opens a new round anyway.
func (f *Facts) triggersRestartAll(c *spec.Container, a *Attempt) bool {
	return f.Sandbox.ready() && a.Round == f.Round && a.terminated() && ruleAction(c, a.Exit) == actionRestartAll && !f.superseded(a)
}

// hasRestartAllRule reports whether a container of the pod has a RestartAllContainers rule.
func hasRestartAllRule(pod *spec.Pod) bool {
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if slices.ContainsFunc(list[i].RestartPolicyRules, func(r spec.RestartRule) bool { return r.Action == actionRestartAll }) {
				return true
			}
		}
	}
	return false
}
