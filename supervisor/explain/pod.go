package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
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

// ForPod explains a pod that exists. The events are those of its name and those of the daemon, in the order of their numbers. Those of
// another UID are ignored, and so are those of the daemon that do not concern containers.
func ForPod(s *supervisor.Snapshot, events []event.Event, now lifecycle.Instant) api.Explanation {
	b := builder{snapshot: s, events: ofUID(events, s.Facts.UID), now: now}
	e := api.Explanation{Pod: s.Pod.Name, UID: s.Facts.UID, StopBy: s.Facts.Stop.By, Timeline: b.podTimeline()}
	for _, status := range s.Status.Every() {
		c := b.container(&status)
		e.Containers, e.Restarts = append(e.Containers, c), e.Restarts+c.Restarts
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
func ForDeletedPod(events []event.Event) (api.Explanation, bool) {
	if n := len(events); n > 0 && events[n-1].Kind == api.EventPodRejected {
		return rejected(&events[n-1]), true
	}
	last := len(events) - 1
	for last >= 0 && events[last].UID == "" {
		last--
	}
	if last < 0 {
		return api.Explanation{}, false
	}
	b := builder{events: ofUID(events, events[last].UID)}
	e := api.Explanation{Pod: b.events[0].Pod, UID: events[last].UID, State: api.PodStateDeleted, Healthy: true, Timeline: b.podTimeline()}
	for i := range b.events {
		name := b.events[i].Container
		if name == "" || slices.ContainsFunc(e.Containers, func(c api.ExplainedContainer) bool { return c.Name == name }) {
			continue
		}
		c := api.ExplainedContainer{Name: name, State: api.ContainerDeleted, Restarts: max(0, b.starts(name)-1)}
		all := b.runs(name, false)
		setRuns(&c, all)
		for r := range all {
			dropOutput(all[r].Cause)
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
func dropOutput(c *api.Cause) {
	if c != nil {
		c.Output = ""
	}
}

// setDeletedCause sets who requested the stop of a deleted pod, and why it had failed before.
func (b *builder) setDeletedCause(e *api.Explanation) {
	failed := false
	for i := range b.events {
		switch ev := &b.events[i]; ev.Kind { //nolint:exhaustive // other events do not explain a deletion
		case api.EventPodEvicted, api.EventPodDeadlineExceeded, api.EventPodBackoffExceeded, api.EventPodJobEnded:
			e.Cause = b.causeOf(ev, "", time.Time{})
		case api.EventPodFailed:
			failed = e.StopBy == ""
		case api.EventPodStopping, api.EventNodeShutdown:
			e.StopBy = ev.Fields["by"]
		}
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; failed && e.Cause == nil && c.Cause != nil && failures[c.Cause.Kind] && c.LastExit != nil &&
			c.LastExit.Code != 0 {
			e.Cause = c.Cause
		}
	}
}

// rejected explains a pod that was not admitted.
func rejected(newest *event.Event) api.Explanation {
	var t timeline
	return api.Explanation{
		Pod: newest.Pod, State: api.PodStateRejected, Timeline: t.with(newest).entries(),
		Cause: &api.Cause{
			Kind: api.CauseAdmissionRejected, Time: newest.Time, Reason: api.Reason(newest.Reason), Message: newest.Fields["error"],
			Hint: newest.Fields["hint"],
		},
	}
}

func ofUID(events []event.Event, uid string) []event.Event {
	var own []event.Event
	for i := range events {
		if events[i].UID == uid || onHost[events[i].Kind] && len(own) > 0 {
			own = append(own, events[i])
		}
	}
	return own
}

// setPodState sets the state of the pod, the root cause, and whether it is healthy.
func (b *builder) setPodState(e *api.Explanation) {
	stop, status := &b.snapshot.Facts.Stop, &b.snapshot.Status
	switch {
	case status.Phase == lifecycle.PhaseSucceeded:
		e.State, e.Healthy = api.PodStateSucceeded, true
		if stop.By != "" {
			e.Cause = b.stopCause()
		}
	case status.Phase == lifecycle.PhaseFailed && stop.Reason == lifecycle.ReasonJobComplete:
		e.State, e.Healthy, e.Cause = api.PodStateStopped, true, b.stopCause()
	case status.Phase == lifecycle.PhaseFailed && stop.Reason != "":
		e.State, e.Cause = api.PodStateFailed, b.stopCause()
		e.Cause.Earlier = neverStarted(e)
	case status.Phase == lifecycle.PhaseFailed && !stop.Requested.IsZero() && !b.doneBefore(stop.Requested):
		e.State, e.Healthy, e.Cause = api.PodStateStopped, true, b.stopCause()
	case status.Phase == lifecycle.PhaseFailed:
		e.State, e.Cause = api.PodStateFailed, culprit(e)
	case b.monitorCause() != nil:
		e.State, e.Cause = api.PodStateUnknown, b.monitorCause()
	case status.Phase == lifecycle.PhaseUnknown && status.Reason != lifecycle.ReasonEngineUnavailable:
		e.State, e.Cause = api.PodStateUnknown, b.heldCause()
	case status.Phase == lifecycle.PhaseUnknown:
		e.State, e.Cause = api.PodStateUnknown, b.engineCause()
	case !stop.Requested.IsZero():
		e.State, e.Cause = api.PodStateStopping, b.stopCause()
	case b.ready():
		e.State = api.PodStateReady
		e.Cause, e.Healthy = b.lastRestart(e)
	default:
		e.State, e.Cause = api.PodStateNotReady, b.rootCause(e)
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
func (b *builder) heldCause() *api.Cause {
	status := &b.snapshot.Status
	cause := api.Cause{
		Kind: api.CauseNotSupervised, Reason: api.Reason(status.Reason),
		Message: strings.TrimPrefix(status.Message, supervisor.NotSupervised),
		Time:    b.snapshot.Facts.Accepted.Wall.UTC(),
	}
	for i := range b.events {
		if e := &b.events[i]; e.Kind == api.EventPodQuarantined {
			cause.Time = e.Time
		}
	}
	switch status.Reason {
	case lifecycle.ReasonQuarantined:
		cause.Hint = "see the daemon log and report the crash; delete the pod with podstead delete " + b.snapshot.Pod.Name +
			", change its file, and run it again"
	case lifecycle.ReasonNewerState:
		cause.Hint = "use the later version of podstead, or delete the pod with podstead delete --force " + b.snapshot.Pod.Name
	}
	return &cause
}

// engineCause is why the state of the pod is not known.
func (b *builder) engineCause() *api.Cause {
	cause := api.Cause{Kind: api.CauseEngineUnavailable, Time: b.snapshot.Facts.EngineUnavailable.Wall.UTC()}
	for i := range b.events {
		if e := &b.events[i]; e.Kind == api.EventEngineUnavailable {
			cause.Message = e.Fields["error"]
		}
	}
	return &cause
}

// monitorCause is that the monitor of the containers does not respond; nil: it does.
func (b *builder) monitorCause() *api.Cause {
	for _, c := range b.snapshot.Status.Conditions {
		if c.Type == supervisor.MonitorUnresponsive {
			const message = "the monitor of its containers does not respond. They keep running without supervision. " +
				"podstead delete --force kills them"
			return &api.Cause{Kind: api.CauseMonitorUnresponsive, Time: c.LastTransitionTime, Message: message}
		}
	}
	return nil
}

// setProblems sets why volumes are not updated, why the newest state is not saved, and what could not be removed. Such a pod is not
// healthy: a person must look.
func (b *builder) setProblems(e *api.Explanation) {
	problems := map[lifecycle.ConditionType]*string{
		lifecycle.PodResizeInProgress: &e.NotResized, lifecycle.PodResizePending: &e.NotResized,

		supervisor.StateNotDurable: &e.NotDurable, supervisor.VolumesNotUpdated: &e.NotUpdated, supervisor.RemovalFailed: &e.NotRemoved,
	}
	for _, c := range b.snapshot.Status.Conditions {
		if text := problems[c.Type]; text != nil && c.Message != "" {
			*text, e.Healthy = c.Message, false
		}
	}
}

// setEscalation sets what was done because the pod stays unready.
func (b *builder) setEscalation(e *api.Explanation) {
	for _, c := range b.snapshot.Status.Conditions {
		if c.Type == lifecycle.PodUnhealthy {
			e.Escalation = c.Message
		}
	}
}

// culprit is why a pod failed. How a sidecar exited has no influence on that.
func culprit(e *api.Explanation) *api.Cause {
	for i := range e.Containers {
		if c := &e.Containers[i]; c.State == api.ContainerFailed && c.Role != api.RoleSidecar && c.Role != api.RoleEphemeral {
			return c.Cause
		}
	}
	for i := range e.Containers {
		c := &e.Containers[i]
		stopped := c.State == api.ContainerStopped || c.State == api.ContainerNotStarted
		if stopped && c.Role != api.RoleSidecar && c.Cause != nil {
			return c.Cause
		}
	}
	return nil
}

// neverStarted is why the first container that never started did not.
func neverStarted(e *api.Explanation) *api.Cause {
	for i := range e.Containers {
		if c := &e.Containers[i]; c.State == api.ContainerNotStarted && c.Cause != nil && failures[c.Cause.Kind] {
			return c.Cause
		}
	}
	return nil
}

// failures are the kinds of causes that are failures of a container or of what it needs.
var failures = map[api.CauseKind]bool{
	api.CauseImageFailed: true, api.CauseVolumeFailed: true, api.CauseSandboxFailed: true, api.CauseCreateFailed: true,
	api.CauseStartFailed: true, api.CauseExited: true, api.CauseExecFormat: true, api.CauseOOMKilled: true,
	api.CauseExitUnknown: true, api.CauseLivenessFailed: true, api.CauseStartupFailed: true, api.CausePostStartFailed: true,
	api.CauseKilled: true,
}

// The ranks of causes: the container with the highest one has the root cause, the first of these if there are several.
const (
	rankNone     = iota
	rankProgress // something is in progress
	rankNotReady // a probe fails
	rankFailure
)

func rank(c *api.ExplainedContainer) int {
	switch {
	case settled(c) || c.Cause == nil || c.Cause.Kind == api.CauseWaitsFor || c.Role == api.RoleEphemeral:
		return rankNone
	case failures[c.Cause.Kind]:
		return rankFailure
	case c.Cause.Kind == api.CauseStartupPending, c.Cause.Kind == api.CauseReadinessFailed, c.Cause.Kind == api.CauseReadinessPending:
		return rankNotReady
	}
	return rankProgress
}

// rootCause is why the pod is not ready.
func (b *builder) rootCause(e *api.Explanation) *api.Cause {
	if cause := b.waitCause(); cause != nil {
		return cause // no container can start, whatever its last run was
	}
	var root *api.ExplainedContainer
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
		return &api.Cause{Kind: api.CauseReadinessGate, Reason: api.Reason(condition.Reason), Message: condition.Message}
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; c.Role == api.RoleApp && c.State == api.ContainerCompleted {
			return &api.Cause{Kind: api.CauseContainersCompleted, Container: c.Name, Role: c.Role, Exit: c.LastExit}
		}
	}
	return nil
}

// expected are the kinds of causes by which a container restarts on request, or because the host was shut down and booted.
var expected = map[api.CauseKind]bool{
	api.CauseStartRequested: true, api.CauseRestartRequested: true, api.CauseDefinitionChanged: true, api.CauseHostRebooted: true,
}
