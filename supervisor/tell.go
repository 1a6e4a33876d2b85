package supervisor

import (
	"cmp"
	"strconv"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

type fields map[string]string

// told is an event as its followers remember it.
type told struct {
	seq  uint64
	kind Kind
}

// tell publishes an event and remembers it as the cause of what follows from it. Its own cause is the newest event of
// its container, or, of the pod and where the container has none, the pod's.
func (l *loop) tell(now lifecycle.Instant, kind Kind, container string, f fields) {
	cause, known := l.newest[container]
	if !known {
		cause = l.newest[""]
	}
	l.tellBecause(now, cause.seq, kind, container, f)
}

// latest is the newest event of the pod and its containers.
func (l *loop) latest() uint64 {
	seq := uint64(0)
	for _, t := range l.newest {
		seq = max(seq, t.seq)
	}
	return seq
}

func (l *loop) tellBecause(now lifecycle.Instant, cause uint64, kind Kind, container string, f fields) {
	e := kind.event(now, l.pod.Name, f)
	e.Cause, e.UID, e.Container, e.Attempt = cause, l.uid, container, l.facts.Containers[container].Newest.Attempt
	if beginsAnew[kind] { // what containers do next follows from this
		clear(l.newest)
	}
	l.newest[container] = told{l.shared.ring.add(e), kind}
}

// beginsAnew are the kinds after which nothing is as it was before.
var beginsAnew = map[Kind]bool{HostRebooted: true, SandboxChanged: true, PodRestarting: true}

// event is an event of this kind, of a pod as a whole and without a cause.
func (k Kind) event(now lifecycle.Instant, pod string, f fields) Event {
	entry := table[k]
	return Event{
		Time: now.Wall.UTC(), Level: entry.Level, Kind: k, Reason: entry.Reason, Pod: pod,
		Fields: f, Message: entry.sentence(f),
	}
}

func (l *loop) tellRecovered(now lifecycle.Instant) {
	l.tell(now, PodRecovered, "", fields{"running": strconv.Itoa(len(l.facts.Live()))})
}

// tellAction tells of what the pod is about to do, where a person wants to know before it is done. That it is tried again
// is no news.
func (l *loop) tellAction(a lifecycle.Action, now lifecycle.Instant) {
	switch a := a.(type) {
	case lifecycle.RunPreStop:
		l.tellStopping(a.Ref, a.Reason, a.Limit, now)
	case lifecycle.WaitForTurn:
		l.tellStopping(a.Ref, a.Reason, a.Limit, now)
	case lifecycle.StopContainer:
		l.tellStopping(a.Ref, a.Reason, a.Grace, now)
	case lifecycle.KillContainer:
		if l.facts.Containers[a.Container].Newest.KillRequested.IsZero() {
			l.tellKilled(a.Ref, now)
		}
	case lifecycle.StartRound:
		l.tellBecause(now, l.newest[a.By.Container].seq, PodRestarting, "", fields{
			"container": a.By.Container, "code": strconv.Itoa(l.facts.Containers[a.By.Container].Newest.Exit.Code),
		})
	case lifecycle.FailPod:
		l.tell(now, PodDeadlineExceeded, "", nil)
	}
}

// tellKilled emits the end of a run's grace period, and names the period where there was one.
func (l *loop) tellKilled(ref lifecycle.Ref, now lifecycle.Instant) {
	f := fields{"container": ref.Container, "cause": "is stopped without a grace period"}
	run := l.facts.Containers[ref.Container].Newest
	if grace := cmp.Or(run.TerminationGrace, run.StopGrace); grace > 0 {
		f["grace"] = grace.Round(time.Millisecond).String()
		f["cause"] = "did not stop within its grace period of " + f["grace"]
	}
	l.tell(now, ContainerKilled, ref.Container, f)
}

// ownEnds tell of the ends that a container has brought upon itself: its own newest event is their cause.
var ownEnds = map[lifecycle.Reason]Kind{
	lifecycle.ReasonLivenessProbe:       ContainerLivenessFailed,
	lifecycle.ReasonStartupProbe:        ContainerStartupFailed,
	lifecycle.ReasonFailedPostStartHook: ContainerPostStartFailed,
}

// tellStopping tells that a run is being brought to its end, once: by its preStop hook, or by its signal if it has none.
func (l *loop) tellStopping(ref lifecycle.Ref, why lifecycle.Reason, grace time.Duration, now lifecycle.Instant) {
	if l.facts.Containers[ref.Container].Newest.StopReason != "" {
		return
	}
	f := fields{"container": ref.Container, "grace": grace.Round(time.Millisecond).String()}
	kind, cause := ContainerStopping, l.newest[""].seq
	if why == lifecycle.ReasonSandboxChanged {
		kind = ContainerSandboxChanged
	} else if own, is := ownEnds[why]; is {
		kind, cause = own, l.newest[ref.Container].seq
		l.addVerdict(f, ref, why)
		f["role"], f["then"] = l.afterProbe(ref.Container)
	} else {
		f["why"] = string(why)
	}
	l.tellBecause(now, cause, kind, ref.Container, f)
}

// tellEvent tells of what has happened, if it changed anything.
func (l *loop) tellEvent(before lifecycle.Facts, e lifecycle.Event, now lifecycle.Instant) {
	switch e := e.(type) {
	case lifecycle.SandboxStarted:
		l.tell(now, SandboxReady, "", fields{"sandbox": strconv.Itoa(e.Sandbox)})
	case lifecycle.SandboxLost:
		if l.facts.Sandbox.Lost == e.At {
			then := "it will be killed and re-created" // the kubelet's words
			if lifecycle.Terminating(l.pod, l.facts) {
				then = "it is not re-created"
			}
			l.tell(now, SandboxChanged, "", fields{"error": e.Message, "then": then})
		}
	case lifecycle.ImagePulled:
		if before.Containers[e.Container].Pull == l.facts.Containers[e.Container].Pull {
			return // it was found already
		}
		kind := ImagePresent
		if e.Pulled {
			kind = ImagePulled
		}
		l.tell(now, kind, e.Container, fields{"image": l.image(e.Container), "duration": e.Took.Round(time.Millisecond).String()})
	case lifecycle.ContainerStarted:
		l.tellAside(now, ContainerCreated, e.Container, nil)
		l.tell(now, ContainerStarted, e.Container, nil)
	case lifecycle.ContainerExited:
		if l.hasEnded(before, e.Container) {
			l.tellExit(e.Container, e.Exit, now)
		}
	case lifecycle.StopRequested:
		if before.Stop == l.facts.Stop || (l.status.Phase.Terminal() && before.Idle()) {
			return // nothing new, or nothing left to end
		}
		grace := l.facts.Stop.Deadline.Sub(now)
		if e.Grace.Force {
			grace = 0
		}
		l.tell(now, PodStopping, "", fields{"grace": grace.Round(time.Millisecond).String(), "by": e.By})
	case lifecycle.PodEvicted:
		if before.Stop.Requested.IsZero() {
			l.tell(now, PodEvicted, "", fields{"error": e.Message})
		}
	case lifecycle.PodRemoved:
		l.tell(now, PodRemoved, "", nil)
	case lifecycle.Booted:
		l.tell(now, HostRebooted, "", nil)
	case lifecycle.ActionFailed:
		l.tellFailure(before, e, now)
	case lifecycle.ProbeFailed:
		l.tellAnswer(e.ProbeRef, e.Result, e.Count, now)
	case lifecycle.ProbeWarned:
		l.tellAnswer(e.ProbeRef, e.Result, 0, now)
	}
}

// tellAside tells of what nothing follows from: what comes next has the same cause. That a container was made is such, whatever
// became of its start, and so is the kubelet's second word of an image that is not to be had.
func (l *loop) tellAside(now lifecycle.Instant, kind Kind, container string, f fields) {
	cause, known := l.newest[container]
	l.tell(now, kind, container, f)
	if delete(l.newest, container); known {
		l.newest[container] = cause
	}
}

// hasEnded reports whether the newest run of a container has ended by the event that was folded in.
func (l *loop) hasEnded(before lifecycle.Facts, container string) bool {
	return before.Containers[container].Newest.Exited.IsZero() && !l.facts.Containers[container].Newest.Exited.IsZero()
}

// tellExit tells of the end of the newest run, as of when it ended, and of the delay before the next, which counts from there.
func (l *loop) tellExit(container string, exit lifecycle.Exit, now lifecycle.Instant) {
	ended := l.facts.Containers[container].Newest.Exited
	if exit.Code == 0 && exit.Reason != lifecycle.ReasonOOMKilled {
		l.tell(ended, ContainerSucceeded, container, fields{"message": shorten(exit.Message)})
	} else {
		l.tell(ended, ContainerFailed, container, fields{
			"code": strconv.Itoa(exit.Code), "reason": string(exit.Reason), "message": shorten(exit.Message),
		})
	}
	l.tellBackOff(container, now)
}

// tellBackOff tells of the delay before the next run of a container, if there is one and it waits.
func (l *loop) tellBackOff(container string, now lifecycle.Instant) {
	if delay := lifecycle.RestartDelay(l.pod, l.facts, container, now); delay > 0 {
		l.tell(now, ContainerBackOff, container, fields{
			"container": container, "pod": l.pod.Name + "_default(" + l.uid + ")", "delay": delay.Round(time.Millisecond).String(),
		})
	}
}

func (l *loop) tellFailure(before lifecycle.Facts, e lifecycle.ActionFailed, now lifecycle.Instant) {
	why := fields{"error": e.Failure.Message, "reason": string(e.Failure.Reason)}
	if e.Failure.Kind == lifecycle.FailureUnavailable {
		if l.facts.EngineUnavailable.IsZero() { // it is asked again every second
			l.tell(now, EngineUnavailable, "", fields{"error": e.Failure.Message})
		}
		return
	}
	switch a := e.Action.(type) {
	case lifecycle.StartSandbox:
		kind := SandboxFailed
		if e.Failure.Reason == lifecycle.ReasonFailedMount {
			if before.Sandbox.Failures > 0 && before.Sandbox.Message == e.Failure.Message {
				return // it is waited for, and this has been told
			}
			kind = VolumeFailed
		}
		l.tell(now, kind, "", why)
	case lifecycle.PullImage:
		if l.facts.Containers[a.Container].Pull.Cancelled.IsZero() {
			l.tellPullFailure(a.Container, why, now)
		}
	case lifecycle.StartContainer:
		if e.Failure.Kind == lifecycle.FailureNotCreated {
			l.tell(now, ContainerCreateFailed, a.Container, why)
			return
		}
		l.tellAside(now, ContainerCreated, a.Container, nil)
		l.tell(now, ContainerStartFailed, a.Container, why)
		l.tellBackOff(a.Container, now)
	case lifecycle.RunPostStart:
		l.tellHook(PostStartFailed, a.Ref, l.facts.Containers[a.Container].Newest.PostStart, now)
	case lifecycle.RunPreStop:
		l.tellHook(PreStopFailed, a.Ref, l.facts.Containers[a.Container].Newest.PreStop, now)
	case lifecycle.StopContainer:
		l.tellSignal(before, a.Ref, e.Failure, now)
	case lifecycle.KillContainer:
		l.tellSignal(before, a.Ref, e.Failure, now)
	case lifecycle.RemoveSandbox:
		l.tell(now, RemovalFailed, "", fields{"what": "the pod sandbox", "error": e.Failure.Message})
	case lifecycle.RemoveContainer:
		l.tell(now, RemovalFailed, a.Container, fields{"what": "an ended container", "error": e.Failure.Message})
	case lifecycle.RemovePod:
		l.tell(now, RemovalFailed, "", fields{"what": "the pod", "error": e.Failure.Message})
	}
}

// tellPullFailure tells of an image that is not to be had and, if a registry was asked, when it is asked again.
func (l *loop) tellPullFailure(container string, why fields, now lifecycle.Instant) {
	reason := lifecycle.Reason(why["reason"])
	kind := pullFailure(reason)
	why["image"] = l.image(container)
	l.tell(now, kind, container, why)
	l.tellAside(now, ImageError, container, fields{"error": string(reason)})
	if kind == ImagePullFailed {
		delay := lifecycle.PullDelay(l.facts, container)
		l.tell(now, ImageBackOff, container, fields{"image": why["image"], "delay": delay.String()})
		l.tellAside(now, ImageError, container, fields{"error": string(lifecycle.ReasonImagePullBackOff)})
	}
}

// pullFailure is the kind of an image that is not to be had: the kubelet tells three apart.
func pullFailure(why lifecycle.Reason) Kind {
	if why == lifecycle.ReasonErrImageNeverPull {
		return ImageNeverPull
	}
	if why == lifecycle.ReasonInvalidImageName || why == lifecycle.ReasonImageInspectError {
		return ImageInspectFailed
	}
	return ImagePullFailed
}

// tellSignal tells of a signal that could not be sent, once for as long as nothing else happens: it is tried again every
// second. That the process is gone is told as its end, if that is news.
func (l *loop) tellSignal(before lifecycle.Facts, ref lifecycle.Ref, why lifecycle.Failure, now lifecycle.Instant) {
	switch {
	case l.hasEnded(before, ref.Container):
		l.tellExit(ref.Container, l.facts.Containers[ref.Container].Newest.Exit, now)
	case why.Kind != lifecycle.FailureNotFound && l.newest[ref.Container].kind != SignalFailed:
		l.tell(now, SignalFailed, ref.Container, fields{"container": ref.Container, "error": why.Message})
	}
}

// image returns the image of a container, as the pod file names it.
func (l *loop) image(container string) string {
	if c := l.whole.Load().Container(container); c != nil {
		return c.Image
	}
	return ""
}
