package lifecycle

import (
	"cmp"
	"slices"

	"github.com/podstead/podstead/spec"
)

// restartPolicy returns the restart policy of a container: its own, else the pod's.
func restartPolicy(pod *spec.Pod, c *spec.Container) spec.RestartPolicy {
	return cmp.Or(c.RestartPolicy, pod.RestartPolicy)
}

// shouldRestart reports whether a terminated app container is restarted: its policy restarts it, and it has not reached its maxRestarts.
func (f *Facts) shouldRestart(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
	return policyRestarts(pod, c, a) && !f.exhausted(c, a)
}

// exhausted reports whether a container has reached its maxRestarts: its newest run has exited once more than it may be restarted.
func (f *Facts) exhausted(c *spec.Container, a *Attempt) bool {
	if c.MaxRestarts == nil || !a.terminated() {
		return false
	}
	h := f.Container(c.Name)
	return a.Ref == h.Newest.Ref && h.Exits > int(*c.MaxRestarts)
}

// Exhausted reports whether a container is not restarted, although its policy would restart it, because it has reached its maxRestarts.
func Exhausted(pod *spec.Pod, f Facts, container string) bool {
	c, a := pod.Container(container), &f.Container(container).Newest
	return c != nil && f.exhausted(c, a) && !f.superseded(a) && policyRestarts(pod, c, a)
}

// policyRestarts reports whether the restart policy or a rule of an app container restarts it (contract 4.1; kubelet:
// ContainerShouldRestart). A container that was stopped by a probe counts as failed, whatever its exit code (contract 5.2).
func policyRestarts(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
	if ruleAction(c, a.Exit) != "" {
		return true
	}
	switch restartPolicy(pod, c) {
	case spec.RestartNever:
		return false
	case spec.RestartOnFailure:
		return a.Exit.Code != 0 || a.StopReason == ReasonLivenessProbe || a.StopReason == ReasonStartupProbe
	case spec.RestartAlways:
	}
	return true
}

// initFailed reports whether an init container failed. It has also failed if a process in its cgroup was OOM-killed, even with
// exit code 0 (the kubelet's isInitContainerFailed).
func initFailed(exit Exit) bool { return exit.Code != 0 || exit.Reason == ReasonOOMKilled }

// shouldRestartInit reports whether a failed init container that is not a sidecar is restarted. Always means OnFailure for it
// (contract 3).
func shouldRestartInit(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
	return ruleAction(c, a.Exit) != "" || restartPolicy(pod, c) != spec.RestartNever
}

// initPassed reports whether the following init container may start in the given round: an init container has completed, or a
// sidecar has started.
func initPassed(c *spec.Container, a *Attempt, round int) bool {
	if c.IsSidecar() {
		return a.Round == round && a.started(c)
	}
	return initCompleted(a, round)
}

// InitPassed reports whether a container is an init container, other than a sidecar, that does not run again in this round: it has
// completed, or later containers have run.
func InitPassed(pod *spec.Pod, f Facts, container string) bool {
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; c.Name == container && !c.IsSidecar() {
			a := &f.Container(c.Name).Newest
			return i < reached(pod, &f) || initCompleted(a, f.Round)
		}
	}
	return false
}

// initCompleted reports whether an init container has completed in the given round.
func initCompleted(a *Attempt, round int) bool {
	return a.Round == round && a.terminated() && !initFailed(a.Exit) && !a.interrupted()
}

// ruleAction returns the action of the container's first restart rule that matches the exit code; empty if none matches
// (contract 4.1).
func ruleAction(c *spec.Container, exit Exit) string {
	for i := range c.RestartPolicyRules {
		rule := &c.RestartPolicyRules[i]
		in := slices.Contains(rule.ExitCodes.Values, int32(exit.Code))
		if in == (rule.ExitCodes.Operator == "In") {
			return rule.Action
		}
	}
	return ""
}

// finished reports whether no container of the pod will run again without intervention. Sidecars do not count.
func finished(pod *spec.Pod, f *Facts) bool {
	return (!WorkFinishedAt(pod, f).IsZero() || lostForGood(pod, f)) && restartAllTrigger(pod, f) == Ref{}
}

// Terminating reports whether the pod is terminating or has terminated. No container is started any more.
func Terminating(pod *spec.Pod, f Facts) bool { return !f.Stop.Requested.IsZero() || finished(pod, &f) }

// WorkFinishedAt returns when the work that sidecars support was finished: an init container failed and is not restarted, or all
// app containers completed. It is zero if the work is not finished.
func WorkFinishedAt(pod *spec.Pod, f *Facts) Instant {
	if failed := initFailedAt(pod, f); !failed.IsZero() {
		return failed
	}
	return appsFinishedAt(pod, f)
}

