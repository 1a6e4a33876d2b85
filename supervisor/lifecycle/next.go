package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

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
