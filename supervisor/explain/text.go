package explain

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/api"
)

// Render sets the texts of an explanation as of a time, in the time zone of that time.
func Render(e *api.Explanation, now time.Time) {
	w := writer{e: e, now: now}
	for i := range e.Containers {
		c := &e.Containers[i]
		c.Text = w.container(c)
		renderExit(c.LastExit)
		w.render(c.Cause)
		for r := range c.Runs {
			renderExit(c.Runs[r].Exit)
			w.render(c.Runs[r].Cause)
		}
		for r := range c.RestartCauses {
			w.render(c.RestartCauses[r].Cause)
		}
	}
	w.render(e.Cause)
	e.Text = e.Pod + w.pod() +
		further("The newest version of its file is not running: ", e.File) +
		further("It is restarted while it stays unready (onUnhealthy), ", e.Escalation) +
		further("Its resize is not complete: ", e.NotResized) +
		further("Its volumes are not updated, containers keep the last content: ", e.NotUpdated) +
		further("Its state could not be saved, after a restart of the daemon an older state would be used: ", e.NotDurable) +
		further("Cleanup of the pod is not complete, retrying: ", e.NotRemoved)
}

func (w *writer) render(c *api.Cause) {
	if c == nil {
		return
	}
	renderExit(c.Exit)
	w.render(c.Earlier)
	c.Text = w.clause(c, subject(c))
}

func renderExit(x *api.ContainerExit) {
	if x != nil {
		x.Meaning = meaning(x)
	}
}

// writer writes the sentences of one explanation.
type writer struct {
	e   *api.Explanation
	now time.Time
}

// pod is the state of the pod, its root cause and what happens next: what follows the name of the pod.
func (w *writer) pod() string {
	e, c := w.e, w.e.Cause
	switch e.State {
	case api.PodStateReady:
		return w.ready()
	case api.PodStateNotReady:
		return w.notReady()
	case api.PodStateSucceeded:
		if e.StopBy != "" {
			return " succeeded after a stop requested by " + e.StopBy + "."
		}
		return " succeeded."
	case api.PodStateFailed:
		return w.failed()
	case api.PodStateStopping:
		return " is stopping" + requestedBy(e.StopBy) + "." + w.stage()
	case api.PodStateStopped:
		if c != nil && c.Kind == api.CauseJobEnded {
			return fmt.Sprintf(" was stopped (%s): %s", c.Reason, sentence(c.Message))
		}
		return " was stopped" + requestedBy(e.StopBy) + "."
	case api.PodStateRejected:
		if c == nil {
			return " was rejected."
		}
		return " was rejected: " + sentence(c.Message) + w.next(nil)
	case api.PodStateDeleted:
		if c != nil {
			return " failed and was deleted: " + sentence(w.clause(c, subject(c)))
		}
		return " was deleted" + requestedBy(e.StopBy) + "."
	case api.PodStateScheduled:
		return " " + e.Schedule
	case api.PodStateUnknown:
	}
	if clause := w.clause(c, ""); clause != "" {
		return " is in an unknown state because " + sentence(clause)
	}
	return " is in an unknown state."
}

func (w *writer) ready() string {
	c := w.e.Cause
	if c == nil {
		return " is running and ready."
	}
	now := "The pod is ready now."
	if len(w.e.Containers) == 1 {
		now = "It is ready now."
	}
	return w.affected(c) + w.restarted(c, false) + " " + now
}

// affected names the container of a cause after the pod, unless the pod has no other: it is the subject of what follows.
func (w *writer) affected(c *api.Cause) string {
	if len(w.e.Containers) == 1 {
		return " "
	}
	return ": " + subject(c) + " "
}

// containerOf finds a container by its name; nil if there is none.
func containerOf(e *api.Explanation, name string) *api.ExplainedContainer {
	for i := range e.Containers {
		if e.Containers[i].Name == name {
			return &e.Containers[i]
		}
	}
	return nil
}

// exits are the kinds of causes by which a container exits, so that it is restarted.
var exits = map[api.CauseKind]bool{
	api.CauseExited: true, api.CauseExecFormat: true, api.CauseOOMKilled: true, api.CauseExitUnknown: true, api.CauseKilled: true,
	api.CauseLivenessFailed: true, api.CauseStartupFailed: true, api.CausePostStartFailed: true,
}

