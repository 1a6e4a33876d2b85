// Package emit emits the events of a pod: it decides which actions and lifecycle events people need to see, with which fields and which
// cause. It does not change the facts.
package emit

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Emitter emits the events of one pod. It is not safe for concurrent use.
type Emitter struct {
	pod    *spec.Pod // without ephemeral containers
	uid    string
	ring   *event.Ring
	causes Causes
	// changes has what changed in the definition of a container whose run is replaced.
	changes map[string]string
}

// Emission emits events with the facts and the time of one moment.
type Emission struct {
	*Emitter
	facts *lifecycle.Facts
	now   lifecycle.Instant
}

// New returns the emitter of a pod, whose ephemeral containers are ignored. Causes are those of an earlier daemon; they may be nil.
func New(pod *spec.Pod, uid string, ring *event.Ring, c Causes) *Emitter {
	e := &Emitter{pod: pod, uid: uid, ring: ring, causes: maps.Clone(c)}
	if e.causes == nil {
		e.causes = Causes{}
	}
	return e
}

// Redefine sets the definition of the pod. The changes are those that restart containers, by container, for people.
func (e *Emitter) Redefine(pod *spec.Pod, changes map[string]string) { e.pod, e.changes = pod, changes }

// At returns an emission for these facts, which must not change until the last event is emitted.
func (e *Emitter) At(f *lifecycle.Facts, now lifecycle.Instant) Emission { return Emission{e, f, now} }

// Emit emits an event. Its cause is the newest event of its container or, if there is none, of the pod.
func (e Emission) Emit(kind api.EventKind, container string, f event.Fields) {
	e.emitBecause(e.causes.of(container), kind, container, f)
}

// emitBecause emits an event with the given cause, and records it as the cause of what follows.
func (e Emission) emitBecause(cause uint64, kind api.EventKind, container string, f event.Fields) {
	e.add(event.New(kind, e.now.Wall, e.pod.Name, f), cause, container)
}

// add emits an event of a container or, without one, of the pod.
func (e Emission) add(ev event.Event, cause uint64, container string) {
	ev.Cause, ev.UID, ev.Container, ev.Attempt = cause, e.uid, container, e.facts.Container(container).Newest.Attempt
	ev.Seq = e.ring.Add(ev)
	e.causes.Record(&ev)
}

// newest returns the newest attempt of a container.
func (e Emission) newest(container string) *lifecycle.Attempt {
	return &e.facts.Container(container).Newest
}

// Recovered emits that the pod was recovered after a restart of the daemon.
func (e Emission) Recovered() {
	e.Emit(api.EventPodRecovered, "", event.Fields{"containers": containers(len(e.facts.Live()))})
}

// containers is a number of containers as text.
func containers(n int) string {
	if n == 1 {
		return "1 container"
	}
	return strconv.Itoa(n) + " containers"
}

// Phase emits that the pod has reached a terminal phase, because of the newest event.
func (e Emission) Phase(p lifecycle.Phase) {
	switch p {
	case lifecycle.PhaseSucceeded:
		e.emitBecause(e.causes.latest(), api.EventPodSucceeded, "", nil)
	case lifecycle.PhaseFailed:
		kind := api.EventPodFailed
		stopped := []lifecycle.Reason{"", lifecycle.ReasonTerminated, lifecycle.ReasonJobComplete, lifecycle.ReasonJobFailed}
		if stop := e.facts.Stop; !stop.Requested.IsZero() && slices.Contains(stopped, stop.Reason) {
			kind = api.EventPodStopped // by request, for the shutdown of the host, or with its Job
		}
		e.emitBecause(e.causes.latest(), kind, "", nil)
	case lifecycle.PhasePending, lifecycle.PhaseRunning, lifecycle.PhaseUnknown:
	}
}

