package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// minimumGrace is the minimum time between the stop signal and SIGKILL (the kubelet's minimumGracePeriodInSeconds).
const minimumGrace = 2 * time.Second

// evictionGrace is the grace period of an evicted pod, as in the kubelet. [minimumGrace] applies to its containers.
const evictionGrace = time.Second

// Grace is the grace period of a stop.
type Grace struct {
	Period time.Duration
	Force  bool // no grace period: SIGKILL at once
}

// EffectiveGrace returns the grace period of a stop. If requested is nil, it is the pod's own. It is at least one second, as in
// the kubelet, and [minimumGrace] applies to every container. A request of exactly 0 forces the stop, as `kubectl delete --force
// --grace-period=0` does.
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

// grace returns the grace period of a run that must stop while its pod continues, or after the pod has finished. The probe that
// stops it can have its own period (contract 5.1 and 7.1).
func grace(pod *spec.Pod, c *spec.Container, why Reason) time.Duration {
	probe := map[Reason]*spec.Probe{ReasonLivenessProbe: c.LivenessProbe, ReasonStartupProbe: c.StartupProbe}[why]
	if probe != nil && probe.TerminationGracePeriodSeconds != nil {
		return probe.TerminationGracePeriodSeconds.Duration()
	}
	return pod.TerminationGracePeriodSeconds.Duration()
}
