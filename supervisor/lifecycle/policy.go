package lifecycle

import (
	"cmp"
	"math"
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

// finished reports whether no container of the pod will run again of itself, but for sidecars, which serve the others.
func finished(pod *spec.Pod, f *Facts) bool {
	return (!WorkFinishedAt(pod, f).IsZero() || abandoned(pod, f)) && restartAllBy(pod, f) == Ref{}
}

// Ends reports whether the pod is on its way to its end, or there: nothing of it is begun any more.
func Terminating(pod *spec.Pod, f Facts) bool { return !f.Stop.Requested.IsZero() || finished(pod, &f) }

// WorkFinishedAt is when what the sidecars serve was over: an init container had failed for good, or every app container had ended
// for good. Zero: it is not.
func WorkFinishedAt(pod *spec.Pod, f *Facts) Instant {
	if failed := initFailedForGood(pod, f); !failed.IsZero() {
		return failed
	}
	return appsDone(pod, f)
}

// initFailedForGood is when an init container of this round has failed, and the policy is not to try again; of a sidecar it
// always is. Zero: none has.
func initFailedForGood(pod *spec.Pod, f *Facts) Instant {
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		a := f.Containers[c.Name].Newest
		if a.Round == f.Round && a.over() && initFailed(a.Exit) && !initRestarts(pod, c, &a) {
			return a.Exited
		}
	}
	return Instant{}
}

// abandoned reports whether the pod lost its sandbox after something had run in it, and nothing of it may ever run twice:
// nothing is made again (contract 3, «Sandbox lost»).
func abandoned(pod *spec.Pod, f *Facts) bool {
	if f.Sandbox.inFlight() || f.Sandbox.ready() {
		return false
	}
	for i := range pod.Containers {
		if c := &pod.Containers[i]; policyOf(pod, c) != spec.RestartNever || len(c.RestartPolicyRules) > 0 {
			return false
		}
	}
	for _, c := range f.Containers {
		if c.Newest.ran() && !f.void(&c.Newest) {
			return true
		}
	}
	return false
}

// appsDone is when the last of the app containers has ended for good. Zero: not all have. It does not ask for the round: who
// has succeeded under OnFailure is not run again after a reboot, and a pod of which nothing is left to run needs no sandbox.
func appsDone(pod *spec.Pod, f *Facts) Instant {
	last := f.Accepted
	for i := range pod.Containers {
		c := &pod.Containers[i]
		a := f.Containers[c.Name].Newest
		if !f.counts(&a) || restarts(pod, c, &a) {
			return Instant{}
		}
		last = later(last, a.Exited)
	}
	return last
}

// backoff is a delay that grows with every failure in a row.
type backoff struct {
	initial, limit, reset time.Duration
	factor                float64
}

// pullBackoff paces failed pulls (contract 4.4).
var pullBackoff = backoff{initial: 10 * time.Second, limit: 300 * time.Second, reset: 600 * time.Second, factor: 2}

// mountBackoff paces the wait for volumes that cannot be had yet; after some tries it does not write to the disk more often
// than the kubelet looks.
var mountBackoff = backoff{initial: time.Second, limit: 2 * time.Minute, factor: 2}

// sandboxDelay is how long a sandbox that could not be made is not tried again.
func sandboxDelay(s *Sandbox) time.Duration {
	if s.Reason == ReasonFailedMount {
		return mountBackoff.delay(s.Failures)
	}
	return retryDelay
}

func restartBackoff(pod *spec.Pod, c *spec.Container) backoff {
	b := pod.BackoffOf(c)
	return backoff{
		initial: b.InitialSeconds.Duration(), limit: b.MaxSeconds.Duration(),
		reset: b.ResetAfterSeconds.Duration(), factor: b.Factor,
	}
}

// delay is the delay at a level: none at 0, the initial one at 1.
func (b backoff) delay(level int) time.Duration {
	if level <= 0 {
		return 0
	}
	return time.Duration(min(float64(b.initial)*math.Pow(b.factor, float64(level-1)), float64(b.limit)))
}

// next is the level after this one. It does not grow where the delay no longer does, so that it stays bounded.
func (b backoff) next(level int) int {
	if b.delay(level+1) == b.delay(level) {
		return level
	}
	return level + 1
}

// restartDue says when a container that does not run may be started, and the level that granting it leads to; 0 leaves
// the level as it is. The delay counts from the end of the last run. The first restart is immediate, and so is one
// after the run outlasted the reset time, counted from when it was granted (contract 4.3), or with all other containers
// (contract 4.2).
func restartDue(pod *spec.Pod, f *Facts, c *spec.Container, h *Container) (at Instant, level int) {
	a := &h.Newest
	switch {
	case a.N() == 0 || f.void(a) || f.restartsAllBy(c, a):
		return Instant{}, 0
	case a.Round != f.Round && (isInit(pod, c) || !a.CreateFailed.IsZero()):
		return Instant{}, 0 // a new round begins its init containers afresh, and what an earlier one refused was in a sandbox that is gone
	case !a.CreateFailed.IsZero():
		return a.CreateFailed.Add(retryDelay), 0
	}
	b := restartBackoff(pod, c)
	if h.Backoff.Level == 0 || a.Exited.Sub(h.Backoff.Granted) > b.reset {
		return a.Exited, 1
	}
	return a.Exited.Add(b.delay(h.Backoff.Level)), b.next(h.Backoff.Level)
}

// pullDelay is how long an image that was not to be had is left alone. A failure for which no registry was asked, such as
// a missing image that must not be pulled, is no reason to wait longer each time.
func pullDelay(pull *Pull) time.Duration {
	if pull.Reason != "" && !pull.Reason.ofRegistry() {
		return retryDelay
	}
	return pullBackoff.delay(pull.Level)
}

// pullLevel is the level that a failure of a pull that begins now leads to.
func pullLevel(pull *Pull, now Instant) int {
	if pull.Level == 0 || now.Sub(pull.Failed) > pullBackoff.reset {
		return 1
	}
	return pullBackoff.next(pull.Level)
}

// isInit reports whether c is an init container of the pod.
func isInit(pod *spec.Pod, c *spec.Container) bool {
	for i := range pod.InitContainers {
		if pod.InitContainers[i].Name == c.Name {
			return true
		}
	}
	return false
}

// RestartDelay is how long a container that has ended waits for its next run, from its end, if it still waits; 0 where
// there is no next run, or no delay.
func RestartDelay(pod *spec.Pod, f Facts, container string, now Instant) time.Duration {
	h := f.Containers[container]
	c := pod.Container(container)
	if c == nil || !h.Newest.over() || !RunsAgain(pod, f, container) {
		return 0
	}
	due, _ := restartDue(pod, &f, c, &h)
	if !now.Before(due) {
		return 0
	}
	return due.Sub(h.Newest.Exited)
}

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

// PullDelay is how long the container's image is not pulled again after its newest failure.
func PullDelay(f Facts, container string) time.Duration {
	pull := f.Containers[container].Pull
	return pullDelay(&pull)
}