// Action emits that an action is about to be carried out, if people need to see that before its result. It is called with the facts
// before the action. Retries emit nothing.
func (e Emission) Action(a lifecycle.Action) {
	switch a := a.(type) {
	case lifecycle.RunPreStop:
		e.stopping(a.Ref, a.Reason, a.Limit)
	case lifecycle.WaitForTurn:
		e.stopping(a.Ref, a.Reason, a.Limit)
	case lifecycle.StopContainer:
		e.stopping(a.Ref, a.Reason, a.Grace)
	case lifecycle.KillContainer:
		if e.newest(a.Container).KillRequested.IsZero() {
			e.killed(a.Ref)
		}
	case lifecycle.ResizePod:
		if e.facts.Resize.Begun != a.N { // otherwise it has failed, or a restart of the daemon has interrupted it
			e.Emit(api.EventResizeStarted, "", e.resized(""))
		}
	case lifecycle.StartRound:
		e.restarting(a.By.Container)
	case lifecycle.Escalate:
		e.escalated(a)
	case lifecycle.RebootHost:
		if e.facts.Escalation.Reboot.Requested.IsZero() { // it is repeated
			e.emitBecause(e.causes.latest(), api.EventRebootRequested, "",
				event.Fields{"duration": a.Unready.Round(time.Millisecond).String()})
		}
	case lifecycle.StartWait:
		e.Emit(api.EventPodWaiting, "", event.Fields{"conditions": strings.Join(e.pod.Conditions(), ", ")})
	case lifecycle.FailPod:
		switch a.Reason {
		case lifecycle.ReasonBackoffLimit:
			e.Emit(api.EventPodBackoffExceeded, "", nil)
		case lifecycle.ReasonJobComplete, lifecycle.ReasonJobFailed:
			e.Emit(api.EventPodJobEnded, "", event.Fields{"error": a.Message, "reason": string(a.Reason)})
		default:
			e.Emit(api.EventPodDeadlineExceeded, "", nil)
		}
	}
}

// restarting emits that the exit of a container restarts all containers: by a rule of the container, or because the pod is retried. What
// lost the sandbox of a container that did not fail has an event of its own.
func (e Emission) restarting(container string) {
	f := event.Fields{"container": container, "code": strconv.Itoa(e.newest(container).Exit.Code)}
	switch retry := lifecycle.Retry(e.pod, *e.facts, container); {
	case retry > 0:
		f["retry"], f["limit"] = strconv.Itoa(retry), strconv.Itoa(int(*e.pod.BackoffLimit))
		f["trigger"] = "retry " + f["retry"] + " of " + f["limit"] + " after container " + container + " failed"
	case !e.pod.RetriedFor(e.pod.Container(container)):
		f["trigger"] = "triggered by a restart policy rule of container " + container
	case e.facts.SandboxReady() == 0:
		return
	default:
		f["trigger"] = "container " + container + " was lost"
	}
	e.emitBecause(e.causes.ofContainer(container), api.EventPodRestarting, "", f)
}

// escalated emits that a step is taken because the pod stays unready.
func (e Emission) escalated(a lifecycle.Escalate) {
	e.emitBecause(e.causes.latest(), api.EventPodEscalated, "", event.Fields{
		"duration": a.Unready.Round(time.Millisecond).String(), "step": a.Step.String(), "by": lifecycle.EscalationBy,
	})
}

// killed emits that a container is killed, and the grace period that it exceeded, if it had one.
func (e Emission) killed(ref lifecycle.Ref) {
	f := event.Fields{"container": ref.Container, "cause": "has no grace period"}
	if grace := e.gracePeriod(ref.Container); grace > 0 {
		f["grace"] = grace.Round(time.Millisecond).String()
		f["cause"] = "did not stop within its grace period of " + f["grace"]
	}
	e.Emit(api.EventContainerKilled, ref.Container, f)
}

// gracePeriod returns the grace period after which a container is killed; 0: it is killed without one.
func (e Emission) gracePeriod(container string) time.Duration {
	if e.facts.Stop.Force {
		return 0
	}
	newest := e.newest(container)
	asked, grace := newest.TerminationRequested, newest.TerminationGrace
	if asked.IsZero() {
		asked, grace = newest.StopRequested, newest.StopGrace
	}
	if stop := e.facts.Stop; grace > 0 && !stop.Requested.IsZero() && stop.Deadline.Before(asked.Add(grace)) {
		return stop.Grace // a stop of the pod has shortened it
	}
	return grace
}

