package lifecycle

import "github.com/podstead/podstead/spec"

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
