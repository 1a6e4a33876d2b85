package supervisor

import "time"

// maxCollected is of how many collected pods without a file the status is kept. The oldest are deleted. A pod with a file is never deleted:
// its file would start it again.
const maxCollected = 1000

// FinishedPods limits what pods that have finished use. What a finished pod has left is removed when a limit is exceeded: sandbox,
// containers, pod-local volumes, and logs except their end. Its status and its events are kept, and the pod is not started again.
type FinishedPods struct {
	// TTL is how long they are kept, not counting the time for which the host is off; 0: without limit. It does not follow the wall clock.
	TTL time.Duration
	// Max is how many are kept, the ones that finished last; 0: without limit.
	Max int
}
