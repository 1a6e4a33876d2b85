package explain

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// container explains one container.
func (b *builder) container(s *lifecycle.ContainerStatus) api.ExplainedContainer {
	c := api.ExplainedContainer{
		Name: s.Name, Role: b.role(s.Name), Ready: s.Ready, Restarts: s.RestartCount,
		WillRestart: lifecycle.RunsAgain(b.snapshot.Pod, b.snapshot.Facts, s.Name),
	}
	setRuns(&c, b.runs(s.Name, s.RestartCount == 0))
	record := b.snapshot.Facts.Container(s.Name)
	last := lastExited(record)
	if !last.Exited.IsZero() {
		c.LastExit = exitOfAttempt(last)
	}
	b.completeCause(&c, record)
	b.setState(&c, s, record)
	if d := b.definition(c.Name); d != nil && c.Cause != nil && c.Cause.Kind == api.CauseStartFailed {
		c.Cause.Hint = spec.WordsHint(d.Command)
	}
	if n := len(c.Runs); n > 0 && s.State.Terminated != nil && !c.WillRestart {
		c.Runs[n-1].Timeline = untilExit(c.Runs[n-1].Timeline, c.LastExit)
	}
	c.WillRestart = c.WillRestart && !record.Newest.Exited.IsZero()
	if lifecycle.Exhausted(b.snapshot.Pod, b.snapshot.Facts, s.Name) {
		c.MaxRestarts = int(*b.snapshot.Pod.Container(s.Name).MaxRestarts)
	}
	if in, known := lifecycle.NextTry(b.snapshot.Pod, b.snapshot.Facts, s.Name, b.now); known {
		c.Next = b.now.Wall.Add(in).UTC()
	}
	if b.failed(last) && (c.Cause == nil || c.Cause.Kind != api.CauseHostRebooted && c.Cause.Kind != api.CauseUncleanShutdown) {
		c.Evidence = b.evidence(last)
	}
	return c
}

// lastExited is the last attempt that exited, if there is one.
func lastExited(record *lifecycle.Container) *lifecycle.Attempt {
	if record.Newest.Exited.IsZero() {
		return &record.Previous
	}
	return &record.Newest
}

// completeCause adds to the cause of the newest run what only the facts have: the message of a postStart hook may hold output of
// the container, so events do not have it.
func (b *builder) completeCause(c *api.ExplainedContainer, record *lifecycle.Container) {
	if len(c.Runs) == 0 {
		return
	}
	run, a := &c.Runs[len(c.Runs)-1], &record.Newest
	if run.Restarted {
		a = &record.Previous
	}
	if run.Cause != nil && run.Cause.Kind == api.CausePostStartFailed {
		run.Cause.Message = a.PostStart.Message
	}
}

// setState sets the state of a container, and its cause.
func (b *builder) setState(c *api.ExplainedContainer, s *lifecycle.ContainerStatus, record *lifecycle.Container) {
	newest := &record.Newest
	c.State = api.ContainerUnknown
	switch {
	case newest.StopReason != "" && newest.Exited.IsZero():
		c.State, c.Cause = api.ContainerStopping, b.exitCause(c, newest)
		setStage(c, newest)
	case s.State.Running != nil:
		c.State, c.Cause = api.ContainerRunning, b.runningCause(c, s, newest)
	case s.State.Terminated != nil:
		b.setTerminated(c, s.State.Terminated, lastExited(record)) // the next attempt may exist, but has not started
	case s.State.Waiting != nil:
		c.Reason = api.Reason(s.State.Waiting.Reason)
		b.setWaiting(c, s.State.Waiting, record)
	}
}

// exitCause is why the newest run stopped or exited: as the events have it, or else the facts. If the start of the newest run has failed,
// the events end with the run before it, and its cause is another one, such as a change of the definition.
func (b *builder) exitCause(c *api.ExplainedContainer, newest *lifecycle.Attempt) *api.Cause {
	own := b.causeOfAttempt(newest)
	if n := len(c.Runs); n > 0 && !c.Runs[n-1].Restarted && c.Runs[n-1].Cause != nil {
		if own == nil || own.Kind != api.CauseStartFailed || c.Runs[n-1].Cause.Kind == api.CauseStartFailed {
			return c.Runs[n-1].Cause
		}
	}
	return own
}

