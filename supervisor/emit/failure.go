package emit

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// failed emits that an action failed.
func (e Emission) failed(before *lifecycle.Facts, ev lifecycle.ActionFailed) {
	why := event.Fields{"error": ev.Failure.Message, "reason": string(ev.Failure.Reason)}
	if ev.Failure.Kind == lifecycle.FailureUnavailable {
		if e.facts.EngineUnavailable.IsZero() { // retried every second, emitted for the first failure
			e.Emit(api.EventEngineUnavailable, "", event.Fields{"error": ev.Failure.Message})
		}
		return
	}
	switch a := ev.Action.(type) {
	case lifecycle.StartSandbox:
		e.sandboxFailed(before, ev.Failure, why)
	case lifecycle.PullImage:
		if len(e.facts.Ephemeral) < len(before.Ephemeral) {
			e.Emit(api.EventContainerGivenUp, a.Container, event.Fields{"container": a.Container, "error": ev.Failure.Message})
			return
		}
		if now := e.facts.Container(a.Container).Pull; now.Cancelled.IsZero() && now != before.Container(a.Container).Pull {
			e.pullFailed(a.Container, why)
		}
	case lifecycle.StartContainer:
		if ev.Failure.Kind == lifecycle.FailureNotCreated {
			e.Emit(api.EventContainerCreateFailed, a.Container, why)
			return
		}
		e.Emit(api.EventContainerCreated, a.Container, nil)
		e.Emit(api.EventContainerStartFailed, a.Container, why)
		e.backOff(a.Container)
	case lifecycle.ResizePod:
		if before.Resize.Failed.IsZero() && !e.facts.Resize.Failed.IsZero() { // it is repeated until it succeeds
			e.Emit(api.EventResizeError, "", e.resized(ev.Failure.Message))
		}
	case lifecycle.RunPostStart:
		e.hookFailed(api.EventPostStartFailed, a.Ref, e.newest(a.Container).PostStart)
	case lifecycle.RunPreStop:
		e.hookFailed(api.EventPreStopFailed, a.Ref, e.newest(a.Container).PreStop)
	case lifecycle.StopContainer:
		e.signalFailed(before, a.Ref, ev.Failure)
	case lifecycle.KillContainer:
		e.signalFailed(before, a.Ref, ev.Failure)
	case lifecycle.RemoveSandbox:
		e.Emit(api.EventRemovalFailed, "", event.Fields{"what": "the pod sandbox", "error": ev.Failure.Message})
	case lifecycle.RemoveContainer:
		e.Emit(api.EventRemovalFailed, a.Container, event.Fields{"what": "an exited container", "error": ev.Failure.Message})
	case lifecycle.CollectPod:
		e.Emit(api.EventRemovalFailed, "", event.Fields{"what": "what the finished pod has left", "error": ev.Failure.Message})
	case lifecycle.RebootHost:
		kind := api.EventRebootFailed
		if ev.Failure.Reason == lifecycle.ReasonRebootHeldBack {
			kind = api.EventRebootHeldBack
		}
		if before.Escalation.Reboot.Message != ev.Failure.Message { // it is repeated
			e.Emit(kind, "", why)
		}
	case lifecycle.RemovePod:
		e.Emit(api.EventRemovalFailed, "", event.Fields{"what": "the pod", "error": ev.Failure.Message})
	}
}

// sandboxFailed emits that the pod sandbox could not be created. What stays missing on the host is emitted once.
func (e Emission) sandboxFailed(before *lifecycle.Facts, failure lifecycle.Failure, why event.Fields) {
	kind := api.EventSandboxFailed
	if failure.Reason == lifecycle.ReasonFailedMount {
		kind = api.EventVolumeFailed
	}
	if failure.Reason != "" && before.Sandbox.Failures > 0 && before.Sandbox.Message == failure.Message {
		return
	}
	e.Emit(kind, "", why)
}

// pullFailed emits the kubelet's two events for an image that cannot be pulled and, if a registry was asked, its two events for the
// back-off.
func (e Emission) pullFailed(container string, why event.Fields) {
	reason := lifecycle.Reason(why["reason"])
	kind := pullFailureKind(reason)
	why["image"] = e.Image(container)
	e.Emit(kind, container, why)
	e.Emit(api.EventImageError, container, event.Fields{"error": string(reason)})
	if kind == api.EventImagePullFailed {
		delay := lifecycle.PullDelay(*e.facts, container)
		e.Emit(api.EventImageBackOff, container, event.Fields{"image": why["image"], "delay": delay.String()})
		e.Emit(api.EventImageError, container, event.Fields{"error": string(lifecycle.ReasonImagePullBackOff)})
	}
}

// pullFailureKind returns the kind of a failed pull: the kubelet has three.
func pullFailureKind(why lifecycle.Reason) api.EventKind {
	if why == lifecycle.ReasonErrImageNeverPull {
		return api.EventImageNeverPull
	}
	if why == lifecycle.ReasonInvalidImageName || why == lifecycle.ReasonImageInspectError {
		return api.EventImageInspectFailed
	}
	return api.EventImagePullFailed
}

// signalFailed emits that a signal could not be sent. It is retried every second, but emitted only if the newest event of the container
// is another one. If the process has exited, the exit is emitted instead.
func (e Emission) signalFailed(before *lifecycle.Facts, ref lifecycle.Ref, failure lifecycle.Failure) {
	switch {
	case e.hasExited(before, ref.Container):
		e.exited(ref.Container, e.newest(ref.Container).Exit)
	case failure.Kind != lifecycle.FailureNotFound && !e.causes.repeats(ref.Container, api.EventSignalFailed):
		e.Emit(api.EventSignalFailed, ref.Container, event.Fields{"container": ref.Container, "error": failure.Message})
	}
}

// hookFailed emits that a hook failed. It emits nothing for a hook that was cancelled or timed out, or whose attempt is not the newest.
// The error is not in the event: it may contain output of the container.
func (e Emission) hookFailed(kind api.EventKind, ref lifecycle.Ref, h lifecycle.Hook) {
	inTime := h.Limit == 0 || e.now.Before(h.Requested.Add(h.Limit))
	if e.newest(ref.Container).Ref == ref && h.Failed && h.Cancelled.IsZero() && inTime {
		e.Emit(kind, ref.Container, nil)
	}
}
