package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// minimumGrace is the least time between the stop signal and SIGKILL (minimumGracePeriodInSeconds of the kubelet).
const minimumGrace = 2 * time.Second

// evictionGrace is what an evicted pod has to end, as in the kubelet; every container has [minimumGrace] all the same.
const evictionGrace = time.Second

// Grace is how long a pod has to end.
type Grace struct {
	Period time.Duration
	Force  bool // none at all: SIGKILL at once
}

// EffectiveGrace is the grace period of a stop. Without a request (nil) it is the pod's own; less than a second counts
// as one second, as in the kubelet, and every container has [minimumGrace] all the same. A request of exactly zero is
// force, as `kubectl delete --force --grace-period=0` is.
func EffectiveGrace(pod *spec.Pod, requested *time.Duration) Grace {
	period := pod.TerminationGracePeriodSeconds.Duration()
	if requested != nil {
		if *requested == 0 {
			return Grace{Force: true}
		}
		period = *requested
	}
	return Grace{Period: max(period, time.Second)}
}

// grace is the grace period of a run that has to end though its pod goes on, or that is left when the pod is done: a probe
// that ends its container can have one of its own (contract 5.1 and 7.1).
func grace(pod *spec.Pod, c *spec.Container, why Reason) time.Duration {
	probe := map[Reason]*spec.Probe{ReasonLivenessProbe: c.LivenessProbe, ReasonStartupProbe: c.StartupProbe}[why]
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return probe.TerminationGracePeriodSeconds.Duration()
	}
	return pod.TerminationGracePeriodSeconds.Duration()
}
