package supervisor

import (
	"strconv"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

type fields map[string]string

// tell publishes an event and remembers it as the cause of what follows from it. Its own cause is the newest event of
// its container, or, of the pod and where the container has none, the pod's.
func (l *loop) tell(now lifecycle.Instant, kind Kind, container string, f fields) {
	cause, known := l.causes[container]
	if !known {
		cause = l.causes[""]
	}
	l.tellBecause(now, cause, kind, container, f)
}

func (l *loop) tellBecause(now lifecycle.Instant, cause uint64, kind Kind, container string, f fields) {
	entry := table[kind]
	l.causes[container] = l.shared.ring.add(Event{
		Cause: cause, Time: now.Wall.UTC(), Level: entry.Level, Kind: kind, Reason: entry.Reason,
		Pod: l.pod.Name, UID: l.uid, Container: container, Attempt: l.facts.Containers[container].Newest.Attempt,
		Fields: f, Message: entry.sentence(f),
	})
}

// tellAction tells of what the pod is about to do, where a person wants to know before it is done.
func (l *loop) tellAction(a lifecycle.Action, now lifecycle.Instant) {
	switch a := a.(type) {
	case lifecycle.StopContainer:
		kind, cause := ContainerStopping, l.causes[""]
		if a.Reason == lifecycle.ReasonSandboxChanged {
			kind = ContainerOutdated
		}
		l.tellBecause(now, cause, kind, a.Container, fields{"container": a.Container, "grace": a.Grace.Round(time.Millisecond).String()})
	case lifecycle.KillContainer:
		l.tell(now, ContainerKilled, a.Container, fields{"container": a.Container})
	}
}

// tellEvent tells of what has happened, if it changed anything.
func (l *loop) tellEvent(before lifecycle.Facts, e lifecycle.Event, now lifecycle.Instant) {
	switch e := e.(type) {
	case lifecycle.SandboxStarted:
		l.tell(now, SandboxReady, "", fields{"sandbox": strconv.Itoa(e.Sandbox)})
	case lifecycle.SandboxLost:
		if l.facts.Sandbox.Lost == e.At {
			l.tell(now, SandboxGone, "", fields{"error": e.Message})
		}
	case lifecycle.ImagePulled:
		kind := ImagePresent
		if e.Pulled {
			kind = ImageFetched
		}
		l.tell(now, kind, e.Container, fields{"image": l.image(e.Container), "duration": e.Took.Round(time.Millisecond).String()})
	case lifecycle.ContainerStarted:
		l.tell(now, ContainerRunning, e.Container, nil)
	case lifecycle.ContainerExited:
		if before.Containers[e.Container].Newest.Exited.IsZero() {
			l.tellExit(e, now)
		}
	case lifecycle.StopRequested:
		grace := l.facts.Stop.Deadline.Sub(now)
		if e.Grace.Force {
			grace = 0
		}
		l.tell(now, PodStopping, "", fields{"grace": grace.Round(time.Millisecond).String(), "by": e.By})
	case lifecycle.PodRemoved:
		l.tell(now, PodGone, "", nil)
	case lifecycle.Booted:
		l.tell(now, MachineRestarted, "", nil)
	case lifecycle.ActionFailed:
		l.tellFailure(e, now)
	}
}

// tellExit tells of the end of a run, and of the delay before the next.
func (l *loop) tellExit(e lifecycle.ContainerExited, now lifecycle.Instant) {
	if e.Exit.Code == 0 {
		l.tell(now, ContainerSucceeded, e.Container, nil)
	} else {
		l.tell(now, ContainerFailed, e.Container, fields{"code": strconv.Itoa(e.Exit.Code), "reason": string(e.Exit.Reason)})
	}
	l.tellBackOff(e.Container, now)
}

// tellBackOff tells of the delay before the next run of a container, if there is one and it waits.
func (l *loop) tellBackOff(container string, now lifecycle.Instant) {
	if delay := lifecycle.RestartDelay(l.pod, l.facts, container, now); delay > 0 {
		l.tell(now, ContainerBackOff, container, fields{"container": container, "delay": delay.Round(time.Millisecond).String()})
	}
}

func (l *loop) tellFailure(e lifecycle.ActionFailed, now lifecycle.Instant) {
	why := fields{"error": e.Failure.Message, "reason": string(e.Failure.Reason)}
	if e.Failure.Kind == lifecycle.FailureUnavailable {
		l.tell(now, EngineAway, "", fields{"error": e.Failure.Message})
		return
	}
	switch a := e.Action.(type) {
	case lifecycle.StartSandbox:
		l.tell(now, SandboxFailed, "", why)
	case lifecycle.PullImage:
		delete(l.pulling, a.Container)
		if !l.facts.Containers[a.Container].Pull.Cancelled.IsZero() {
			return
		}
		why["image"] = l.image(a.Container)
		l.tell(now, ImageFailed, a.Container, why)
		delay := lifecycle.PullDelay(l.facts, a.Container)
		l.tell(now, ImageBackOff, a.Container, fields{"image": why["image"], "delay": delay.String()})
	case lifecycle.StartContainer:
		if e.Failure.Kind == lifecycle.FailureRefused {
			l.tell(now, ContainerRefused, a.Container, why)
			return
		}
		l.tell(now, ContainerStartError, a.Container, why)
		l.tellBackOff(a.Container, now)
	case lifecycle.StopContainer:
		l.tellSignal(a.Container, e.Failure, now)
	case lifecycle.KillContainer:
		l.tellSignal(a.Container, e.Failure, now)
	case lifecycle.RemoveSandbox:
		l.tell(now, RemovalFailed, "", fields{"what": "the pod sandbox", "error": e.Failure.Message})
	case lifecycle.RemoveContainer:
		l.tell(now, RemovalFailed, a.Container, fields{"what": "an ended container", "error": e.Failure.Message})
	case lifecycle.RemovePod:
		l.tell(now, RemovalFailed, "", fields{"what": "the pod", "error": e.Failure.Message})
	}
}

// tellSignal tells of a signal that could not be sent. That the process is gone already is no news.
func (l *loop) tellSignal(container string, why lifecycle.Failure, now lifecycle.Instant) {
	if why.Kind != lifecycle.FailureGone {
		l.tell(now, SignalFailed, container, fields{"container": container, "error": why.Message})
	}
}

// image returns the image of a container, as the pod file names it.
func (l *loop) image(container string) string {
	for _, list := range [...][]spec.Container{l.pod.InitContainers, l.pod.Containers} {
		for i := range list {
			if list[i].Name == container {
				return list[i].Image
			}
		}
	}
	return ""
}