func setStage(c *api.ExplainedContainer, a *lifecycle.Attempt) {
	switch {
	case !a.KillSent.IsZero():
		c.Stage, c.StageSince = api.StageKilled, a.KillSent.Wall.UTC()
	case !a.StopSent.IsZero():
		c.Stage, c.StageSince = api.StageSignalSent, a.StopSent.Wall.UTC()
	case !a.PreStop.Requested.IsZero() && a.PreStop.Done.IsZero():
		c.Stage, c.StageSince = api.StagePreStop, a.PreStop.Requested.Wall.UTC()
	case a.StopRequested.IsZero():
		c.Stage = api.StageWaiting
	}
}

func (b *builder) setTerminated(c *api.ExplainedContainer, t *lifecycle.Terminated, last *lifecycle.Attempt) {
	c.Reason, c.Cause = api.Reason(t.Reason), b.exitCause(c, last)
	switch {
	case t.Reason == lifecycle.ReasonStatusUnknown && t.StartedAt.IsZero(): // so the status has a container that never ran
		c.State = api.ContainerNotStarted
	case c.WillRestart:
		c.State = api.ContainerRestarting
		if again := b.startedAgain(c.Name); again != nil {
			c.Cause = again
		}
	case t.ExitCode == 0:
		c.State = api.ContainerCompleted
	case c.Cause != nil && ofPod[c.Cause.Kind]:
		c.State = api.ContainerStopped
	default:
		c.State = api.ContainerFailed
	}
}

// startedAgain is the request of a client to start the pod since a container exited; nil: there is none.
func (b *builder) startedAgain(name string) *api.Cause {
	for i := range slices.Backward(b.events) {
		e := &b.events[i]
		switch {
		case e.Kind == api.EventPodStartRequested && e.Fields["by"] != lifecycle.ByStart:
			return b.causeOf(e, name, time.Time{})
		case e.Kind == api.EventPodStartRequested, e.Kind == api.EventPodStopping,
			e.Container == name && (exited[e.Kind] || e.Kind == api.EventContainerStartFailed):
			return nil
		}
	}
	return nil
}

// ofPod are the kinds of causes by which the pod stops a container that has not failed itself.
var ofPod = map[api.CauseKind]bool{
	api.CauseStopRequested: true, api.CausePodFinished: true, api.CauseDeadlineExceeded: true, api.CauseBackoffLimit: true,
	api.CauseEvicted: true, api.CauseJobEnded: true,
	api.CauseRestartAll: true, api.CauseSandboxChanged: true, api.CauseDeviceRemoved: true,
	api.CauseStartRequested: true, api.CauseRestartRequested: true, api.CauseDefinitionChanged: true, api.CauseContainerRemoved: true,
}

func (b *builder) setWaiting(c *api.ExplainedContainer, w *lifecycle.Waiting, record *lifecycle.Container) {
	newest := &record.Newest
	c.State = api.ContainerWaiting
	switch {
	case b.snapshot.AtRest, newest.Attempt == 0 && lifecycle.Terminating(b.snapshot.Pod, b.snapshot.Facts):
		c.State, c.Cause = api.ContainerNotStarted, b.exitCause(c, newest)
	case !newest.Started.IsZero() && newest.Exited.IsZero():
		c.State = api.ContainerStarting
		c.Cause = b.newCause(c, api.CausePostStartRunning)
		c.Cause.Time = newest.Started.Wall.UTC()
	case exitReasons[w.Reason]:
		c.Cause = b.exitCause(c, newest)
	case imageReasons[w.Reason]:
		c.Cause = b.newCause(c, api.CauseImageFailed)
		c.Cause.Image, c.Cause.Reason, c.Cause.Message = b.image(c.Name), api.Reason(record.Pull.Reason), record.Pull.Message
		c.Cause.Time = record.Pull.Failed.Wall.UTC()
		if c.Cause.Reason == api.ReasonSignatureValidation {
			c.Cause.Hint = signatureHint
		}
	case !newest.CreateFailed.IsZero():
		c.Cause = b.newCause(c, api.CauseCreateFailed)
		c.Cause.Reason, c.Cause.Message, c.Cause.Time = api.Reason(w.Reason), w.Message, newest.CreateFailed.Wall.UTC()
	case b.snapshot.Status.Phase == lifecycle.PhaseUnknown:
		c.Cause = b.engineCause()
	case b.waitCause() != nil:
		c.Cause = b.waitCause()
	case b.sandboxCause() != nil:
		c.Cause = b.sandboxCause()
	default:
		c.Cause = b.dependency(c)
		if c.Cause == nil {
			c.State, c.Cause = api.ContainerStarting, b.creating(c)
		}
	}
}