func (w *writer) notReady() string {
	c := w.e.Cause
	if c == nil {
		return " is not ready."
	}
	who, container := subject(c), containerOf(w.e, c.Container)
	switch {
	case c.Kind == api.CausePodFinished:
		return " is stopping because its containers have completed." + w.stage()
	case c.Kind == api.CauseConditionUnmet:
		return " is " + sentence(w.clause(c, who))
	case container == nil && !failures[c.Kind], c.Kind == api.CauseContainersCompleted:
		return " is not ready: " + sentence(w.clause(c, who))
	case exits[c.Kind] && container != nil && container.State == api.ContainerFailed:
		return " is not ready: " + sentence(w.clause(c, who)+" and is not restarted")
	case exits[c.Kind]:
		return w.affected(c) + w.restarted(c, true) + w.next(container)
	case failures[c.Kind]:
		return " is waiting: " + sentence(w.clause(c, who)) + w.next(container)
	case c.Kind == api.CauseStartupPending, c.Kind == api.CauseReadinessPending, c.Kind == api.CauseReadinessFailed:
		text := " is not ready: " + sentence(w.clause(c, who))
		if container.Restarts > 0 {
			text += fmt.Sprintf(" Restarts: %d.", container.Restarts)
		}
		return text
	case container.State == api.ContainerWaiting || container.State == api.ContainerStopping || container.State == api.ContainerRestarting:
		return w.affected(c) + w.restarted(c, true) + w.next(container)
	}
	return " is starting: " + sentence(w.clause(c, who))
}

// next says what happens next to a container, or to the pod.
func (w *writer) next(c *api.ExplainedContainer) string {
	next, what := w.e.Next, "attempt"
	if c != nil {
		if c.Cause != nil && (exits[c.Cause.Kind] || c.Cause.Kind == api.CauseStartFailed) {
			what = "restart"
		}
		if c.State == api.ContainerStopping {
			return w.stage()
		}
	}
	switch {
	case !next.IsZero():
		return " Next " + what + " in " + span(next.Sub(w.now), time.Second) + "."
	case c != nil && c.State == api.ContainerRestarting:
		return " The restart is in progress."
	}
	return ""
}

func (w *writer) failed() string {
	c := w.e.Cause
	switch {
	case c == nil:
		return " failed."
	case c.Kind == api.CauseDeadlineExceeded || c.Kind == api.CauseBackoffLimit || c.Kind == api.CauseEvicted,
		c.Kind == api.CauseJobEnded:
		text := fmt.Sprintf(" failed (%s): %s", c.Reason, sentence(c.Message))
		if c.Earlier != nil {
			text += fmt.Sprintf(" %s never started: %s", capital(subject(c.Earlier)), sentence(w.clause(c.Earlier, "it")))
		}
		return text
	}
	return " failed: " + sentence(w.clause(c, subject(c)))
}

// stage is how far the stop of the first container that has begun to stop has come.
func (w *writer) stage() string {
	for i := range w.e.Containers {
		c := &w.e.Containers[i]
		if c.State == api.ContainerStopping && c.Stage != api.StageWaiting {
			return fmt.Sprintf(" %s: %s.", capital(named(c.Role, c.Name)), w.stageOf(c))
		}
	}
	return ""
}

func (w *writer) stageOf(c *api.ExplainedContainer) string {
	since := span(w.now.Sub(c.StageSince), time.Second)
	switch c.Stage {
	case api.StageWaiting:
		return "waiting for other containers to stop"
	case api.StagePreStop:
		return "preStop hook running for " + since
	case api.StageSignalSent:
		return "stop signal sent " + since + " ago"
	case api.StageKilled:
		return "SIGKILL sent " + since + " ago, waiting for exit"
	}
	return "stop in progress"
}

