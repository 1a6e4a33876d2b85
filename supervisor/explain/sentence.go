package explain

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// run is what is known of the run of a container whose end is being told.
type run struct {
	started  time.Time // zero: it is not known
	told     time.Time // when it was told to stop; zero: it was not
	eventful bool      // something has happened to it
	unborn   bool      // it is known not to have begun: what happens to the pod is no end of it
}

func begun(e *event.Event) run { return run{started: e.Time} }

// tell is an event in the story of a container as a sentence; empty: it is no part of it.
func (r *run) tell(e *event.Event) string {
	text := r.sentence(e)
	if text != "" && !beside[e.Kind] && (e.Container != "" || !r.unborn) {
		r.eventful = true
	}
	return text
}

func (r *run) sentence(e *event.Event) string {
	if tell := ofContainer[e.Kind]; tell != nil {
		return tell(r, e)
	}
	return podSentence(e)
}

// ofContainer are the sentences about one container.
var ofContainer = map[event.Kind]func(*run, *event.Event) string{
	event.ContainerLivenessFailed: func(r *run, e *event.Event) string {
		return r.stop(e, probed("liveness", e.Fields)+", so ")
	},
	event.ContainerStartupFailed: func(r *run, e *event.Event) string {
		return r.stop(e, probed("startup", e.Fields)+", so ")
	},
	event.ContainerPostStartFailed: func(r *run, e *event.Event) string {
		return r.stop(e, "its postStart hook failed, so ")
	},
	event.ContainerSandboxChanged: func(r *run, e *event.Event) string {
		return r.stop(e, "the pod's sandbox was lost, so ")
	},
	event.ContainerStopping: func(r *run, e *event.Event) string {
		return r.stop(e, because(e.Fields["why"]))
	},
	event.ContainerKilled: func(r *run, _ *event.Event) string {
		if r.told.IsZero() {
			return "it was given no time to end, and was killed (SIGKILL)"
		}
		return "it had not ended in time, and was killed (SIGKILL)"
	},
	event.PreStopFailed: func(_ *run, _ *event.Event) string {
		return "its preStop hook failed"
	},
	event.SignalFailed: func(_ *run, e *event.Event) string {
		return "it could not be sent a signal: " + e.Fields["error"]
	},
	event.ContainerSucceeded: func(r *run, e *event.Event) string {
		return "it exited with 0" + r.after(e) + said(e.Fields["message"])
	},
	event.ContainerFailed: func(r *run, e *event.Event) string {
		if e.Fields["code"] == "0" { // so it is OOMKilled all the same
			return "it exited with 0" + r.after(e) + "; something of it was killed for want of memory (OOMKilled)" + said(e.Fields["message"])
		}
		return exited(e.Fields) + r.after(e) + said(e.Fields["message"])
	},
	event.ContainerBackOff: func(_ *run, e *event.Event) string {
		return "its next start waits for " + e.Fields["delay"] + ", since it ends again and again"
	},
	event.ContainerCreateFailed: func(_ *run, e *event.Event) string {
		return "it could not be created: " + e.Fields["reason"] + ": " + e.Fields["error"]
	},
	event.ContainerStartFailed: func(_ *run, e *event.Event) string {
		return "it could not be started: " + e.Fields["error"]
	},
	event.ImagePullFailed: func(_ *run, e *event.Event) string {
		return fmt.Sprintf("its image %s could not be pulled: %s: %s", e.Fields["image"], e.Fields["reason"], e.Fields["error"])
	},
	event.ImageInspectFailed: func(_ *run, e *event.Event) string {
		return fmt.Sprintf("its image %s could not be pulled: %s: %s", e.Fields["image"], e.Fields["reason"], e.Fields["error"])
	},
	event.ImageNeverPull: func(_ *run, e *event.Event) string {
		return fmt.Sprintf("its image %s is not here, and its pull policy is Never", e.Fields["image"])
	},
	event.ContainerAdded: func(_ *run, e *event.Event) string {
		return "it was added by " + e.Fields["by"]
	},
	event.ContainerStarted: func(r *run, _ *event.Event) string {
		if r.started.IsZero() {
			return "it was started"
		}
		return "it was started again"
	},
}

// stop is the beginning of the end of a run.
func (r *run) stop(e *event.Event, why string) string {
	r.told = e.Time
	text := why + "it was told to stop"
	if grace := e.Fields["grace"]; grace != "" {
		text += ", with a grace period of " + grace
	}
	return text
}

// allBegin begins the sentence about a container that is ended by the rule of another one.
const allBegin = "all containers of the pod begin again"

// because is why a container was told to stop that has not brought it upon itself.
func because(why string) string {
	switch why {
	case string(lifecycle.ReasonPodFinished):
		return "nothing else of the pod is to run any more, so "
	case string(lifecycle.ReasonRestartingAllContainers):
		return allBegin + ", so "
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
func (r *run) after(e *event.Event) string {
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
	switch f["reason"] {
	case string(lifecycle.ReasonOOMKilled):
		return "it was killed for want of memory (OOMKilled, exit status " + f["code"] + ")"
	case string(lifecycle.ReasonUnknown), string(lifecycle.ReasonStatusUnknown):
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
	return "; the message: " + message
}

// oneLine is a text of a program as part of a sentence. Of a long one the middle is left out: an error has its cause at its end.
func oneLine(s string) string {
	const half = 160
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 2*half {
		s = strings.ToValidUTF8(s[:half], "") + " … " + strings.ToValidUTF8(s[len(s)-half:], "")
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
func podSentence(e *event.Event) string {
	pairs := make([]string, 0, 2*len(e.Fields))
	for name, value := range e.Fields {
		pairs = append(pairs, "{"+name+"}", oneLine(value))
	}
	return strings.NewReplacer(pairs...).Replace(ofPod[e.Kind])
}

// ofPod are the sentences about the pod as a whole, with {field} for those of the event.
var ofPod = map[event.Kind]string{
	event.PodRejected:         "the pod was refused: {error}",
	event.PodRecovered:        "Podstead's daemon was restarted and took the pod up again",
	event.HostRebooted:        "the machine was restarted",
	event.SandboxFailed:       "the pod's sandbox could not be made: {error}",
	event.SandboxChanged:      "the pod's sandbox was lost: {error}",
	event.VolumeFailed:        "a volume could not be had (FailedMount): {error}",
	event.PodRestarting:       "all containers of the pod began again, by the rule of {container} for its exit status {code}",
	event.PodStopping:         "the pod was asked to end within {grace}, by {by}",
	event.PodEvicted:          "the pod was evicted: {error}",
	event.PodDeadlineExceeded: "the pod's time was over (activeDeadlineSeconds), so it was ended",
	event.PodSucceeded:        "the pod succeeded",
	event.PodFailed:           "the pod failed",
	event.PodRemoved:          "everything of the pod was taken away",
	event.RemovalFailed:       "could not be taken away, {what}: {error}",
	event.StateLost:           "its state could not be read, and was made anew of what ran: {error}",
	event.StateNotDurable:     "its state could not be written: {error}",
	event.OrphanFound:         "it was found running though nobody had asked for it, so it was ended",
	event.EngineUnavailable:   "the container engine could not be reached: {error}",
	event.InternalError:       "Podstead has a bug and survived it: {error}",
}
