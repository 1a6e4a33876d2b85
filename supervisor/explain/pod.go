package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// recent is for how long after a restart a pod counts as unhealthy although it is ready.
const recent = time.Hour

// builder computes one explanation.
type builder struct {
	snapshot *supervisor.Snapshot // nil: the pod was deleted
	events   []event.Event
	now      lifecycle.Instant
}

// ForPod explains a pod that exists. The events are those of its name, in the order of their numbers; those of another UID
// are ignored.
func ForPod(s *supervisor.Snapshot, events []event.Event, now lifecycle.Instant) Explanation {
	b := builder{snapshot: s, events: ofUID(events, s.Facts.UID), now: now}
	e := Explanation{Pod: s.Pod.Name, UID: s.Facts.UID, StopBy: s.Facts.Stop.By, Timeline: b.podTimeline()}
	for _, list := range [...][]lifecycle.ContainerStatus{
		s.Status.InitContainerStatuses, s.Status.ContainerStatuses, s.Status.EphemeralContainerStatuses,
	} {
		for i := range list {
			c := b.container(&list[i])
			e.Containers, e.Restarts = append(e.Containers, c), e.Restarts+c.Restarts
		}
	}
	b.setPodState(&e)
	b.setProblems(&e)
	b.setEscalation(&e)
	if e.Cause == nil {
		return e
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; c.Name == e.Cause.Container || e.Cause.Container == "" && e.Next.IsZero() {
			e.Next = c.Next
		}
	}
	return e
}

// ForDeletedPod explains the newest pod of a name that was deleted or rejected, by its events. It returns false if no event
// of it is stored.
func ForDeletedPod(events []event.Event) (Explanation, bool) {
	if n := len(events); n > 0 && events[n-1].Kind == event.PodRejected {
		return rejected(&events[n-1]), true
	}
	last := len(events) - 1
	for last >= 0 && events[last].UID == "" {
		last--
	}
	if last < 0 {
		return Explanation{}, false
	}
	b := builder{events: ofUID(events, events[last].UID)}
	e := Explanation{Pod: b.events[0].Pod, UID: events[last].UID, State: PodDeleted, Healthy: true, Timeline: b.podTimeline()}
	for i := range b.events {
		name := b.events[i].Container
		if name == "" || slices.ContainsFunc(e.Containers, func(c Container) bool { return c.Name == name }) {
			continue
		}
		c := Container{Name: name, State: Deleted, Restarts: max(0, b.starts(name)-1)}
		all := b.runs(name, false)
		c.setRuns(all)
		for r := range all {
			all[r].Cause.dropOutput()
		}
		if n := len(c.Runs); n > 0 {
			c.Cause, c.LastExit = c.Runs[n-1].Cause, c.Runs[n-1].Exit
		}
		e.Containers, e.Restarts = append(e.Containers, c), e.Restarts+c.Restarts
	}
	b.setDeletedCause(&e)
	return e, true
}

// dropOutput removes the output of probes: the secrets of a deleted pod, which it may contain, are not known.
func (c *Cause) dropOutput() {
	if c != nil {
		c.Output = ""
	}
}

// setDeletedCause sets who requested the stop of a deleted pod, and why it had failed before.
func (b *builder) setDeletedCause(e *Explanation) {
	failed := false
	for i := range b.events {
		switch ev := &b.events[i]; ev.Kind { //nolint:exhaustive // other events do not explain a deletion
		case event.PodEvicted, event.PodDeadlineExceeded:
			e.Cause = b.causeOf(ev, "", time.Time{})
		case event.PodFailed:
			failed = e.StopBy == ""
		case event.PodStopping, event.NodeShutdown:
			e.StopBy = ev.Fields["by"]
		}
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; failed && e.Cause == nil && c.Cause != nil && failures[c.Cause.Kind] && c.LastExit != nil && c.LastExit.Code != 0 {
			e.Cause = c.Cause
		}
	}
}