// container is the state of a container, without its name and its cause.
func (w *writer) container(c *api.ExplainedContainer) string {
	text := texts[c.State]
	switch c.State { //nolint:exhaustive // see default
	case api.ContainerWaiting, api.ContainerStarting:
		if c.Reason != "" {
			text += ": " + string(c.Reason)
		}
		if !c.Next.IsZero() {
			what := "attempt"
			if c.Cause != nil && (exits[c.Cause.Kind] || c.Cause.Kind == api.CauseStartFailed) {
				what = "restart"
			}
			text += fmt.Sprintf(", next %s at %s (in %s)", what, clock(c.Next, w.now), span(c.Next.Sub(w.now), time.Second))
		}
	case api.ContainerRunning:
		switch {
		case c.Ready:
			text += " and ready"
		case c.Role != api.RoleEphemeral && (c.Cause == nil || c.Cause.Kind != api.CauseInitRunning):
			text += ", not ready"
		}
	case api.ContainerStopping:
		text += ": " + w.stageOf(c)
	case api.ContainerCompleted:
		if c.Reason == api.ReasonOOMKilled {
			text += ", one of its processes was OOM-killed"
		}
	case api.ContainerFailed, api.ContainerStopped:
		text += " (exit " + code(c.LastExit, ", ", "") + ")"
		if c.LastExit != nil && c.LastExit.GraceExceeded {
			text += ": did not stop within its grace period"
		}
	default: // the state has no more
	}
	if c.MaxRestarts > 0 {
		text += fmt.Sprintf(", not restarted: it reached its maxRestarts of %d", c.MaxRestarts)
	}
	return text + "."
}

// texts are the states of containers.
var texts = map[api.ExplainedContainerState]string{
	api.ContainerWaiting: "Waiting", api.ContainerStarting: "Starting", api.ContainerRunning: "Running",
	api.ContainerStopping: "Stopping", api.ContainerRestarting: "Restarting",
	api.ContainerCompleted: "Completed (exit code 0)", api.ContainerFailed: "Failed", api.ContainerStopped: "Stopped",
	api.ContainerNotStarted: "Never started", api.ContainerDeleted: "Deleted", api.ContainerUnknown: "Unknown",
}

// clause is a cause as a clause. The subject is the container in which it lies: "it" after the container was named.
func (w *writer) clause(c *api.Cause, subject string) string {
	if c == nil {
		return ""
	}
	switch c.Kind { //nolint:exhaustive // see default
	case api.CauseExited:
		return fmt.Sprintf("%s exited with %s%s", subject, code(c.Exit, " (", ")"), after(c.Exit))
	case api.CauseOOMKilled:
		return w.oomKilled(c, subject)
	case api.CauseExecFormat:
		text := owned("command", subject) + " cannot be executed (exec format error): "
		if c.ImageArchitecture == c.HostArchitecture {
			return text + "image and host are both " + c.HostArchitecture + ", so a script may lack its #! line"
		}
		return text + fmt.Sprintf("the image is for %s, the host is %s", c.ImageArchitecture, c.HostArchitecture)
	case api.CauseExitUnknown:
		text := subject + " disappeared and its exit code is unknown"
		if c.Exit != nil {
			text += fmt.Sprintf(" (%s)", c.Exit.Reason)
		}
		return text
	case api.CauseKilled:
		if c.Grace == "" {
			return subject + " was killed (SIGKILL) without a grace period"
		}
		return subject + " did not stop within its grace period and was killed (SIGKILL)"
	case api.CauseLivenessFailed, api.CauseStartupFailed, api.CauseReadinessFailed:
		return owned(probeOf[c.Kind]+" probe", subject) + " failed" + repeated(c.Failures) + inBrackets(c.Output)
	case api.CauseStartupPending, api.CauseReadinessPending:
		return owned(probeOf[c.Kind]+" probe", subject) + " has not succeeded yet" + pending(c)
	case api.CausePostStartFailed:
		return owned("postStart hook", subject) + " failed" + because(c.Message)
	case api.CausePostStartRunning:
		return owned("postStart hook", subject) + " has been running for " + span(w.now.Sub(c.Time), time.Second)
	case api.CauseImageFailed:
		return imageFailed(c, subject)
	case api.CauseImagePulling, api.CauseImageImporting:
		return fetching(c, subject)
	case api.CauseCreateFailed:
		return subject + " cannot be created" + because(c.Message)
	case api.CauseStartFailed:
		return subject + " cannot be started" + because(c.Message)
	case api.CauseRestartAll:
		return restartAll(c)
	case api.CauseWaitsFor:
		return named(c.ByRole, c.ByContainer) + progressOf[c.ByRole]
	case api.CauseConditionUnmet:
		return oneLine(c.Message) + " (for " + span(w.now.Sub(c.Time), time.Second) + ")"
	case api.CauseInitRunning:
		return subject + " is running"
	case api.CauseStartRequested, api.CauseRestartRequested, api.CauseDefinitionChanged, api.CauseContainerRemoved:
		return requestedClause(c, subject)
	case api.CauseDeviceRemoved:
		return owned("device "+c.Message, subject) + " was unplugged"
	case api.CauseCreating:
		return subject + " is being created"
	case api.CauseContainersCompleted:
		return subject + " completed (exit code 0) and is not restarted"
	default:
		return clauseOfPod(c)
	}
}