// initFailedAt returns when an init container of this round failed and is not restarted. It is zero if none did. It is always
// zero for sidecars.
func initFailedAt(pod *spec.Pod, f *Facts) Instant {
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		a := &f.Container(c.Name).Newest
		if a.Round == f.Round && a.terminated() && initFailed(a.Exit) && !shouldRestartInit(pod, c, a) && !f.superseded(a) {
			return a.Exited
		}
	}
	return Instant{}
}

// lostForGood reports whether the pod lost its sandbox after a container ran, and the restart policy forbids to run any
// container twice. No new sandbox is created then (contract 3, "Sandbox lost"). Ephemeral containers do not count: nothing
// depends on them.
func lostForGood(pod *spec.Pod, f *Facts) bool {
	if f.Sandbox.inFlight() || f.Sandbox.ready() {
		return false
	}
	for i := range pod.Containers {
		if c := &pod.Containers[i]; restartPolicy(pod, c) != spec.RestartNever || len(c.RestartPolicyRules) > 0 {
			return false
		}
	}
	for name, c := range f.Containers {
		if f.removed(name) || f.ephemeral(name) {
			continue
		}
		if c.Newest.ran() && !f.superseded(&c.Newest) {
			return true
		}
	}
	return false
}

// appsFinishedAt returns when the last app container terminated without being restarted. It is zero if one has not. It does not
// compare rounds: a container that succeeded under OnFailure is not run again after a reboot, and a pod without containers left
// to run needs no sandbox.
func appsFinishedAt(pod *spec.Pod, f *Facts) Instant {
	last := f.Accepted
	for i := range pod.Containers {
		c := &pod.Containers[i]
		a := &f.Container(c.Name).Newest
		if !f.countsAsTerminated(a) || f.shouldRestart(pod, c, a) {
			return Instant{}
		}
		last = later(last, a.Exited)
	}
	return last
}

// NextInitContainer returns the init container that the following ones wait for in this round; empty if all have passed (the
// kubelet's findNextInitContainerToRun).
func NextInitContainer(pod *spec.Pod, f Facts) string {
	for i := reached(pod, &f); i < len(pod.InitContainers); i++ {
		c := &pod.InitContainers[i]
		if a := &f.Container(c.Name).Newest; !initPassed(c, a, f.Round) {
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
		if f.Container(pod.Containers[i].Name).Newest.Round == f.Round {
			return len(pod.InitContainers)
		}
	}
	newest := 0
	for i := range pod.InitContainers {
		if f.Container(pod.InitContainers[i].Name).Newest.Round == f.Round {
			newest = i
		}
	}
	return newest
}

// The actions of [spec.RestartRule].
const (
	actionRestart    = "Restart"
	actionRestartAll = "RestartAllContainers"
)

// countsAsTerminated reports whether a run has terminated and was not superseded.
func (f *Facts) countsAsTerminated(a *Attempt) bool { return a.terminated() && !f.superseded(a) }

// restartAllTrigger returns the run whose exit triggers a restart of all containers, the earliest if there are several; the zero
// Ref if there is none. The exit of a sidecar after the pod's work was finished triggers nothing (contract 7.4).
func restartAllTrigger(pod *spec.Pod, f *Facts) Ref {
	by := &Attempt{}
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			a := &f.Container(list[i].Name).Newest
			if f.triggersRestartAll(pod, &list[i], a) && (!by.terminated() || a.Exited.Before(by.Exited)) {
				by = a
			}
		}
	}
	if over := WorkFinishedAt(pod, f); !over.IsZero() && over.Before(by.Exited) {
		return Ref{}
	}
	return by.Ref
}

// triggersRestartAll reports whether the exit of a run triggers a restart of all containers of its round. If the sandbox was lost, which
// opens a new round anyway, only a pod that is retried restarts containers that have completed, and has a back-off.
func (f *Facts) triggersRestartAll(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
	return a.terminated() && a.Round == f.Round && f.restartsAll(pod, c, a.Exit) && !f.superseded(a) && !f.exhausted(c, a)
}

// restartsAll reports whether all containers are restarted after such an exit of a container, as the definition has it.
func (f *Facts) restartsAll(pod *spec.Pod, c *spec.Container, exit Exit) bool {
	if pod.RetriedFor(c) {
		return ruleAction(c, exit) == actionRestartAll || isInit(pod, c) && !c.IsSidecar() && initFailed(exit)
	}
	return f.Sandbox.ready() && ruleAction(c, exit) == actionRestartAll
}

// Retry returns the number of the retry that the exit of the newest run of a container leads to, from 1, in a pod that is retried because
// of its backoffLimit. It is 0 if a rule of the file restarts all containers, and if the run has not failed: it was lost, or was stopped.
func Retry(pod *spec.Pod, f Facts, container string) int {
	a := &f.Container(container).Newest
	if c := pod.Container(container); c == nil || !pod.RetriedFor(c) || !a.countsAsFailed() {
		return 0
	}
	return failures(pod, &f)
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
