package lifecycle

import (
	"time"

	"github.com/podstead/podstead/spec"
)

// shutdownMessage is the kubelet's message (nodeShutdownMessage).
const shutdownMessage = "Pod was terminated in response to imminent node shutdown."

// Who stops pods at the shutdown of the host, or of Podstead only, and starts them again, as events show it.
const (
	ByShutdown    = "the shutdown of the host"
	ByStart       = "the start of the host"
	ByDaemonStop  = "the shutdown of the daemon"
	ByDaemonStart = "the start of the daemon"
)

// HostShutdown reports that the host, or Podstead on it, shuts down: the pod stops within the grace period, and fails with the kubelet's
// reason for a graceful node shutdown. [ShutdownEnded] starts it again. A pod that is stopped already gets a shorter deadline only.
type HostShutdown struct {
	Grace time.Duration
	By    string // ByShutdown or ByDaemonStop
	At    Instant
}

func (e HostShutdown) apply(f *Facts) {
	if f.Stop.Requested.IsZero() {
		f.Stop.Reason, f.Stop.Message = ReasonTerminated, shutdownMessage
	}
	f.Stop.within(e.Grace, e.By, e.At)
	f.Restart = Restart{}
}

// ShutdownEnded reports that the host or the daemon runs again after a [HostShutdown]. The pod starts again in a new round. Without a
// restart it stays failed, unless no container has run yet. It changes nothing for a pod that a client has stopped or deleted since.
type ShutdownEnded struct {
	Restart bool // the restart policy of the pod allows a restart, see [Restarts]
	At      Instant
}

func (e ShutdownEnded) apply(f *Facts) {
	if !f.startsAfterShutdown(e.Restart) {
		return
	}
	by := ByStart
	if f.Stop.By == ByDaemonStop {
		by = ByDaemonStart
	}
	f.Stop = Stop{}
	f.Restart = Restart{Requested: e.At, By: by}
}

// startsAfterShutdown reports whether the host shuts down, and [ShutdownEnded] starts the pod again.
func (f *Facts) startsAfterShutdown(restarts bool) bool {
	return f.Stop.Reason == ReasonTerminated && !f.Stop.ByUser && (restarts || !f.anyRan())
}

// anyRan reports whether a container has run.
func (f *Facts) anyRan() bool {
	for _, c := range f.Containers {
		if c.Newest.ran() || c.Previous.ran() {
			return true
		}
	}
	return false
}

// Restarts reports whether the restart policy of the pod allows to start it again after the host was shut down.
func Restarts(pod *spec.Pod) bool { return pod.RestartPolicy != spec.RestartNever }
