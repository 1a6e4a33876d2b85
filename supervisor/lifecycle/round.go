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

// BeginRound opens a round in the sandbox that stands, after everything of the one before has ended, for a restart of all
// containers (KEP-5532). Runs of earlier rounds are void then: they are no reason to wait or not to run, as if the engine
// had no record of them. It has no effect outside of the facts: see [Noted].
type BeginRound struct {
	Round int
	By    Ref // the run whose end asked for it
}

func (a BeginRound) issued(f *Facts, at Instant) {
	f.Round, f.Restarted, f.RestartedAt = a.Round, a.Round, at
}

func (BeginRound) failed(*Facts, Failure, Instant) {}

// Noted reports whether an action is done by being issued: it only makes the facts remember what was decided. It has no
// effect, and no outcome.
func Noted(a Action) bool {
	switch a.(type) {
	case BeginRound, EndPod, AwaitTurn:
		return true
	}
	return false
}

// void reports whether a run is of a round that a restart of all containers has ended.
func (f *Facts) void(a *Attempt) bool {
	return a.N() > 0 && a.Round < f.Restarted && !f.ephemeral(a.Container)
}

// counts reports whether a run is over and is a reason for what happens next.
func (f *Facts) counts(a *Attempt) bool { return a.over() && !f.void(a) }

// restartAll brings a restart of all containers forward, if the end of a run asks for one, and reports whether it does
// (contract 4.2): whatever lives ends with no grace but the least, and without hooks, and a new round begins.
func (p *plan) restartAll() bool {
	by := restartAllBy(p.pod, p.facts)
	if by == (Ref{}) {
		return false
	}
	if p.stopAll(ReasonRestartingAllContainers) == 0 && p.due(p.earliestRound()) {
		p.do(BeginRound{Round: p.facts.Round + 1, By: by})
	}
	return true
}

// earliestRound is when another round may begin in place: there is no backoff (contract 4.2), but a pace, so that a pod
// which asks at once is not begun again without end.
func (p *plan) earliestRound() Instant {
	if p.facts.Restarted != p.facts.Round {
		return Instant{}
	}
	return p.facts.RestartedAt.Add(sandboxPace)
}

// restartAllBy returns the run whose end asks for a restart of all containers, the first one if several do; the zero Ref:
// none does. What a sidecar says after the work that it served was over asks for nothing (contract 7.4).
func restartAllBy(pod *spec.Pod, f *Facts) Ref {
	var by Attempt
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			a := f.Containers[list[i].Name].Newest
			if f.restartsAllBy(&list[i], &a) && (!by.over() || a.Exited.Before(by.Exited)) {
				by = a
			}
		}
	}
	if over := WorkEnd(pod, f); !over.IsZero() && over.Before(by.Exited) {
		return Ref{}
	}
	return by.Ref
}

// restartsAllBy reports whether the end of a run asks for a restart of all containers of its round. A pod whose sandbox was
// lost begins a new round anyway.
func (f *Facts) restartsAllBy(c *spec.Container, a *Attempt) bool {
	return f.Sandbox.ready() && a.Round == f.Round && a.over() && ruled(c, a.Exit) == actionRestartAll
}

// restartsAll reports whether a pod has a rule that restarts all of it.
func restartsAll(pod *spec.Pod) bool {
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if slices.ContainsFunc(list[i].RestartPolicyRules, func(r spec.RestartRule) bool { return r.Action == actionRestartAll }) {
				return true
			}
		}
	}
	return false
}

// ruled returns the action of the first rule of a container that an exit matches; empty if none does (contract 4.1).
func ruled(c *spec.Container, exit Exit) string {
	for i := range c.RestartPolicyRules {
		rule := &c.RestartPolicyRules[i]
		in := slices.Contains(rule.ExitCodes.Values, int32(exit.Code))
		if in == (rule.ExitCodes.Operator == "In") {
			return rule.Action
		}
	}
	return ""
}
