package lifecycle

import "github.com/podstead/podstead/spec"

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
		a := f.Containers[c.Name].Newest
		if a.Round == f.Round && a.terminated() && initFailed(a.Exit) && !shouldRestartInit(pod, c, &a) && !f.superseded(&a) {
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
		a := f.Containers[c.Name].Newest
		if !f.countsAsTerminated(&a) || shouldRestart(pod, c, &a) {
			return Instant{}
		}
		last = later(last, a.Exited)
	}
	return last
}
