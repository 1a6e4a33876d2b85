package story

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// run is what is known of the run of a container whose end is being told.
type run struct {
	started  time.Time // zero: it is not known
	told     time.Time // when it was told to stop; zero: it was not
	eventful bool      // something has happened to it
}

func begun(e *supervisor.Event) run { return run{started: e.Time} }

// tell is an event in the story of a container as a sentence; empty: it is no part of it.
func (r *run) tell(e *supervisor.Event) string {
	text := r.sentence(e)
	if text != "" && !beside[e.Kind] {
		r.eventful = true
	}
	return text
}

func (r *run) sentence(e *supervisor.Event) string {
	f := e.Fields
	switch e.Kind {
	case supervisor.ContainerNotAlive:
		return r.stop(e, probed("liveness", f)+", so ")
	case supervisor.ContainerNotUp:
		return r.stop(e, probed("startup", f)+", so ")
	case supervisor.ContainerNotHooked:
		return r.stop(e, "its postStart hook failed, so ")
	case supervisor.ContainerOutdated:
		return r.stop(e, "the pod's sandbox was lost, so ")
	case supervisor.ContainerStopping:
		return r.stop(e, because(f["why"]))
	case supervisor.ContainerKilled:
		return "it had not ended in time, or was given none, and was killed (SIGKILL)"
	case supervisor.PreStopFailed:
		return "its preStop hook failed"
	case supervisor.SignalFailed:
		return "it could not be sent a signal: " + f["error"]
	case supervisor.ContainerSucceeded:
		return "it exited with 0" + r.after(e) + said(f["message"])
	case supervisor.ContainerFailed:
		return exited(f) + r.after(e) + said(f["message"])
	case supervisor.ContainerBackOff:
		return "its next start waits for " + f["delay"] + ", since it fails again and again"
	case supervisor.ContainerRefused:
		return "it could not be created: " + f["reason"] + ": " + f["error"]
	case supervisor.ContainerStartError:
		return "it could not be started: " + f["error"]
	case supervisor.ImageFailed, supervisor.ImageNotInspected:
		return fmt.Sprintf("its image %s could not be pulled: %s: %s", f["image"], f["reason"], f["error"])
	case supervisor.ImageNotAllowed:
		return fmt.Sprintf("its image %s is not here, and its pull policy is Never", f["image"])
	case supervisor.ContainerAdded:
		return "it was added by " + f["by"]
	case supervisor.ContainerRunning:
		if r.started.IsZero() {
			return "it was started"
		}
		return "it was started again"
	}
	return podSentence(e)
}

// stop is the beginning of the end of a run.
func (r *run) stop(e *supervisor.Event, why string) string {
	r.told = e.Time
	text := why + "it was told to stop"
	if grace := e.Fields["grace"]; grace != "" {
		text += ", with a grace period of " + grace
	}
	return text
}

// because is why a container was told to stop that has not brought it upon itself.
func because(why string) string {
	switch lifecycle.Reason(why) {
	case lifecycle.ReasonPodFinished:
		return "the others of the pod were done, so "
	case lifecycle.ReasonRestartingAllContainers:
		return "all containers of the pod begin again, so "
	}
	return ""
}

// probed is what a probe has said.
func probed(probe string, f map[string]string) string {
	text := "the " + probe + " probe failed"
	if n, err := strconv.Atoi(f["count"]); err == nil && n > 1 {
		text += fmt.Sprintf(" %d times in a row", n)
	}
	if output := oneLine(f["output"]); output != "" {
		text += " (" + output + ")"
	}
	return text
}

// after is how long the end took since the stop, or the run since its start.
func (r *run) after(e *supervisor.Event) string {
	switch {
	case !r.told.IsZero() && !e.Time.Before(r.told):
		if took := e.Time.Sub(r.told); took >= time.Millisecond {
			return ", " + span(took) + " after that"
		}
		return " at once"
	case r.told.IsZero() && !r.started.IsZero() && !e.Time.Before(r.started):
		return ", after it had run for " + span(e.Time.Sub(r.started))
	}
	return "" // the wall clock was set
}

// exited is how a run ended that did not succeed.
func exited(f map[string]string) string {
	switch lifecycle.Reason(f["reason"]) {
	case lifecycle.ReasonOOMKilled:
		return "it was killed for want of memory (OOMKilled, exit status " + f["code"] + ")"
	case lifecycle.ReasonUnknown, lifecycle.ReasonStatusUnknown:
		return "it was gone, and how it ended is not known (" + f["reason"] + ", exit status " + f["code"] + ")"
	}
	text := "it exited with " + f["code"]
	if code, err := strconv.Atoi(f["code"]); err == nil && code > 128 {
		if name := unix.SignalName(unix.Signal(code - 128)); name != "" {
			text += " (" + name + ")"
		}
	}
	return text
}

func said(message string) string {
	if message = oneLine(message); message == "" {
		return ""
	}
	return ", and left the message: " + message
}

// oneLine is a text of a program as part of a sentence.
func oneLine(s string) string {
	const limit = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// span is a time that something took, as exact as a person wants it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// podSentence is an event of the pod as a whole; empty: it is no part of a story.
func podSentence(e *supervisor.Event) string {
	f := e.Fields
	switch e.Kind {
	case supervisor.PodRecovered:
		return "Podstead's daemon was restarted and took the pod up again"
	case supervisor.MachineRestarted:
		return "the machine was restarted, so that everything of the pod begins again"
	case supervisor.SandboxFailed:
		return "the pod's sandbox could not be made: " + f["error"]
	case supervisor.SandboxGone:
		return "the pod's sandbox was lost: " + f["error"]
	case supervisor.VolumeFailed:
		return "a volume could not be had (FailedMount): " + f["error"]
	case supervisor.PodRestarting:
		return "all containers of the pod began again, because " + f["container"] + " had ended as it did"
	case supervisor.PodStopping:
		return "the pod was asked to end within " + f["grace"] + ", by " + f["by"]
	case supervisor.PodEvicted:
		return "the pod was evicted: " + f["error"]
	case supervisor.PodExpired:
		return "the pod's time was over (activeDeadlineSeconds), so it was ended"
	case supervisor.PodSucceeded:
		return "the pod succeeded"
	case supervisor.PodFailed:
		return "the pod failed"
	case supervisor.PodGone:
		return "everything of the pod was taken away"
	case supervisor.RemovalFailed:
		return "could not be taken away, " + f["what"] + ": " + f["error"]
	case supervisor.StateLost:
		return "its state could not be read, and was made anew of what ran: " + f["error"]
	case supervisor.StateNotDurable:
		return "its state could not be written: " + f["error"]
	case supervisor.OrphanFound:
		return "it was found running though nobody had asked for it, so it was ended"
	case supervisor.EngineAway:
		return "the container engine could not be reached: " + f["error"]
	case supervisor.SupervisorPanicked:
		return "Podstead has a bug and survived it: " + f["error"]
	}
	return ""
}
