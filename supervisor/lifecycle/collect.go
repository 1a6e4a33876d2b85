package lifecycle

import "github.com/podstead/podstead/spec"

// Collection is the removal of what a pod that has finished has left. Its facts, and so its status, are kept.
type Collection struct {
	Requested Instant `json:"requested,omitzero"`
	Removal   Removal `json:"removal,omitzero"`
}

// CollectionRequested requests to remove what a pod that has finished has left: containers, pod-local volumes, logs except the end of
// the newest ones. It changes nothing if the pod is being deleted, or after another request since the pod was last started.
type CollectionRequested struct{ At Instant }

func (e CollectionRequested) apply(f *Facts) {
	if !f.Stop.Delete {
		set(&f.Collection.Requested, e.At)
	}
}

// CollectPod removes what a pod that has finished has left. See [CollectionRequested].
type CollectPod struct{}

func (CollectPod) issued(f *Facts, at Instant) { f.Collection.Removal = Removal{Requested: at} }

func (CollectPod) failed(f *Facts, _ Failure, at Instant) { f.Collection.Removal.fail(at) }

// PodCollected is the outcome of [CollectPod].
type PodCollected struct{ At Instant }

func (e PodCollected) apply(f *Facts) {
	if f.Collection.Removal.pending() { // a pod that was started again has a new sandbox
		f.Collection.Removal.Done = e.At
	}
}

// Finished returns when a pod finished, if nothing of it runs and only a request of a user or a change of its file can start it again. It
// is zero for other pods, for a pod that a user has stopped or is deleting, and for one that starts again after the shutdown of the host.
// It follows the monotonic clock also where the exit of a container is known by the wall clock only.
func Finished(pod *spec.Pod, f Facts) Instant {
	if f.Stop.ByUser || f.Restart.pending() || !f.Idle() || !Terminating(pod, f) || f.startsAfterShutdown(Restarts(pod)) {
		return Instant{}
	}
	at := f.Accepted
	latest := func(t Instant) {
		if !t.IsZero() {
			at = later(at, t)
		}
	}
	for _, t := range [...]Instant{f.Stop.Requested, f.Sandbox.Removal.Done, f.Sandbox.Lost, f.Sandbox.Failed} {
		latest(t)
	}
	for _, c := range f.Containers {
		latest(c.Newest.Exited)
	}
	return at
}

// Collected reports whether what the pod has left was removed.
func (f Facts) Collected() bool { return !f.Collection.Removal.Done.IsZero() }