// selfInflicted has the kinds of stops that a container causes itself: their cause is its own newest event.
var selfInflicted = map[lifecycle.Reason]api.EventKind{
	lifecycle.ReasonLivenessProbe:       api.EventContainerLivenessFailed,
	lifecycle.ReasonStartupProbe:        api.EventContainerStartupFailed,
	lifecycle.ReasonFailedPostStartHook: api.EventContainerPostStartFailed,
}

// stopping emits that a container is stopped, at its preStop hook or, without one, at its stop signal.
func (e Emission) stopping(ref lifecycle.Ref, why lifecycle.Reason, grace time.Duration) {
	if e.newest(ref.Container).StopReason != "" {
		return // emitted before
	}
	f := event.Fields{"container": ref.Container, "grace": grace.Round(time.Millisecond).String()}
	kind, cause := api.EventContainerStopping, e.causes.ofPod()
	own, selfInflicted := selfInflicted[why]
	switch {
	case why == lifecycle.ReasonSandboxChanged:
		kind = api.EventContainerSandboxChanged
	case why == lifecycle.ReasonDefinitionChanged:
		kind, f["changes"] = api.EventContainerChanged, e.changes[ref.Container]
	case why == lifecycle.ReasonContainerRemoved:
		kind = api.EventContainerDropped
	case selfInflicted:
		kind, cause = own, e.causes.ofContainer(ref.Container)
		e.addProbeResult(f, ref, why)
		f["role"], f["then"] = e.afterProbe(ref.Container)
	default:
		f["why"] = string(why)
	}
	switch why {
	case lifecycle.ReasonDeviceRemoved:
		cause = e.causes.ofContainer(ref.Container)
	case lifecycle.ReasonRestartRequested: // of the container or of the pod
		cause = max(cause, e.causes.ofContainer(ref.Container))
	}
	e.emitBecause(cause, kind, ref.Container, f)
}

// Folded emits that a lifecycle event has changed the facts. It is called with the facts after the event; before are those before it.
func (e Emission) Folded(before *lifecycle.Facts, ev lifecycle.Event) {
	switch ev := ev.(type) {
	case lifecycle.SandboxStarted:
		e.Emit(api.EventSandboxReady, "", event.Fields{"sandbox": strconv.Itoa(ev.Sandbox)})
	case lifecycle.SandboxLost:
		if e.facts.Sandbox.Lost == ev.At {
			e.sandboxLost(ev)
		}
	case lifecycle.ImagePulled:
		if before.Container(ev.Container).Pull != e.facts.Container(ev.Container).Pull {
			e.imagePulled(ev)
		}
	case lifecycle.ContainerStarted:
		e.Emit(api.EventContainerCreated, ev.Container, nil)
		e.Emit(api.EventContainerStarted, ev.Container, nil)
	case lifecycle.ContainerExited:
		if e.hasExited(before, ev.Container) {
			e.exited(ev.Container, ev.Exit)
		}
	case lifecycle.StopRequested:
		e.stopRequested(before, ev)
	case lifecycle.RestartRequested:
		e.restartRequested(before, ev)
	case lifecycle.ContainerRestartRequested:
		if *before.Container(ev.Container) != *e.facts.Container(ev.Container) {
			e.Emit(api.EventRestartRequested, ev.Container, event.Fields{"container": ev.Container, "by": ev.By})
		}
	case lifecycle.DeviceRemoved:
		e.deviceRemoved(before, ev)
	case lifecycle.DeviceAdded:
		if a := e.newest(ev.Container); ev.Ref == a.Ref {
			f := deviceFields(ev.Container, ev.Device, !a.CreateFailed.IsZero())
			f["then"] = because(ev.Outcome)
			e.Emit(api.EventDeviceAdded, ev.Container, f)
		}
	case lifecycle.PodEvicted:
		if before.Stop.Requested.IsZero() {
			e.Emit(api.EventPodEvicted, "", event.Fields{"error": ev.Message})
		}
	case lifecycle.HostShutdown:
		if before.Stop.Requested.IsZero() {
			e.Emit(api.EventNodeShutdown, "", event.Fields{"grace": ev.Grace.Round(time.Millisecond).String(), "by": ev.By})
		}
	case lifecycle.ShutdownEnded:
		if before.Restart != e.facts.Restart {
			e.Emit(api.EventPodStartRequested, "", event.Fields{"by": e.facts.Restart.By})
		}
	case lifecycle.ConditionMet:
		if e.facts.Wait.Conditions[ev.Condition].Met != before.Wait.Conditions[ev.Condition].Met {
			e.Emit(api.EventConditionMet, "", event.Fields{
				"condition": ev.Condition, "duration": e.now.Sub(e.facts.Wait.Since).Round(time.Millisecond).String(),
			})
		}
	case lifecycle.PodResized:
		if before.Resize.N == ev.N && before.Resize != e.facts.Resize && e.facts.Resize.Requested.IsZero() {
			e.Emit(api.EventResizeCompleted, "", e.resized(""))
		}
	case lifecycle.PodCollected:
		e.Emit(api.EventPodCollected, "", nil)
	case lifecycle.PodRemoved:
		e.Emit(api.EventPodRemoved, "", nil)
	case lifecycle.Booted:
		how := ""
		if ev.Unclean {
			how = " after it stopped without a shutdown"
		}
		e.Emit(api.EventHostRebooted, "", event.Fields{"how": how})
	case lifecycle.ActionFailed:
		e.failed(before, ev)
	case lifecycle.ProbeFailed:
		e.probed(ev.ProbeRef, ev.Result, ev.Count)
	case lifecycle.ProbeWarned:
		e.probed(ev.ProbeRef, ev.Result, 0)
	}
	e.maxRestarts(before)
}

