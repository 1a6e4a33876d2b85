package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// backoff is a delay that grows with each consecutive failure.
type backoff struct {
	initial, limit, reset time.Duration
	factor                float64
}

// pullBackoff is the back-off of image pulls (contract 4.4).
var pullBackoff = backoff{initial: 10 * time.Second, limit: 300 * time.Second, reset: 600 * time.Second, factor: 2}

// jobBackoff is the back-off of pods that are retried, as the documentation of Jobs has it.
var jobBackoff = backoff{initial: 10 * time.Second, limit: 6 * time.Minute, factor: 2}

// hostBackoff is the back-off of sandboxes that wait for the host, such as for a volume that cannot be mounted yet. Its limit is about the
// interval at which the kubelet retries, so that a long wait does not write to the disk more often.
var hostBackoff = backoff{initial: time.Second, limit: 2 * time.Minute, factor: 2}

// sandboxDelay is the delay after a failed sandbox start.
func sandboxDelay(s *Sandbox) time.Duration {
	if s.Reason.ofHost() {
		return hostBackoff.delay(s.Failures)
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

// delay returns the delay at a level: 0 at level 0, the initial delay at level 1.
func (b backoff) delay(level int) time.Duration {
	if level <= 0 {
		return 0
	}
	delay, limit := float64(b.initial), float64(b.limit)
	for ; level > 1 && delay < limit; level-- {
		delay *= b.factor
	}
	return time.Duration(min(delay, limit))
}

// next returns the level after the given one. The level stops growing when the delay does, so that it stays bounded.
func (b backoff) next(level int) int {
	if b.delay(level+1) == b.delay(level) {
		return level
	}
	return level + 1
}

// restartDue returns when a container that is not running may be started, and the back-off level after that start. Level 0
// leaves the level unchanged. The delay counts from the exit of the last run. There is no delay for the first restart, for a
// restart after a run that lasted longer than the reset time, counted from when its start was granted (contract 4.3), for a restart
// of all containers (contract 4.2) unless the pod is retried, and for a restart that was requested.
func restartDue(pod *spec.Pod, f *Facts, c *spec.Container, h *Container) (at Instant, level int) {
	a := &h.Newest
	switch {
	case a.N() == 0 || f.superseded(a):
		return Instant{}, 0
	case f.triggersRestartAll(pod, c, a):
		return retryDue(pod, f, a), 0
	case a.Round != f.Round && (isInit(pod, c) && (c.IsSidecar() || !a.countsAsFailed()) || !a.CreateFailed.IsZero()):
		// A new round runs its init containers again, one that has failed after its back-off. A failed creation in an earlier round
		// concerned a sandbox that no longer exists.
		return Instant{}, 0
	case !a.CreateFailed.IsZero():
		return a.createDue(), 0
	}
	b := restartBackoff(pod, c)
	if h.Backoff.Level == 0 || a.Exited.Sub(h.Backoff.Granted) > b.reset {
		return a.Exited, 1
	}
	return a.Exited.Add(b.delay(h.Backoff.Level)), b.next(h.Backoff.Level)
}

// retryDue returns when all containers may be restarted for the exit of a run: at once, or after the back-off of a pod that is retried. A
// run that was lost with the host or with its sandbox has not failed, and delays nothing. Another one of its round that has failed does.
func retryDue(pod *spec.Pod, f *Facts, a *Attempt) (due Instant) {
	if !pod.Retries() {
		return Instant{}
	}
	delay := jobBackoff.delay(failures(pod, f))
	if f.Sandbox.ready() || a.countsAsFailed() {
		return a.Exited.Add(delay)
	}
	for c := range containersOf(pod) {
		if o := &f.Container(c.Name).Newest; o.countsAsFailed() && f.triggersRestartAll(pod, c, o) {
			due = later(due, o.Exited.Add(delay))
		}
	}
	return due
}

// pullDelay is the delay after a failed pull. A failure that did not involve a registry, such as ErrImageNeverPull, is retried
// at a fixed interval.
func pullDelay(pull *Pull) time.Duration {
	if pull.Reason != "" && !pull.Reason.ofRegistry() {
		return retryDelay
	}
	return pullBackoff.delay(pull.Level)
}

// pullLevel is the back-off level after a failure of a pull that is issued now.
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

// Fixed delays. The configurable ones are in [spec.Backoff].
const (
	// retryDelay is the delay before a failed operation is retried (the kubelet's backOffPeriod, without its jitter).
	retryDelay = 10 * time.Second
	// unavailableDelay is the delay before an unavailable engine is tried again.
	unavailableDelay = time.Second
	// sandboxPace is the minimum interval between two starts of a sandbox (the interval of the kubelet's relist), and between
	// two restarts of all containers. It bounds the rate at which a sandbox that is lost at once is created again.
	sandboxPace = time.Second
	// killRepeat is the interval at which SIGKILL is sent again while the process exists.
	killRepeat = 10 * time.Second
)
