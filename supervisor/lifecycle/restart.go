package lifecycle

import (
	"cmp"
	"slices"

	"github.com/podstead/podstead/spec"
)

// policyOf is the restart policy of a container: its own, else the pod's.
func policyOf(pod *spec.Pod, c *spec.Container) spec.RestartPolicy {
	return cmp.Or(c.RestartPolicy, pod.RestartPolicy)
}

// restarts reports whether an app container whose run is over runs again (contract 4.1). One that a probe has ended is
// started by the policy alone, whatever it said as it went (contract 5.2).
func restarts(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
	if ruled(c, a.Exit) != "" {
		return true
	}
	switch policyOf(pod, c) {
	case spec.RestartNever:
		return false
	case spec.RestartOnFailure:
		return a.Exit.Code != 0 || a.StopReason == ReasonLivenessProbe || a.StopReason == ReasonStartupProbe
	case spec.RestartAlways:
	}
	return true
}

// initFailed reports whether an init container that ended so has to run again. An init container in whose cgroup
// anything was killed for memory has failed, even if it says 0 (the kubelet's isInitContainerFailed).
func initFailed(exit Exit) bool { return exit.Code != 0 || exit.Reason == ReasonOOMKilled }

// initRestarts reports whether an init container that is no sidecar and that has failed runs again. Always is OnFailure to
// it (contract 3).
func initRestarts(pod *spec.Pod, c *spec.Container, a *Attempt) bool {
	return ruled(c, a.Exit) != "" || policyOf(pod, c) != spec.RestartNever
}

// passed reports whether an init container has had its turn in the given round, so that the next one's comes: it is done,
// or, of a sidecar, started.
func passed(c *spec.Container, a *Attempt, round int) bool {
	if c.IsSidecar() {
		return a.Round == round && a.started(c)
	}
	return initDone(a, round)
}

// initDone reports whether an init container has done its work in the given round.
func initDone(a *Attempt, round int) bool { return a.Round == round && a.over() && !initFailed(a.Exit) }

// RunsAgain reports whether a container whose newest run is over is to have another. It is false of a pod that is to end, and of
// what is not one of the pod's own containers.
func RunsAgain(pod *spec.Pod, f Facts, container string) bool {
	if Terminating(pod, f) {
		return false
	}
	v, a := view{pod: pod, facts: &f}, f.Containers[container].Newest
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; c.Name == container {
			return v.again(c, &a, roleOf(c))
		}
	}
	for i := range pod.Containers {
		if c := &pod.Containers[i]; c.Name == container {
			return v.again(c, &a, roleApp)
		}
	}
	return false
}

// again reports whether a run that is over is followed by another.
func (v *view) again(c *spec.Container, a *Attempt, r role) bool {
	switch {
	case v.ended || r == roleEphemeral:
		return false
	case v.facts.void(a) || r == roleSidecar:
		return true
	case r == roleInit:
		return initFailed(a.Exit)
	}
	return restarts(v.pod, c, a)
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
