package explain

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// causeOf is the cause that an event is for a container, by the kind of the event and its fields.
func (b *builder) causeOf(e *event.Event, name string, started time.Time) *api.Cause {
	c := api.Cause{Kind: causeKinds[e.Kind], Container: name, Role: b.role(name), Time: e.Time}
	switch e.Kind { //nolint:exhaustive // other events have the fields of the default case
	case api.EventContainerLivenessFailed, api.EventContainerStartupFailed:
		c.Failures, _ = strconv.Atoi(e.Fields["count"])
		c.Output = e.Fields["output"]
	case api.EventContainerStopping:
		switch lifecycle.Reason(e.Fields["why"]) {
		case lifecycle.ReasonPodFinished:
			c.Kind = api.CausePodFinished
		case lifecycle.ReasonRestartRequested:
			c.Kind, c.By = api.CauseRestartRequested, b.field(e.Cause, "by")
		case lifecycle.ReasonDeviceRemoved:
			c.Kind, c.Message = api.CauseDeviceRemoved, b.field(e.Cause, "device")
		case lifecycle.ReasonRestartingAllContainers:
			c.Kind = api.CauseRestartAll
		default:
			c.Grace = e.Fields["grace"]
		}
	case api.EventContainerKilled:
		c.Grace = e.Fields["grace"]
	case api.EventContainerSucceeded, api.EventContainerFailed:
		c.Exit = exitOf(e, started)
		c.Kind = exitKind(c.Exit)
	case api.EventPodRestarting:
		c.ByContainer, c.ByRole = e.Fields["container"], b.role(e.Fields["container"])
		code, err := strconv.Atoi(e.Fields["code"])
		if err == nil {
			c.Exit = &api.ContainerExit{Code: code, Signal: signalOf(code)}
		}
		c.Retry, _ = strconv.Atoi(e.Fields["retry"])
		c.Retries, _ = strconv.Atoi(e.Fields["limit"])
	case api.EventPodStopping:
		c.By, c.Grace = e.Fields["by"], e.Fields["grace"]
	case api.EventPodStartRequested, api.EventPodRestartRequested, api.EventRestartRequested, api.EventPodEscalated:
		c.By = e.Fields["by"]
	case api.EventContainerChanged:
		c.Message = e.Fields["changes"]
	case api.EventDeviceRemoved:
		c.Message = e.Fields["device"]
	case api.EventPodDeadlineExceeded:
		c.Reason, c.Message = api.ReasonDeadlineExceeded, e.Message
	case api.EventPodBackoffExceeded:
		c.Reason, c.Message = api.ReasonBackoffLimit, e.Message
	case api.EventHostRebooted:
		if e.Fields["how"] != "" {
			c.Kind = api.CauseUncleanShutdown
		}
	case api.EventContainerPostStartFailed: // the event has no more
	default:
		c.Reason, c.Message, c.Image = api.Reason(e.Fields["reason"]), e.Fields["error"], e.Fields["image"]
	}
	return &c
}

// causeKinds are the kinds of causes by the kinds of events.
var causeKinds = map[api.EventKind]api.CauseKind{
	api.EventContainerLivenessFailed:  api.CauseLivenessFailed,
	api.EventContainerStartupFailed:   api.CauseStartupFailed,
	api.EventContainerPostStartFailed: api.CausePostStartFailed,
	api.EventContainerSandboxChanged:  api.CauseSandboxChanged,
	api.EventSandboxChanged:           api.CauseSandboxChanged,
	api.EventContainerStopping:        api.CauseStopRequested,
	api.EventPodStopping:              api.CauseStopRequested,
	api.EventContainerKilled:          api.CauseKilled,
	api.EventPodStartRequested:        api.CauseStartRequested,
	api.EventPodRestartRequested:      api.CauseRestartRequested,
	api.EventPodEscalated:             api.CauseRestartRequested,
	api.EventRestartRequested:         api.CauseRestartRequested,
	api.EventContainerChanged:         api.CauseDefinitionChanged,
	api.EventContainerDropped:         api.CauseContainerRemoved,
	api.EventDeviceRemoved:            api.CauseDeviceRemoved,
	api.EventContainerCreateFailed:    api.CauseCreateFailed,
	api.EventContainerStartFailed:     api.CauseStartFailed,
	api.EventImagePullFailed:          api.CauseImageFailed,
	api.EventImageInspectFailed:       api.CauseImageFailed,
	api.EventImageNeverPull:           api.CauseImageFailed,
	api.EventHostRebooted:             api.CauseHostRebooted,
	api.EventPodRestarting:            api.CauseRestartAll,
	api.EventPodEvicted:               api.CauseEvicted,
	api.EventNodeShutdown:             api.CauseStopRequested,
	api.EventPodDeadlineExceeded:      api.CauseDeadlineExceeded,
	api.EventPodBackoffExceeded:       api.CauseBackoffLimit,
	api.EventPodJobEnded:              api.CauseJobEnded,
}

