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
	case event.ContainerLivenessFailed, event.ContainerStartupFailed:
		c.Failures, _ = strconv.Atoi(e.Fields["count"])
		c.Output = e.Fields["output"]
	case event.ContainerStopping:
		switch lifecycle.Reason(e.Fields["why"]) {
		case lifecycle.ReasonPodFinished:
			c.Kind = api.CausePodFinished
		case lifecycle.ReasonRestartRequested:
			c.Kind, c.By = api.CauseRestartRequested, b.by(e.Cause)
		case lifecycle.ReasonRestartingAllContainers:
			c.Kind = api.CauseRestartAll
		default:
			c.Grace = e.Fields["grace"]
		}
	case event.ContainerKilled:
		c.Grace = e.Fields["grace"]
	case event.ContainerSucceeded, event.ContainerFailed:
		c.Exit = exitOf(e, started)
		c.Kind = exitKind(c.Exit)
	case event.PodRestarting:
		c.ByContainer, c.ByRole = e.Fields["container"], b.role(e.Fields["container"])
		code, err := strconv.Atoi(e.Fields["code"])
		if err == nil {
			c.Exit = &api.ContainerExit{Code: code, Signal: signalOf(code)}
		}
	case event.PodStopping:
		c.By, c.Grace = e.Fields["by"], e.Fields["grace"]
	case event.PodStartRequested, event.PodRestartRequested, event.RestartRequested, event.PodEscalated:
		c.By = e.Fields["by"]
	case event.ContainerChanged:
		c.Message = e.Fields["changes"]
	case event.PodDeadlineExceeded:
		c.Reason, c.Message = api.ReasonDeadlineExceeded, e.Message
	case event.HostRebooted:
		if e.Fields["how"] != "" {
			c.Kind = api.CauseUncleanShutdown
		}
	case event.ContainerPostStartFailed: // the event has no more
	default:
		c.Reason, c.Message, c.Image = api.Reason(e.Fields["reason"]), e.Fields["error"], e.Fields["image"]
	}
	return &c
}

// causeKinds are the kinds of causes by the kinds of events.
var causeKinds = map[event.Kind]api.CauseKind{
	event.ContainerLivenessFailed:  api.CauseLivenessFailed,
	event.ContainerStartupFailed:   api.CauseStartupFailed,
	event.ContainerPostStartFailed: api.CausePostStartFailed,
	event.ContainerSandboxChanged:  api.CauseSandboxChanged,
	event.SandboxChanged:           api.CauseSandboxChanged,
	event.ContainerStopping:        api.CauseStopRequested,
	event.PodStopping:              api.CauseStopRequested,
	event.ContainerKilled:          api.CauseKilled,
	event.PodStartRequested:        api.CauseStartRequested,
	event.PodRestartRequested:      api.CauseRestartRequested,
	event.PodEscalated:             api.CauseRestartRequested,
	event.RestartRequested:         api.CauseRestartRequested,
	event.ContainerChanged:         api.CauseDefinitionChanged,
	event.ContainerDropped:         api.CauseContainerRemoved,
	event.ContainerCreateFailed:    api.CauseCreateFailed,
	event.ContainerStartFailed:     api.CauseStartFailed,
	event.ImagePullFailed:          api.CauseImageFailed,
	event.ImageInspectFailed:       api.CauseImageFailed,
	event.ImageNeverPull:           api.CauseImageFailed,
	event.HostRebooted:             api.CauseHostRebooted,
	event.PodRestarting:            api.CauseRestartAll,
	event.PodEvicted:               api.CauseEvicted,
	event.NodeShutdown:             api.CauseStopRequested,
	event.PodDeadlineExceeded:      api.CauseDeadlineExceeded,
}

// by is who requested what an event reports; empty: not known.
func (b *builder) by(seq uint64) string {
	for i := range b.events {
		if e := &b.events[i]; e.Seq == seq {
			return e.Fields["by"]
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