// maxRestarts emits that a container has reached its maxRestarts.
func (e Emission) maxRestarts(before *lifecycle.Facts) {
	for i := range e.pod.Containers {
		c := &e.pod.Containers[i]
		if c.MaxRestarts == nil || before.Container(c.Name).Exits == e.facts.Container(c.Name).Exits {
			continue
		}
		if lifecycle.Exhausted(e.pod, *e.facts, c.Name) {
			e.emitBecause(e.causes.ofContainer(c.Name), api.EventMaxRestartsReached, c.Name, event.Fields{
				"container": c.Name, "limit": strconv.Itoa(int(*c.MaxRestarts)),
			})
		}
	}
}

// deviceRemoved emits that a device of the newest run was unplugged, unless it is restarted for another one.
func (e Emission) deviceRemoved(before *lifecycle.Facts, ev lifecycle.DeviceRemoved) {
	a := e.newest(ev.Container)
	replaced := *before.Container(ev.Container) != *e.facts.Container(ev.Container)
	if ev.Ref != a.Ref || ev.Restarts && !replaced && (a.Exited.IsZero() || a.DeviceRemoved != "") {
		return
	}
	e.Emit(api.EventDeviceRemoved, ev.Container, deviceFields(ev.Container, ev.Device, replaced))
}

// deviceFields returns the fields of an event of a device. Only one by which its container starts again, or at last, leads to something,
// see [event.Event.KeepsDevice].
func deviceFields(container, device string, restarts bool) event.Fields {
	f := event.Fields{"container": container, "device": device}
	if restarts {
		f["restarts"] = "true"
	}
	return f
}

// because returns an outcome as the end of a sentence; empty: there is none.
func because(outcome string) string {
	if outcome == "" {
		return ""
	}
	return ", " + outcome
}

func (e Emission) sandboxLost(lost lifecycle.SandboxLost) {
	then := "it will be killed and re-created" // the kubelet's message
	if lifecycle.Terminating(e.pod, *e.facts) {
		then = "it is not re-created"
	}
	e.Emit(api.EventSandboxChanged, "", event.Fields{"error": lost.Message, "then": then})
}