// clauseOfPod is a cause that does not lie in a container.
func clauseOfPod(c *api.Cause) string {
	switch c.Kind { //nolint:exhaustive // see default
	case api.CauseSandboxChanged:
		return "the pod sandbox changed" + because(c.Message)
	case api.CauseSandboxFailed:
		return "the pod sandbox cannot be created" + because(c.Message)
	case api.CauseVolumeFailed:
		return "a volume cannot be mounted" + because(c.Message)
	case api.CauseHostRebooted:
		return "the host was rebooted"
	case api.CauseUncleanShutdown:
		return "the host stopped without a shutdown (power loss, reset or kernel panic)"
	case api.CauseStopRequested:
		return "the pod was stopped" + requestedBy(c.By)
	case api.CausePodFinished:
		return "the pod has no other containers left to run"
	case api.CauseDeadlineExceeded:
		return "the pod exceeded its activeDeadlineSeconds"
	case api.CauseBackoffLimit:
		return "the pod exceeded its backoffLimit"
	case api.CauseJobEnded:
		return oneLine(c.Message)
	case api.CauseEvicted:
		return "the pod was evicted" + because(c.Message)
	case api.CauseEngineUnavailable:
		return "the container engine is unavailable" + because(c.Message)
	case api.CauseReadinessGate, api.CauseMonitorUnresponsive, api.CauseNotSupervised:
		return oneLine(c.Message)
	default:
		return ""
	}
}

var probeOf = map[api.CauseKind]string{
	api.CauseLivenessFailed: "liveness", api.CauseStartupFailed: "startup", api.CauseStartupPending: "startup",
	api.CauseReadinessFailed: "readiness", api.CauseReadinessPending: "readiness",
}

// progressOf is what the containers that wait for a container of a role wait for.
var progressOf = map[api.ContainerRole]string{
	api.RoleInit: " has not completed yet", api.RoleSidecar: " has not started yet", api.RoleApp: " has not started yet",
}

func (w *writer) oomKilled(c *api.Cause, subject string) string {
	if c.Exit != nil && c.Exit.Code == 0 {
		return subject + " exited with code 0" + after(c.Exit) + " and one of its processes was OOM-killed"
	}
	text := subject + " was OOM-killed"
	if container := containerOf(w.e, c.Container); container != nil && container.Evidence != nil && container.Evidence.MemoryLimit > 0 {
		text += " (memory limit " + quantity(container.Evidence.MemoryLimit) + ")"
	}
	return text + after(c.Exit)
}

func restartAll(c *api.Cause) string {
	if c.ByContainer == "" {
		return "all containers of the pod are restarted"
	}
	text := named(c.ByRole, c.ByContainer) + " exited"
	if c.Exit != nil {
		text += " with " + code(c.Exit, " (", ")")
	}
	if c.Retry > 0 {
		return fmt.Sprintf("%s, retry %d of %d", text, c.Retry, c.Retries)
	}
	return text + ", triggering its RestartAllContainers rule"
}

// subject is the container of a cause with its role and name.
func subject(c *api.Cause) string { return named(c.Role, c.Container) }

func named(role api.ContainerRole, name string) string {
	if role == "" {
		role = api.RoleApp
	}
	return fmt.Sprintf("%s %q", role, name)
}