// rejected explains a pod that was not admitted.
func rejected(newest *event.Event) Explanation {
	var t timeline
	return Explanation{
		Pod: newest.Pod, State: PodRejected, Timeline: t.with(newest).entries(),
		Cause: &Cause{
			Kind: AdmissionRejected, Time: newest.Time, Reason: lifecycle.Reason(newest.Reason), Message: newest.Fields["error"], Hint: newest.Fields["hint"],
		},
	}
}

func ofUID(events []event.Event, uid string) []event.Event {
	var own []event.Event
	for i := range events {
		if events[i].UID == uid {
			own = append(own, events[i])
		}
	}
	return own
}

// setPodState sets the state of the pod, the root cause, and whether it is healthy.
func (b *builder) setPodState(e *Explanation) {
	stop, status := &b.snapshot.Facts.Stop, &b.snapshot.Status
	switch {
	case status.Phase == lifecycle.PhaseSucceeded:
		e.State, e.Healthy = PodSucceeded, true
		if stop.By != "" {
			e.Cause = b.stopCause()
		}
	case status.Phase == lifecycle.PhaseFailed && stop.Reason != "":
		e.State, e.Cause = PodFailed, b.stopCause()
		e.Cause.Earlier = neverStarted(e)
	case status.Phase == lifecycle.PhaseFailed && !stop.Requested.IsZero() && !b.doneBefore(stop.Requested):
		e.State, e.Healthy, e.Cause = PodStopped, true, b.stopCause()
	case status.Phase == lifecycle.PhaseFailed:
		e.State, e.Cause = PodFailed, culprit(e)
	case b.shimCause() != nil:
		e.State, e.Cause = PodUnknown, b.shimCause()
	case status.Phase == lifecycle.PhaseUnknown && status.Reason != lifecycle.ReasonEngineUnavailable:
		e.State, e.Cause = PodUnknown, b.heldCause()
	case status.Phase == lifecycle.PhaseUnknown:
		e.State, e.Cause = PodUnknown, b.engineCause()
	case !stop.Requested.IsZero():
		e.State, e.Cause = PodStopping, b.stopCause()
	case b.ready():
		e.State = PodReady
		e.Cause, e.Healthy = b.lastRestart(e)
	default:
		e.State, e.Cause = PodNotReady, b.rootCause(e)
	}
}

// doneBefore reports whether the pod's containers had completed or failed before an instant.
func (b *builder) doneBefore(at lifecycle.Instant) bool {
	end := lifecycle.WorkFinishedAt(b.snapshot.Pod, &b.snapshot.Facts)
	return !end.IsZero() && end.Before(at)
}

func (b *builder) ready() bool { return b.condition().Status == "True" }

// condition is the Ready condition.
func (b *builder) condition() lifecycle.Condition {
	for _, c := range b.snapshot.Status.Conditions {
		if c.Type == lifecycle.PodReady {
			return c
		}
	}
	return lifecycle.Condition{}
}

// heldCause is why a pod is not supervised.
func (b *builder) heldCause() *Cause {
	status := &b.snapshot.Status
	cause := Cause{Kind: NotSupervised, Reason: status.Reason, Message: strings.TrimPrefix(status.Message, supervisor.NotSupervised), Time: b.snapshot.Facts.Accepted.Wall.UTC()}
	for i := range b.events {
		if e := &b.events[i]; e.Kind == event.PodQuarantined {
			cause.Time = e.Time
		}
	}
	switch status.Reason {
	case lifecycle.ReasonQuarantined:
		cause.Hint = "see the daemon log and report the crash; delete the pod with podstead delete " + b.snapshot.Pod.Name + ", change its file, and run it again"
	case lifecycle.ReasonNewerState:
		cause.Hint = "use the later version of podstead, or delete the pod with podstead delete --force " + b.snapshot.Pod.Name
	}
	return &cause
}

// engineCause is why the state of the pod is not known.
func (b *builder) engineCause() *Cause {
	cause := Cause{Kind: EngineUnavailable, Time: b.snapshot.Facts.EngineUnavailable.Wall.UTC()}
	for i := range b.events {
		if e := &b.events[i]; e.Kind == event.EngineUnavailable {
			cause.Message = e.Fields["error"]
		}
	}
	return &cause
}