func (e Emission) imagePulled(pulled lifecycle.ImagePulled) {
	kind := api.EventImagePresent
	if pulled.Pulled {
		kind = api.EventImagePulled
	}
	e.Emit(kind, pulled.Container, event.Fields{
		"image": e.Image(pulled.Container), "duration": pulled.Took.Round(time.Millisecond).String(),
	})
	e.Shadowed(pulled.Container, pulled.Shadows)
}

// Shadowed emits that images from archives of the pod, which a container uses, differ from other images of the same names.
func (e Emission) Shadowed(container string, shadows []lifecycle.Shadow) {
	for _, s := range shadows {
		e.Emit(api.EventImageShadowed, container, event.Fields{"image": s.Image, "archive": s.Archive})
	}
}

// stopRequested emits that the pod is stopped, unless the request changed nothing or nothing is left to stop.
func (e Emission) stopRequested(before *lifecycle.Facts, r lifecycle.StopRequested) {
	if before.Stop == e.facts.Stop {
		return
	}
	if before.Idle() && lifecycle.StatusOf(e.pod, *before, e.now).Phase.Terminal() {
		return
	}
	grace := e.facts.Stop.Deadline.Sub(e.now)
	if r.Grace.Force {
		grace = 0
	}
	e.Emit(api.EventPodStopping, "", event.Fields{"grace": grace.Round(time.Millisecond).String(), "by": r.By})
}

// restartRequested emits that the pod is started again, or is restarted, unless the request changed nothing. A change of the definition has
// an event of its own.
func (e Emission) restartRequested(before *lifecycle.Facts, r lifecycle.RestartRequested) {
	if before.Restart == e.facts.Restart || r.Redefined {
		return
	}
	kind := api.EventPodRestartRequested
	if lifecycle.Terminating(e.pod, *before) {
		kind = api.EventPodStartRequested
	}
	e.Emit(kind, "", event.Fields{"by": r.By})
}

// hasExited reports whether the newest attempt of a container has exited by the event that was folded.
func (e Emission) hasExited(before *lifecycle.Facts, container string) bool {
	return before.Container(container).Newest.Exited.IsZero() && !e.newest(container).Exited.IsZero()
}

// exited emits the exit of the newest attempt, with the time of the exit, and the back-off before the next attempt, which counts from
// then.
func (e Emission) exited(container string, exit lifecycle.Exit) {
	at := e.At(e.facts, e.newest(container).Exited)
	if exit.Code == 0 && exit.Reason != lifecycle.ReasonOOMKilled {
		at.Emit(api.EventContainerSucceeded, container, event.Fields{"message": shorten(exit.Message)})
	} else {
		ev := event.New(api.EventContainerFailed, at.now.Wall, e.pod.Name, event.Fields{
			"code": strconv.Itoa(exit.Code), "reason": string(exit.Reason), "message": shorten(exit.Message),
		})
		if onRequest[e.newest(container).StopReason] && exit.Reason != lifecycle.ReasonOOMKilled {
			ev.Level = api.EventNormal // many programs exit with another code than 0 when they are stopped
		}
		at.add(ev, at.causes.of(container), container)
	}
	e.backOff(container)
}

// onRequest are the reasons for which a container is stopped that has not failed.
var onRequest = map[lifecycle.Reason]bool{
	lifecycle.ReasonStopped: true, lifecycle.ReasonRestartRequested: true, lifecycle.ReasonDefinitionChanged: true,
	lifecycle.ReasonContainerRemoved: true, lifecycle.ReasonPodFinished: true, lifecycle.ReasonRestartingAllContainers: true,
	lifecycle.ReasonDeviceRemoved: true,
}

// backOff emits the delay before the next attempt of a container, if there is one.
func (e Emission) backOff(container string) {
	if delay := lifecycle.RestartDelay(e.pod, *e.facts, container, e.now); delay > 0 {
		e.Emit(api.EventContainerBackOff, container, event.Fields{
			"container": container, "pod": e.pod.Name + "_default(" + e.uid + ")", "delay": delay.Round(time.Millisecond).String(),
		})
	}
}

// Image returns the image of a container as the pod file has it.
func (e Emission) Image(container string) string {
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
