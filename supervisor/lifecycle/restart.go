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

// shouldRestart reports whether a terminated app container is restarted (contract 4.1; kubelet: ContainerShouldRestart).
// A container that was stopped by a probe counts as failed, whatever its exit code (contract 5.2).
func shouldRestart(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
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
			a := f.Containers[c.Name].Newest
			return i < reached(pod, &f) || initCompleted(&a, f.Round)
		}
	}
	return false
}

// initCompleted reports whether an init container has completed in the given round.
func initCompleted(a *Attempt, round int) bool {
	return a.Round == round && a.terminated() && !initFailed(a.Exit) && !a.interrupted()
}

// RunsAgain reports whether a terminated container will be restarted. It is false if the pod is terminating, and for a container
// that is not in the pod's definition, such as an ephemeral one.
func RunsAgain(pod *spec.Pod, f Facts, container string) bool {
	if Terminating(pod, f) {
		return false
	}
	v, a := view{pod: pod, facts: &f}, f.Containers[container].Newest
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; c.Name == container {
			return v.runsAgain(c, &a, roleOf(c))
		}
	}
	for i := range pod.Containers {
		if c := &pod.Containers[i]; c.Name == container {
			return v.runsAgain(c, &a, roleApp)
		}
	}
	return false
}

// runsAgain reports whether a terminated run will be followed by another one.
func (v *view) runsAgain(c *spec.Container, a *Attempt, r role) bool {
	switch {
	case v.ended || r == roleEphemeral:
		return false
	case v.facts.superseded(a) || r == roleSidecar:
		return true
	case r == roleInit:
		return initFailed(a.Exit) || a.interrupted()
	}
	return shouldRestart(v.pod, c, a)
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
