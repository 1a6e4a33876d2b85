package metrics

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The causes of restarts that are not a reason of an exit, which are Completed, Error, OOMKilled and others.
var causeOf = map[api.EventKind]string{
	api.EventContainerLivenessFailed: "LivenessProbe", api.EventContainerStartupFailed: "StartupProbe",
	api.EventContainerPostStartFailed: "PostStartHook", api.EventContainerChanged: "DefinitionChanged",
	api.EventRestartRequested: "Requested", api.EventDeviceRemoved: "DeviceRemoved",
	api.EventContainerSandboxChanged: "SandboxChanged",
}

// podCauseOf is causeOf for all containers of a pod.
var podCauseOf = map[api.EventKind]string{
	api.EventPodRestartRequested: "Requested", api.EventPodStartRequested: "Requested", api.EventPodRestarting: "RestartAllContainers",
	api.EventHostRebooted: rebooted, api.EventSandboxChanged: "SandboxChanged", api.EventPodEscalated: unhealthy,
}

// rebooted is the cause of starts after a reboot, also if the shutdown has stopped the pod and the start of the host starts it again.
const rebooted = "Rebooted"

// unhealthy is the cause of restarts by onUnhealthy of the pod file.
const unhealthy = "Unhealthy"

// causes is the list of causes for people.
const causes = "LivenessProbe, StartupProbe, PostStartHook, DefinitionChanged, Requested, RestartAllContainers, Rebooted, " +
	"SandboxChanged, DeviceRemoved, " +
	"Unhealthy, or the reason of the exit, such as Error, OOMKilled or Completed"

// follower counts events.
type follower struct {
	recorder *Recorder
	pod      func(name string) (supervisor.Snapshot, bool)
	history  map[string]*podHistory // by UID
}

// podHistory is what the events of a pod lead to.
type podHistory struct {
	accepted time.Time         // zero: unknown, or all containers have started
	started  map[string]bool   // containers that have started since
	exited   map[string]string // the cause of the next start, by container; only of containers that have run
	ran      map[string]bool
}

// Follow counts the events of a supervisor until ctx ends.
func (r *Recorder) Follow(ctx context.Context, s *supervisor.Supervisor) {
	f := &follower{r, s.Pod, map[string]*podHistory{}}
	ring := s.Events()
	restored := ring.Restored()
	for seq := uint64(0); ; {
		list, missed, err := ring.Follow(ctx, seq)
		if err != nil {
			return
		}
		r.eventsMissed.Add(float64(missed))
		if missed > 0 {
			f.prune(s.Pods())
		}
		for i := range list {
			e := &list[i]
			seq = e.Seq
			f.handle(e, seq > restored)
		}
	}
}

// prune forgets pods that do not exist: their last event may have been missed.
func (f *follower) prune(pods []supervisor.Snapshot) {
	exists := func(uid string) bool {
		return slices.ContainsFunc(pods, func(p supervisor.Snapshot) bool { return p.Facts.UID == uid })
	}
	for uid := range f.history {
		if !exists(uid) {
			delete(f.history, uid)
		}
	}
	f.recorder.mu.Lock()
	defer f.recorder.mu.Unlock()
	for uid := range f.recorder.pods {
		if !exists(uid) {
			delete(f.recorder.pods, uid)
		}
	}
}

// handle counts an event. An event of an earlier daemon counts only as the cause of later ones.
func (f *follower) handle(e *event.Event, counts bool) {
	if counts {
		f.recorder.events.WithLabelValues(string(e.Kind), string(e.Level)).Inc()
	}
	if e.UID == "" || e.Kind == api.EventLogsRemoved { // that event can follow the removal of the pod
		return
	}
	if e.Kind == api.EventPodRemoved {
		delete(f.history, e.UID)
		f.recorder.forget(e.UID)
		return
	}
	h := f.history[e.UID]
	if h == nil {
		h = &podHistory{started: map[string]bool{}, exited: map[string]string{}, ran: map[string]bool{}}
		f.history[e.UID] = h
	}
	if cause, ok := podCauseOf[e.Kind]; ok {
		for container := range h.ran {
			if h.exited[container] != rebooted || e.Fields["by"] != lifecycle.ByStart {
				h.exited[container] = cause
			}
		}
		return
	}
	if cause, ok := causeOf[e.Kind]; ok && !e.KeepsDevice() {
		h.exited[e.Container] = cause
		return
	}
	if e.Kind == api.EventPodAccepted {
		h.accepted = e.Time
	}
	if e.Kind == api.EventContainerStarted {
		f.started(h, e, counts)
	}
	if e.Kind == api.EventContainerSucceeded || e.Kind == api.EventContainerFailed {
		h.ran[e.Container] = true
		if h.exited[e.Container] == "" {
			h.exited[e.Container] = exitCause(e)
		}
	}
}

// exitCause returns the reason of an exit.
func exitCause(e *event.Event) string {
	if e.Kind == api.EventContainerSucceeded {
		return "Completed"
	}
	reason, _, _ := strings.Cut(e.Fields["reason"], ":") // a reason can have details
	return reason
}

// started counts the start of a container.
func (f *follower) started(h *podHistory, e *event.Event, counts bool) {
	cause := h.exited[e.Container]
	delete(h.exited, e.Container)
	h.ran[e.Container] = true
	if cause != "" && counts {
		f.recorder.restarted(e.UID, e.Container, cause)
	}
	if h.accepted.IsZero() {
		return
	}
	h.started[e.Container] = true
	p, ok := f.pod(e.Pod)
	if !ok || p.Facts.UID != e.UID {
		return
	}
	for i := range p.Pod.Containers {
		if !h.started[p.Pod.Containers[i].Name] {
			return
		}
	}
	if counts {
		f.recorder.podStart.Observe(e.Time.Sub(h.accepted).Seconds())
	}
	h.accepted, h.started = time.Time{}, nil
}
