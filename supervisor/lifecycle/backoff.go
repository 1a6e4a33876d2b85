package lifecycle

import (
	"math"
	"time"

	"github.com/podstead/podstead/spec"
)

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

// PullDelay is how long the container's image is not pulled again after its newest failure.
func PullDelay(f Facts, container string) time.Duration {
	pull := f.Containers[container].Pull
	return pullDelay(&pull)
}

// NextTry is how long from now what a container waits for is tried again: its sandbox, its image, its creation or its next
// run. It is not known of one that waits for nothing, or for what is under way.
func NextTry(pod *spec.Pod, f Facts, container string, now Instant) (in time.Duration, known bool) {
	if Terminating(pod, f) {
		return 0, false
	}
	h := f.Containers[container]
	due := Instant{}
	switch s, pull := &f.Sandbox, &h.Pull; {
	case s.Failures > 0 && !s.ready() && !s.inFlight():
		due = s.Failed.Add(sandboxDelay(s))
	case pull.Reason != "" && pull.For > h.Newest.N() && !pull.inFlight():
		due = pull.Failed.Add(pullDelay(pull))
	case !h.Newest.CreateFailed.IsZero() && h.Newest.Round == f.Round:
		due = h.Newest.CreateFailed.Add(retryDelay)
	default:
		delay := RestartDelay(pod, f, container, now)
		if delay == 0 {
			return 0, false
		}
		due = h.Newest.Exited.Add(delay)
	}
	return max(due.Sub(now), 0), true
}

// The fixed delays of the contract; what a pod file can set is in [spec.Backoff].
const (
	// retryDelay is how long what failed for a reason of its own waits to be tried again (the kubelet's backOffPeriod,
	// without its jitter).
	retryDelay = 10 * time.Second
	// unavailableDelay is how long to wait before an engine that was away is asked again.
	unavailableDelay = time.Second
	// sandboxPace is the least time from one start of a sandbox to the next (the pace of the kubelet's relist), so that
	// one which is lost at once is not made again without end; and from one round that begins in place to the next.
	sandboxPace = time.Second
	// killRepeat is how long a killed process may go on before it is killed again.
	killRepeat = 10 * time.Second
)
