package supervisor

import (
	"strconv"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// emitter emits the events of one pod. It decides which actions and lifecycle events a person needs to see, with which fields and
// which cause. It belongs to the goroutine of the pod's loop.
type emitter struct {
	pod    *spec.Pod // without ephemeral containers
	uid    string
	ring   *Ring
	causes causes
}

// emission emits events with the facts and the time of one moment.
type emission struct {
	*emitter
	facts lifecycle.Facts
	now   lifecycle.Instant
}

// at returns an emission for these facts.
func (e *emitter) at(f lifecycle.Facts, now lifecycle.Instant) emission { return emission{e, f, now} }

type fields map[string]string

// emit emits an event. Its cause is the newest event of its container or, if there is none, of the pod.
func (e emission) emit(kind Kind, container string, f fields) {
	e.emitBecause(e.causes.of(container), kind, container, f)
}

// emitBecause emits an event with the given cause, and records it as the cause of what follows.
func (e emission) emitBecause(cause uint64, kind Kind, container string, f fields) {
	event := kind.event(e.now, e.pod.Name, f)
	event.Cause, event.UID, event.Container, event.Attempt = cause, e.uid, container, e.newest(container).Attempt
	e.causes.record(container, e.ring.add(event), kind)
}

// newest returns the newest attempt of a container.
func (e emission) newest(container string) lifecycle.Attempt {
	return e.facts.Containers[container].Newest
}

// recovered emits that the pod was recovered after a restart of the daemon.
func (e emission) recovered() {
	e.emit(PodRecovered, "", fields{"running": strconv.Itoa(len(e.facts.Live()))})
}

// phase emits that the pod has reached a terminal phase, because of the newest event.
func (e emission) phase(p lifecycle.Phase) {
	switch p {
	case lifecycle.PhaseSucceeded:
		e.emitBecause(e.causes.latest(), PodSucceeded, "", nil)
	case lifecycle.PhaseFailed:
		e.emitBecause(e.causes.latest(), PodFailed, "", nil)
	case lifecycle.PhasePending, lifecycle.PhaseRunning, lifecycle.PhaseUnknown:
	}
}

// action emits that an action is about to be carried out, if people need to see that before its result. It is called with the facts
// before the action. Retries emit nothing.
func (e emission) action(a lifecycle.Action) {
	switch a := a.(type) {
	case lifecycle.RunPreStop:
		e.stopping(a.Ref, a.Reason, a.Limit)
	case lifecycle.AwaitTurn:
		e.stopping(a.Ref, a.Reason, a.Limit)
	case lifecycle.StopContainer:
		e.stopping(a.Ref, a.Reason, a.Grace)
	case lifecycle.KillContainer:
		if e.newest(a.Container).KillAsked.IsZero() {
			e.killed(a.Ref)
		}
	case lifecycle.BeginRound:
		e.emitBecause(e.causes.ofContainer(a.By.Container), PodRestarting, "", fields{
			"container": a.By.Container, "code": strconv.Itoa(e.newest(a.By.Container).Exit.Code),
		})
	case lifecycle.EndPod:
		e.emit(PodDeadlineExceeded, "", nil)
	}
}

// killed emits that a container is killed, and the grace period that it exceeded, if it had one.
func (e emission) killed(ref lifecycle.Ref) {
	f := fields{"container": ref.Container, "cause": "is stopped without a grace period"}
	if grace := e.gracePeriod(ref.Container); grace > 0 {
		f["grace"] = grace.Round(time.Millisecond).String()
		f["cause"] = "did not stop within its grace period of " + f["grace"]
	}
	e.emit(ContainerKilled, ref.Container, f)
}

// gracePeriod returns the grace period after which a container is killed; 0: it is killed without one.
func (e emission) gracePeriod(container string) time.Duration {
	if e.facts.Stop.Force {
		return 0
	}
	newest := e.newest(container)
	asked, grace := newest.EndAsked, newest.EndGrace
	if asked.IsZero() {
		asked, grace = newest.StopAsked, newest.StopGrace
	}
	if stop := e.facts.Stop; grace > 0 && !stop.Asked.IsZero() && stop.Deadline.Before(asked.Add(grace)) {
		return stop.Grace // a stop of the pod has shortened it
	}
	return grace
}

// selfInflicted has the kinds of stops that a container causes itself: their cause is its own newest event.
var selfInflicted = map[lifecycle.Reason]Kind{
	lifecycle.ReasonLivenessProbe:       ContainerLivenessFailed,
	lifecycle.ReasonStartupProbe:        ContainerStartupFailed,
	lifecycle.ReasonFailedPostStartHook: ContainerPostStartFailed,
}

// stopping emits that a container is stopped, at its preStop hook or, without one, at its stop signal.
func (e emission) stopping(ref lifecycle.Ref, why lifecycle.Reason, grace time.Duration) {
	if e.newest(ref.Container).StopReason != "" {
		return // emitted before
	}
	f := fields{"container": ref.Container, "grace": grace.Round(time.Millisecond).String()}
	kind, cause := ContainerStopping, e.causes.ofPod()
	if why == lifecycle.ReasonSandboxChanged {
		kind = ContainerSandboxChanged
	} else if own, ok := selfInflicted[why]; ok {
		kind, cause = own, e.causes.ofContainer(ref.Container)
		e.addProbeResult(f, ref, why)
		f["role"], f["then"] = e.afterProbe(ref.Container)
	} else {
		f["why"] = string(why)
	}
	e.emitBecause(cause, kind, ref.Container, f)
}

// folded emits that a lifecycle event has changed the facts. It is called with the facts after the event; before are those before it.
func (e emission) folded(before lifecycle.Facts, event lifecycle.Event) {
	switch event := event.(type) {
	case lifecycle.SandboxStarted:
		e.emit(SandboxReady, "", fields{"sandbox": strconv.Itoa(event.Sandbox)})
	case lifecycle.SandboxLost:
		if e.facts.Sandbox.Lost == event.At {
			e.sandboxLost(event)
		}
	case lifecycle.ImagePulled:
		if before.Containers[event.Container].Pull != e.facts.Containers[event.Container].Pull {
			e.imagePulled(event)
		}
	case lifecycle.ContainerStarted:
		e.emit(ContainerCreated, event.Container, nil)
		e.emit(ContainerStarted, event.Container, nil)
	case lifecycle.ContainerExited:
		if e.hasExited(before, event.Container) {
			e.exited(event.Container, event.Exit)
		}
	case lifecycle.StopRequested:
		e.stopRequested(before, event)
	case lifecycle.PodEvicted:
		if before.Stop.Asked.IsZero() {
			e.emit(PodEvicted, "", fields{"error": event.Message})
		}
	case lifecycle.PodRemoved:
		e.emit(PodRemoved, "", nil)
	case lifecycle.Booted:
		e.emit(HostRebooted, "", nil)
	case lifecycle.ActionFailed:
		e.failed(before, event)
	case lifecycle.ProbeFailed:
		e.probed(event.ProbeRef, event.Result, event.Count)
	case lifecycle.ProbeWarned:
		e.probed(event.ProbeRef, event.Result, 0)
	}
}

func (e emission) sandboxLost(lost lifecycle.SandboxLost) {
	then := "it will be killed and re-created" // the kubelet's message
	if lifecycle.Ends(e.pod, e.facts) {
		then = "it is not re-created"
	}
	e.emit(SandboxChanged, "", fields{"error": lost.Message, "then": then})
}

func (e emission) imagePulled(pulled lifecycle.ImagePulled) {
	kind := ImagePresent
	if pulled.Pulled {
		kind = ImagePulled
	}
	e.emit(kind, pulled.Container, fields{
		"image": e.image(pulled.Container), "duration": pulled.Took.Round(time.Millisecond).String(),
	})
}

// stopRequested emits that the pod is stopped, unless the request changed nothing or nothing is left to stop.
func (e emission) stopRequested(before lifecycle.Facts, r lifecycle.StopRequested) {
	if before.Stop == e.facts.Stop {
		return
	}
	if before.AtRest() && lifecycle.StatusOf(e.pod, before, e.now).Phase.Terminal() {
		return
	}
	grace := e.facts.Stop.Deadline.Sub(e.now)
	if r.Grace.Force {
		grace = 0
	}
	e.emit(PodStopping, "", fields{"grace": grace.Round(time.Millisecond).String(), "by": r.By})
}

// hasExited reports whether the newest attempt of a container has exited by the event that was folded.
func (e emission) hasExited(before lifecycle.Facts, container string) bool {
	return before.Containers[container].Newest.Exited.IsZero() && !e.newest(container).Exited.IsZero()
}

// exited emits the exit of the newest attempt, with the time of the exit, and the back-off before the next attempt, which counts from
// then.
func (e emission) exited(container string, exit lifecycle.Exit) {
	at := e.at(e.facts, e.newest(container).Exited)
	if exit.Code == 0 && exit.Reason != lifecycle.ReasonOOMKilled {
		at.emit(ContainerSucceeded, container, fields{"message": shorten(exit.Message)})
	} else {
		at.emit(ContainerFailed, container, fields{
			"code": strconv.Itoa(exit.Code), "reason": string(exit.Reason), "message": shorten(exit.Message),
		})
	}
	e.backOff(container)
}

// backOff emits the delay before the next attempt of a container, if there is one.
func (e emission) backOff(container string) {
	if delay := lifecycle.RestartDelay(e.pod, e.facts, container, e.now); delay > 0 {
		e.emit(ContainerBackOff, container, fields{
			"container": container, "pod": e.pod.Name + "_default(" + e.uid + ")", "delay": delay.Round(time.Millisecond).String(),
		})
	}
}

// image returns the image of a container as the pod file has it.
func (e emission) image(container string) string {
	if c := e.pod.Container(container); c != nil {
		return c.Image
	}
	for i := range e.facts.Ephemeral {
		if c := &e.facts.Ephemeral[i]; c.Name == container {
			return c.Image
		}
	}
	return ""
}