// field is a field of an event; empty: not known.
func (b *builder) field(seq uint64, name string) string {
	for i := range b.events {
		if e := &b.events[i]; e.Seq == seq {
			return e.Fields[name]
		}
	}
	return ""
}

// exitKind is the kind of cause that an exit is.
func exitKind(x *api.ContainerExit) api.CauseKind {
	switch x.Reason { //nolint:exhaustive // see default
	case api.ReasonOOMKilled:
		return api.CauseOOMKilled
	case api.ReasonUnknown, api.ReasonStatusUnknown:
		return api.CauseExitUnknown
	case api.ReasonStartError:
		return api.CauseStartFailed
	default:
		return api.CauseExited
	}
}

// causeOfAttempt is why a run stopped or exited, by the facts alone: the events may have been lost or dropped.
func (b *builder) causeOfAttempt(a *lifecycle.Attempt) *api.Cause {
	c := api.Cause{Container: a.Container, Role: b.role(a.Container), Time: a.StopRequested.Wall.UTC()}
	switch a.StopReason {
	case lifecycle.ReasonLivenessProbe:
		c.Kind, c.Failures, c.Output = api.CauseLivenessFailed, a.Probes.Liveness.Count, a.Probes.Liveness.Message
	case lifecycle.ReasonStartupProbe:
		c.Kind, c.Failures, c.Output = api.CauseStartupFailed, a.Probes.Startup.Count, a.Probes.Startup.Message
	case lifecycle.ReasonFailedPostStartHook:
		c.Kind, c.Message = api.CausePostStartFailed, a.PostStart.Message
	case lifecycle.ReasonSandboxChanged:
		c.Kind, c.Message = api.CauseSandboxChanged, b.snapshot.Facts.Sandbox.Message
	case lifecycle.ReasonRestartingAllContainers:
		c.Kind = api.CauseRestartAll
	case lifecycle.ReasonPodFinished:
		c.Kind = api.CausePodFinished
	case lifecycle.ReasonRestartRequested:
		c.Kind, c.By = api.CauseRestartRequested, b.snapshot.Facts.Restart.By
	case lifecycle.ReasonDeviceRemoved:
		c.Kind, c.Message = api.CauseDeviceRemoved, a.DeviceRemoved
	case lifecycle.ReasonDefinitionChanged:
		c.Kind = api.CauseDefinitionChanged
	case lifecycle.ReasonContainerRemoved:
		c.Kind = api.CauseContainerRemoved
	case lifecycle.ReasonStopped:
		return b.stopCause()
	default:
		if a.Exited.IsZero() {
			return nil
		}
		c.Exit, c.Time, c.Message = exitOfAttempt(a), a.Exited.Wall.UTC(), a.Exit.Message
		if c.Kind = exitKind(c.Exit); c.Kind != api.CauseStartFailed {
			c.Message = ""
		}
	}
	return &c
}

// stopCause is why the pod is stopped or was.
func (b *builder) stopCause() *api.Cause {
	stop := &b.snapshot.Facts.Stop
	c := &api.Cause{
		Kind: api.CauseStopRequested, Time: stop.Requested.Wall.UTC(), By: stop.By, Reason: api.Reason(stop.Reason), Message: stop.Message,
	}
	if !stop.Force && stop.Grace > 0 {
		c.Grace = stop.Grace.String()
	}
	switch stop.Reason {
	case lifecycle.ReasonDeadlineExceeded:
		c.Kind = api.CauseDeadlineExceeded
	case lifecycle.ReasonBackoffLimit:
		c.Kind = api.CauseBackoffLimit
	case lifecycle.ReasonJobComplete, lifecycle.ReasonJobFailed:
		c.Kind = api.CauseJobEnded
	case lifecycle.ReasonEvicted:
		c.Kind = api.CauseEvicted
	}
	return c
}

// exitOfAttempt is how a run exited.
func exitOfAttempt(a *lifecycle.Attempt) *api.ContainerExit {
	return &api.ContainerExit{
		Code: a.Exit.Code, Signal: signalOf(a.Exit.Code), Reason: api.Reason(a.Exit.Reason),
		StartedAt: a.Started.Wall.UTC(), FinishedAt: a.Exited.Wall.UTC(),
		GraceExceeded: !a.KillSent.IsZero() && a.StopReason != "",
	}
}

// signalOf is the name of the signal that an exit code stands for, empty if it stands for none.
func signalOf(code int) string {
	if code <= 128 {
		return ""
	}
	return unix.SignalName(unix.Signal(code - 128))
}
