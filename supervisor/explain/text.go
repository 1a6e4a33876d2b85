package explain

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Render sets the texts of an explanation as of a time, in the time zone of that time.
func (e *Explanation) Render(now time.Time) {
	w := writer{e: e, now: now}
	for i := range e.Containers {
		c := &e.Containers[i]
		c.Text = w.container(c)
		c.LastExit.render()
		w.render(c.Cause)
		for r := range c.Runs {
			c.Runs[r].Exit.render()
			w.render(c.Runs[r].Cause)
		}
		for r := range c.RestartCauses {
			w.render(c.RestartCauses[r].Cause)
		}
	}
	w.render(e.Cause)
	e.Text = e.Pod + w.pod() + w.file() + w.escalation() + w.notUpdated() + w.notDurable() + w.notRemoved()
}

func (w *writer) render(c *Cause) {
	if c == nil {
		return
	}
	c.Exit.render()
	w.render(c.Earlier)
	c.Text = w.clause(c, subject(c))
}

func (x *Exit) render() {
	if x != nil {
		x.Meaning = meaning(x)
	}
}

// writer writes the sentences of one explanation.
type writer struct {
	e   *Explanation
	now time.Time
}

// pod is the state of the pod, its root cause and what happens next: what follows the name of the pod.
func (w *writer) pod() string {
	e, c := w.e, w.e.Cause
	switch e.State {
	case PodReady:
		return w.ready()
	case PodNotReady:
		return w.notReady()
	case PodSucceeded:
		if e.StopBy != "" {
			return " succeeded after a stop requested by " + e.StopBy + "."
		}
		return " succeeded."
	case PodFailed:
		return w.failed()
	case PodStopping:
		return " is stopping" + requestedBy(e.StopBy) + "." + w.stage()
	case PodStopped:
		return " was stopped" + requestedBy(e.StopBy) + "."
	case PodRejected:
		return " was rejected: " + sentence(c.Message)
	case PodDeleted:
		if c != nil {
			return " failed and was deleted: " + sentence(w.clause(c, subject(c)))
		}
		return " was deleted" + requestedBy(e.StopBy) + "."
	case PodUnknown:
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
func (w *writer) affected(c *Cause) string {
	if len(w.e.Containers) == 1 {
		return " "
	}
	return ": " + subject(c) + " "
}

// container finds a container by its name; nil if there is none.
func (e *Explanation) container(name string) *Container {
	for i := range e.Containers {
		if e.Containers[i].Name == name {
			return &e.Containers[i]
		}
	}
	return nil
}

// exits are the kinds of causes by which a container exits, so that it is restarted.
var exits = map[CauseKind]bool{
	Exited: true, ExecFormat: true, OOMKilled: true, ExitUnknown: true, Killed: true, LivenessFailed: true, StartupFailed: true, PostStartFailed: true,
}

func (w *writer) notReady() string {
	c := w.e.Cause
	if c == nil {
		return " is not ready."
	}
	who, container := subject(c), w.e.container(c.Container)
	switch {
	case c.Kind == PodFinished:
		return " is stopping because its containers have completed." + w.stage()
	case c.Kind == ConditionUnmet:
		return " is " + sentence(w.clause(c, who))
	case container == nil && !failures[c.Kind], c.Kind == ContainersCompleted:
		return " is not ready: " + sentence(w.clause(c, who))
	case exits[c.Kind] && container.State == Failed:
		return " is not ready: " + sentence(w.clause(c, who)+" and is not restarted")
	case exits[c.Kind]:
		return w.affected(c) + w.restarted(c, true) + w.next(container)
	case failures[c.Kind]:
		return " is waiting: " + sentence(w.clause(c, who)) + w.next(container)
	case c.Kind == StartupPending, c.Kind == ReadinessPending, c.Kind == ReadinessFailed:
		text := " is not ready: " + sentence(w.clause(c, who))
		if container.Restarts > 0 {
			text += fmt.Sprintf(" Restarts: %d.", container.Restarts)
		}
		return text
	case container.State == Waiting || container.State == Stopping || container.State == Restarting:
		return w.affected(c) + w.restarted(c, true) + w.next(container)
	}
	return " is starting: " + sentence(w.clause(c, who))
}

// next says what happens next to a container, or to the pod.
func (w *writer) next(c *Container) string {
	next, what := w.e.Next, "attempt"
	if c != nil {
		if exits[c.Cause.Kind] || c.Cause.Kind == StartFailed {
			what = "restart"
		}
		if c.State == Stopping {
			return w.stage()
		}
	}
	switch {
	case !next.IsZero():
		return " Next " + what + " in " + span(next.Sub(w.now), time.Second) + "."
	case c != nil && c.State == Restarting:
		return " The restart is in progress."
	}
	return ""
}

func (w *writer) failed() string {
	c := w.e.Cause
	switch {
	case c == nil:
		return " failed."
	case c.Kind == DeadlineExceeded || c.Kind == Evicted:
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
		if c.State == Stopping && c.Stage != StageWaiting {
			return fmt.Sprintf(" %s: %s.", capital(named(c.Role, c.Name)), w.stageOf(c))
		}
	}
	return ""
}

func (w *writer) stageOf(c *Container) string {
	since := span(w.now.Sub(c.StageSince), time.Second)
	switch c.Stage {
	case StageWaiting:
		return "waiting for other containers to stop"
	case StagePreStop:
		return "preStop hook running for " + since
	case StageSignalSent:
		return "stop signal sent " + since + " ago"
	case StageKilled:
		return "SIGKILL sent " + since + " ago, waiting for exit"
	}
	return "stop in progress"
}

// container is the state of a container, without its name and its cause.
func (w *writer) container(c *Container) string {
	text := texts[c.State]
	switch c.State { //nolint:exhaustive // see default
	case Waiting, Starting:
		if c.Reason != "" {
			text += ": " + string(c.Reason)
		}
		if !c.Next.IsZero() {
			what := "attempt"
			if c.Cause != nil && (exits[c.Cause.Kind] || c.Cause.Kind == StartFailed) {
				what = "restart"
			}
			text += fmt.Sprintf(", next %s at %s (in %s)", what, clock(c.Next, w.now), span(c.Next.Sub(w.now), time.Second))
		}
	case Running:
		switch {
		case c.Ready:
			text += " and ready"
		case c.Role != Ephemeral && (c.Cause == nil || c.Cause.Kind != InitRunning):
			text += ", not ready"
		}
	case Stopping:
		text += ": " + w.stageOf(c)
	case Completed:
		if c.Reason == lifecycle.ReasonOOMKilled {
			text += ", one of its processes was OOM-killed"
		}
	case Failed, Stopped:
		text += " (exit " + code(c.LastExit, ", ", "") + ")"
		if c.LastExit != nil && c.LastExit.GraceExceeded {
			text += ": did not stop within its grace period"
		}
	default: // the state has no more
	}
	return text + "."
}

// texts are the states of containers.
var texts = map[ContainerState]string{
	Waiting: "Waiting", Starting: "Starting", Running: "Running", Stopping: "Stopping", Restarting: "Restarting",
	Completed: "Completed (exit code 0)", Failed: "Failed", Stopped: "Stopped", NotStarted: "Never started", Deleted: "Deleted", Unknown: "Unknown",
}

// clause is a cause as a clause. The subject is the container in which it lies: "it" after the container was named.
func (w *writer) clause(c *Cause, subject string) string {
	if c == nil {
		return ""
	}
	switch c.Kind { //nolint:exhaustive // see default
	case Exited:
		return fmt.Sprintf("%s exited with %s%s", subject, code(c.Exit, " (", ")"), after(c.Exit))
	case OOMKilled:
		return w.oomKilled(c, subject)
	case ExecFormat:
		text := owned("command", subject) + " cannot be executed (exec format error): "
		if c.ImageArchitecture == c.HostArchitecture {
			return text + "image and host are both " + c.HostArchitecture + ", so a script may lack its #! line"
		}
		return text + fmt.Sprintf("the image is for %s, the host is %s", c.ImageArchitecture, c.HostArchitecture)
	case ExitUnknown:
		return fmt.Sprintf("%s disappeared and its exit code is unknown (%s)", subject, c.Exit.Reason)
	case Killed:
		if c.Grace == "" {
			return subject + " was killed (SIGKILL) without a grace period"
		}
		return subject + " did not stop within its grace period and was killed (SIGKILL)"
	case LivenessFailed, StartupFailed, ReadinessFailed:
		return owned(probeOf[c.Kind]+" probe", subject) + " failed" + repeated(c.Failures) + inBrackets(c.Output)
	case StartupPending, ReadinessPending:
		return owned(probeOf[c.Kind]+" probe", subject) + " has not succeeded yet" + pending(c)
	case PostStartFailed:
		return owned("postStart hook", subject) + " failed" + because(c.Message)
	case PostStartRunning:
		return owned("postStart hook", subject) + " has been running for " + span(w.now.Sub(c.Time), time.Second)
	case ImageFailed:
		return imageFailed(c, subject)
	case ImagePulling, ImageImporting:
		return fetching(c, subject)
	case CreateFailed:
		return subject + " cannot be created" + because(c.Message)
	case StartFailed:
		return subject + " cannot be started" + because(c.Message)
	case RestartAll:
		return restartAll(c)
	case WaitsFor:
		return named(c.ByRole, c.ByContainer) + progressOf[c.ByRole]
	case ConditionUnmet:
		return oneLine(c.Message) + " (for " + span(w.now.Sub(c.Time), time.Second) + ")"
	case InitRunning:
		return subject + " is running"
	case StartRequested, RestartRequested, DefinitionChanged, ContainerRemoved:
		return requestedClause(c, subject)
	case Creating:
		return subject + " is being created"
	case ContainersCompleted:
		return subject + " completed (exit code 0) and is not restarted"
	default:
		return clauseOfPod(c)
	}
}

// clauseOfPod is a cause that does not lie in a container.
func clauseOfPod(c *Cause) string {
	switch c.Kind { //nolint:exhaustive // see default
	case SandboxChanged:
		return "the pod sandbox changed" + because(c.Message)
	case SandboxFailed:
		return "the pod sandbox cannot be created" + because(c.Message)
	case VolumeFailed:
		return "a volume cannot be mounted" + because(c.Message)
	case HostRebooted:
		return "the host was rebooted"
	case UncleanShutdown:
		return "the host stopped without a shutdown (power loss, reset or kernel panic)"
	case StopRequested:
		return "the pod was stopped" + requestedBy(c.By)
	case PodFinished:
		return "the pod has no other containers left to run"
	case DeadlineExceeded:
		return "the pod exceeded its activeDeadlineSeconds"
	case Evicted:
		return "the pod was evicted" + because(c.Message)
	case EngineUnavailable:
		return "the container engine is unavailable" + because(c.Message)
	case ReadinessGate, ShimUnresponsive, NotSupervised:
		return oneLine(c.Message)
	default:
		return ""
	}
}

var probeOf = map[CauseKind]string{
	LivenessFailed: "liveness", StartupFailed: "startup", StartupPending: "startup", ReadinessFailed: "readiness", ReadinessPending: "readiness",
}

// progressOf is what the containers that wait for a container of a role wait for.
var progressOf = map[Role]string{Init: " has not completed yet", Sidecar: " has not started yet", App: " has not started yet"}

func (w *writer) oomKilled(c *Cause, subject string) string {
	if c.Exit.Code == 0 {
		return subject + " exited with code 0" + after(c.Exit) + " and one of its processes was OOM-killed"
	}
	text := subject + " was OOM-killed"
	if container := w.e.container(c.Container); container != nil && container.Evidence != nil && container.Evidence.MemoryLimit > 0 {
		text += " (memory limit " + quantity(container.Evidence.MemoryLimit) + ")"
	}
	return text + after(c.Exit)
}

func restartAll(c *Cause) string {
	if c.ByContainer == "" {
		return "all containers of the pod are restarted"
	}
	text := named(c.ByRole, c.ByContainer) + " exited"
	if c.Exit != nil {
		text += " with " + code(c.Exit, " (", ")")
	}
	return text + ", triggering its RestartAllContainers rule"
}

// subject is the container of a cause with its role and name.
func subject(c *Cause) string { return named(c.Role, c.Container) }

func named(role Role, name string) string {
	if role == "" {
		role = App
	}
	return fmt.Sprintf("%s %q", role, name)
}