// exitReasons are the reasons for which a container waits that has exited or could not be started.
var exitReasons = map[lifecycle.Reason]bool{
	lifecycle.ReasonCrashLoopBackOff: true, lifecycle.ReasonPostStartHookError: true, lifecycle.ReasonRunContainerError: true,
}

// imageReasons are the reasons for which a container waits whose image is not available.
var imageReasons = map[lifecycle.Reason]bool{
	lifecycle.ReasonErrImagePull: true, lifecycle.ReasonImagePullBackOff: true, lifecycle.ReasonErrImageNeverPull: true,
	lifecycle.ReasonInvalidImageName: true, lifecycle.ReasonImageInspectError: true, lifecycle.ReasonSignatureValidation: true,
}

func (b *builder) newCause(c *api.ExplainedContainer, kind api.CauseKind) *api.Cause {
	return &api.Cause{Kind: kind, Container: c.Name, Role: c.Role}
}

// waitCause is what the pod waits for before it starts; nil if it does not wait.
func (b *builder) waitCause() *api.Cause {
	facts, status := &b.snapshot.Facts, &b.snapshot.Status
	if status.Reason != lifecycle.ReasonWaitingFor {
		return nil
	}
	return &api.Cause{
		Kind: api.CauseConditionUnmet, Reason: api.Reason(status.Reason), Message: status.Message, Time: facts.Wait.Since.Wall.UTC(),
	}
}

// sandboxCause is why the pod has no sandbox; nil if it has one or its start is in progress for the first time.
func (b *builder) sandboxCause() *api.Cause {
	sandbox := &b.snapshot.Facts.Sandbox
	if sandbox.Failures == 0 {
		return nil
	}
	c := api.Cause{
		Kind: api.CauseSandboxFailed, Reason: api.Reason(sandbox.Reason), Message: sandbox.Message, Time: sandbox.Failed.Wall.UTC(),
	}
	if sandbox.Reason == lifecycle.ReasonFailedMount {
		c.Kind = api.CauseVolumeFailed
	}
	return &c
}

// dependency is the container that must have started or completed before this one starts; nil if there is none.
func (b *builder) dependency(c *api.ExplainedContainer) *api.Cause {
	if c.Role == api.RoleEphemeral {
		return nil
	}
	first := b.initBefore(c.Name)
	if first == "" {
		first = lifecycle.StartBlockedBy(b.snapshot.Pod, b.snapshot.Facts, c.Name)
	}
	if first == "" {
		return nil
	}
	cause := b.newCause(c, api.CauseWaitsFor)
	cause.ByContainer, cause.ByRole = first, b.role(first)
	return cause
}

// initBefore is the init container that a container waits for; empty if there is none.
func (b *builder) initBefore(name string) string {
	turn := lifecycle.NextInitContainer(b.snapshot.Pod, b.snapshot.Facts)
	for i := range b.snapshot.Pod.InitContainers {
		switch b.snapshot.Pod.InitContainers[i].Name {
		case name:
			return "" // it does not wait for those after it
		case turn:
			return turn
		}
	}
	return ""
}

// runningCause is why a running container is not ready or, of one that is, why it was restarted.
func (b *builder) runningCause(c *api.ExplainedContainer, s *lifecycle.ContainerStatus, newest *lifecycle.Attempt) *api.Cause {
	ready := &newest.Probes.Readiness
	switch {
	case s.Ready, s.Started == nil: // an ephemeral container has no Started
		if n := len(c.Runs); n > 0 && c.Restarts > 0 {
			return c.Runs[n-1].Cause
		}
		return nil
	case *s.Started && c.Role == api.RoleInit:
		cause := b.newCause(c, api.CauseInitRunning)
		cause.Time = newest.Started.Wall.UTC()
		return cause
	case !*s.Started:
		return b.probeCause(c, api.CauseStartupPending, "Startup", newest)
	case ready.Verdict == lifecycle.VerdictFailure:
		cause := b.probeCause(c, api.CauseReadinessFailed, "Readiness", newest)
		if cause.Output == "" {
			cause.Output = ready.Message
		}
		return cause
	}
	return b.probeCause(c, api.CauseReadinessPending, "Readiness", newest)
}

