package explain

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// causeOf is the cause that an event is for a container, by the kind of the event and its fields.
func (b *builder) causeOf(e *event.Event, name string, started time.Time) *Cause {
	c := Cause{Kind: causeKinds[e.Kind], Container: name, Role: b.role(name), Time: e.Time}
	switch e.Kind { //nolint:exhaustive // other events have the fields of the default case
	case event.ContainerLivenessFailed, event.ContainerStartupFailed:
		c.Failures, _ = strconv.Atoi(e.Fields["count"])
		c.Output = e.Fields["output"]
	case event.ContainerStopping:
		switch lifecycle.Reason(e.Fields["why"]) {
		case lifecycle.ReasonPodFinished:
			c.Kind = PodFinished
		case lifecycle.ReasonRestartRequested:
			c.Kind, c.By = RestartRequested, b.by(e.Cause)
		case lifecycle.ReasonRestartingAllContainers:
			c.Kind = RestartAll
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
			c.Exit = &Exit{Code: code, Signal: signalOf(code)}
		}
	case event.PodStopping:
		c.By, c.Grace = e.Fields["by"], e.Fields["grace"]
	case event.PodStartRequested, event.PodRestartRequested, event.RestartRequested, event.PodEscalated:
		c.By = e.Fields["by"]
	case event.ContainerChanged:
		c.Message = e.Fields["changes"]
	case event.PodDeadlineExceeded:
		c.Reason, c.Message = lifecycle.ReasonDeadlineExceeded, e.Message
	case event.HostRebooted:
		if e.Fields["how"] != "" {
			c.Kind = UncleanShutdown
		}
	case event.ContainerPostStartFailed: // the event has no more
	default:
		c.Reason, c.Message, c.Image = lifecycle.Reason(e.Fields["reason"]), e.Fields["error"], e.Fields["image"]
	}
	return &c
}

// causeKinds are the kinds of causes by the kinds of events.
var causeKinds = map[event.Kind]CauseKind{
	event.ContainerLivenessFailed:  LivenessFailed,
	event.ContainerStartupFailed:   StartupFailed,
	event.ContainerPostStartFailed: PostStartFailed,
	event.ContainerSandboxChanged:  SandboxChanged,
	event.SandboxChanged:           SandboxChanged,
	event.ContainerStopping:        StopRequested,
	event.PodStopping:              StopRequested,
	event.ContainerKilled:          Killed,
	event.PodStartRequested:        StartRequested,
	event.PodRestartRequested:      RestartRequested,
	event.PodEscalated:             RestartRequested,
	event.RestartRequested:         RestartRequested,
	event.ContainerChanged:         DefinitionChanged,
	event.ContainerDropped:         ContainerRemoved,
	event.ContainerCreateFailed:    CreateFailed,
	event.ContainerStartFailed:     StartFailed,
	event.ImagePullFailed:          ImageFailed,
	event.ImageInspectFailed:       ImageFailed,
	event.ImageNeverPull:           ImageFailed,
	event.HostRebooted:             HostRebooted,
	event.PodRestarting:            RestartAll,
	event.PodEvicted:               Evicted,
	event.NodeShutdown:             StopRequested,
	event.PodDeadlineExceeded:      DeadlineExceeded,
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
func exitKind(x *Exit) CauseKind {
	switch x.Reason {
	case lifecycle.ReasonOOMKilled:
		return OOMKilled
	case lifecycle.ReasonUnknown, lifecycle.ReasonStatusUnknown:
		return ExitUnknown
	case lifecycle.ReasonStartError:
		return StartFailed
	default:
		return Exited
	}
}

// causeOfAttempt is why a run stopped or exited, by the facts alone: the events may have been lost or dropped.
func (b *builder) causeOfAttempt(a *lifecycle.Attempt) *Cause {
	c := Cause{Container: a.Container, Role: b.role(a.Container), Time: a.StopRequested.Wall.UTC()}
	switch a.StopReason {
	case lifecycle.ReasonLivenessProbe:
		c.Kind, c.Failures, c.Output = LivenessFailed, a.Probes.Liveness.Count, a.Probes.Liveness.Message
	case lifecycle.ReasonStartupProbe:
		c.Kind, c.Failures, c.Output = StartupFailed, a.Probes.Startup.Count, a.Probes.Startup.Message
	case lifecycle.ReasonFailedPostStartHook:
		c.Kind, c.Message = PostStartFailed, a.PostStart.Message
	case lifecycle.ReasonSandboxChanged:
		c.Kind, c.Message = SandboxChanged, b.snapshot.Facts.Sandbox.Message
	case lifecycle.ReasonRestartingAllContainers:
		c.Kind = RestartAll
	case lifecycle.ReasonPodFinished:
		c.Kind = PodFinished
	case lifecycle.ReasonRestartRequested:
		c.Kind, c.By = RestartRequested, b.snapshot.Facts.Restart.By
	case lifecycle.ReasonDefinitionChanged:
		c.Kind = DefinitionChanged
	case lifecycle.ReasonContainerRemoved:
		c.Kind = ContainerRemoved
	case lifecycle.ReasonStopped:
		return b.stopCause()
	default:
		if a.Exited.IsZero() {
			return nil
		}
		c.Exit, c.Time, c.Message = exitOfAttempt(a), a.Exited.Wall.UTC(), a.Exit.Message
		if c.Kind = exitKind(c.Exit); c.Kind != StartFailed {
			c.Message = ""
		}
	}
	return &c
}

// stopCause is why the pod is stopped or was.
func (b *builder) stopCause() *Cause {
	stop := &b.snapshot.Facts.Stop
	c := &Cause{Kind: StopRequested, Time: stop.Requested.Wall.UTC(), By: stop.By, Reason: stop.Reason, Message: stop.Message}
	if !stop.Force && stop.Grace > 0 {
		c.Grace = stop.Grace.String()
	}
	switch stop.Reason {
	case lifecycle.ReasonDeadlineExceeded:
		c.Kind = DeadlineExceeded
	case lifecycle.ReasonEvicted:
		c.Kind = Evicted
	}
	return c
}

// exitOfAttempt is how a run exited.
func exitOfAttempt(a *lifecycle.Attempt) *Exit {
	return &Exit{
		Code: a.Exit.Code, Signal: signalOf(a.Exit.Code), Reason: a.Exit.Reason,
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