// shimCause is that the shim of the pod does not respond; nil: it does.
func (b *builder) shimCause() *Cause {
	for _, c := range b.snapshot.Status.Conditions {
		if c.Type == supervisor.ShimUnresponsive {
			const message = "its shim does not respond. The containers keep running without supervision. podstead delete --force kills them"
			return &Cause{Kind: ShimUnresponsive, Time: c.LastTransitionTime, Message: message}
		}
	}
	return nil
}

// setProblems sets why volumes are not updated, why the newest state is not saved, and what could not be removed. Such a pod is not
// healthy: a person must look.
func (b *builder) setProblems(e *Explanation) {
	problems := map[lifecycle.ConditionType]*string{
		supervisor.StateNotDurable: &e.NotDurable, supervisor.VolumesNotUpdated: &e.NotUpdated, supervisor.RemovalFailed: &e.NotRemoved,
	}
	for _, c := range b.snapshot.Status.Conditions {
		if text := problems[c.Type]; text != nil {
			*text, e.Healthy = c.Message, false
		}
	}
}

// setEscalation sets what was done because the pod stays unready.
func (b *builder) setEscalation(e *Explanation) {
	for _, c := range b.snapshot.Status.Conditions {
		if c.Type == lifecycle.PodUnhealthy {
			e.Escalation = c.Message
		}
	}
}

// culprit is why a pod failed. How a sidecar exited has no influence on that.
func culprit(e *Explanation) *Cause {
	for i := range e.Containers {
		if c := &e.Containers[i]; c.State == Failed && c.Role != Sidecar && c.Role != Ephemeral {
			return c.Cause
		}
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; (c.State == Stopped || c.State == NotStarted) && c.Role != Sidecar && c.Cause != nil {
			return c.Cause
		}
	}
	return nil
}

// neverStarted is why the first container that never started did not.
func neverStarted(e *Explanation) *Cause {
	for i := range e.Containers {
		if c := &e.Containers[i]; c.State == NotStarted && c.Cause != nil && failures[c.Cause.Kind] {
			return c.Cause
		}
	}
	return nil
}

// failures are the kinds of causes that are failures of a container or of what it needs.
var failures = map[CauseKind]bool{
	ImageFailed: true, VolumeFailed: true, SandboxFailed: true, CreateFailed: true, StartFailed: true, Exited: true, ExecFormat: true, OOMKilled: true,
	ExitUnknown: true, LivenessFailed: true, StartupFailed: true, PostStartFailed: true, Killed: true,
}

// The ranks of causes: the container with the highest one has the root cause, the first of these if there are several.
const (
	rankNone     = iota
	rankProgress // something is in progress
	rankNotReady // a probe fails
	rankFailure
)

func rank(c *Container) int {
	switch {
	case c.settled() || c.Cause == nil || c.Cause.Kind == WaitsFor || c.Role == Ephemeral:
		return rankNone
	case failures[c.Cause.Kind]:
		return rankFailure
	case c.Cause.Kind == StartupPending, c.Cause.Kind == ReadinessFailed, c.Cause.Kind == ReadinessPending:
		return rankNotReady
	}
	return rankProgress
}

// rootCause is why the pod is not ready.
func (b *builder) rootCause(e *Explanation) *Cause {
	if cause := b.waitCause(); cause != nil {
		return cause // no container can start, whatever its last run was
	}
	var root *Container
	for i := range e.Containers {
		if c := &e.Containers[i]; rank(c) > rankNone && (root == nil || rank(c) > rank(root)) {
			root = c
		}
	}
	condition := b.condition()
	switch {
	case root != nil:
		return root.Cause
	case condition.Reason == lifecycle.ReasonReadinessGatesNotReady:
		return &Cause{Kind: ReadinessGate, Reason: condition.Reason, Message: condition.Message}
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; c.Role == App && c.State == Completed {
			return &Cause{Kind: ContainersCompleted, Container: c.Name, Role: c.Role, Exit: c.LastExit}
		}
	}
	return nil
}

// expected are the kinds of causes by which a container restarts on request, or because the host was shut down and booted.
var expected = map[CauseKind]bool{StartRequested: true, RestartRequested: true, DefinitionChanged: true, HostRebooted: true}