// probeCause has the last failure of a probe of the present run, and how many there were in a row, if its event is still stored.
func (b *builder) probeCause(c *api.ExplainedContainer, kind api.CauseKind, probe string, newest *lifecycle.Attempt) *api.Cause {
	cause := b.newCause(c, kind)
	for i := len(b.events) - 1; i >= 0; i-- {
		e := &b.events[i]
		if e.Container != c.Name || e.Attempt != newest.Attempt || e.Fields["probe"] != probe {
			continue
		}
		cause.Time, cause.Output = e.Time, e.Fields["output"]
		if cause.Output == "" {
			cause.Output = e.Fields["error"]
		}
		cause.Failures, _ = strconv.Atoi(e.Fields["count"])
		break
	}
	return cause
}

// failed reports whether a run failed by itself or by a limit of the pod, and was not only stopped.
func (b *builder) failed(a *lifecycle.Attempt) bool {
	if a.Exited.IsZero() || a.Exit.Code == 0 && a.Exit.Reason != lifecycle.ReasonOOMKilled {
		return false
	}
	switch a.StopReason {
	case "":
		return a.KillRequested.IsZero() && a.Exit.Reason != lifecycle.ReasonStartError // a start error is in the cause
	case lifecycle.ReasonLivenessProbe, lifecycle.ReasonStartupProbe, lifecycle.ReasonFailedPostStartHook:
		return true
	case lifecycle.ReasonStopped:
		return b.snapshot.Facts.Stop.Reason != ""
	}
	return false
}

// evidence is what a failed run has left.
func (b *builder) evidence(a *lifecycle.Attempt) *api.Evidence {
	e := api.Evidence{Run: a.Restarts, TerminationMessage: a.Exit.Message}
	switch a.StopReason {
	case lifecycle.ReasonLivenessProbe:
		e.Probe, e.ProbeOutput = "liveness", a.Probes.Liveness.Message
	case lifecycle.ReasonStartupProbe:
		e.Probe, e.ProbeOutput = "startup", a.Probes.Startup.Message
	}
	if a.Exit.Reason == lifecycle.ReasonOOMKilled {
		e.MemoryPeak = a.Exit.MemoryPeak
		if c := b.definition(a.Container); c != nil {
			had := c.Resources
			if a.Resources != nil {
				had = *a.Resources
			}
			limit := had.Limits[spec.ResourceMemory]
			e.MemoryLimit = limit.Value()
		}
	}
	return &e
}

// AddLog adds the last lines of the log of the failed run to a container that has [api.Evidence], and shows at most n of them. With at
// least one line it recognizes a program that the host cannot execute, as the OCI runtime reports it in the log.
func AddLog(s *supervisor.Snapshot, c *api.ExplainedContainer, lines []string, n int) {
	if c.Evidence == nil || len(lines) == 0 {
		return
	}
	c.Evidence.Log = lines[max(0, len(lines)-n):]
	addLogHint(s.Pod, c, lines)
	unexecutable := strings.HasSuffix(strings.TrimRight(lines[len(lines)-1], " \""), unix.ENOEXEC.Error())
	record := s.Facts.Container(c.Name)
	architecture := lastExited(record).Architecture
	if unexecutable && c.Cause != nil && c.Cause.Kind == api.CauseExited && architecture != "" {
		c.Cause.Kind = api.CauseExecFormat
		c.Cause.ImageArchitecture, c.Cause.HostArchitecture = architecture, runtime.GOARCH
	}
}

// definition is the definition of a container of the pod; nil if it has none of that name.
func (b *builder) definition(name string) *spec.Container {
	if b.snapshot == nil {
		return nil
	}
	for _, list := range [...][]spec.Container{b.snapshot.Pod.InitContainers, b.snapshot.Pod.Containers, b.snapshot.Facts.Ephemeral} {
		if i := slices.IndexFunc(list, func(c spec.Container) bool { return c.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

func (b *builder) image(name string) string {
	if c := b.definition(name); c != nil {
		return c.Image
	}
	return ""
}

// role is the role of a container; empty if it is not known.
func (b *builder) role(name string) api.ContainerRole {
	c := b.definition(name)
	if c == nil {
		return ""
	}
	is := func(list []spec.Container) bool {
		return slices.ContainsFunc(list, func(o spec.Container) bool { return o.Name == name })
	}
	switch {
	case is(b.snapshot.Pod.InitContainers) && c.IsSidecar():
		return api.RoleSidecar
	case is(b.snapshot.Pod.InitContainers):
		return api.RoleInit
	case is(b.snapshot.Pod.Containers):
		return api.RoleApp
	}
	return api.RoleEphemeral
}
