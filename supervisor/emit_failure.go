package supervisor

import (
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// failed emits that an action failed.
func (e emission) failed(before lifecycle.Facts, event lifecycle.ActionFailed) {
	why := fields{"error": event.Failure.Message, "reason": string(event.Failure.Reason)}
	if event.Failure.Kind == lifecycle.FailureUnavailable {
		if e.facts.Away.IsZero() { // retried every second, emitted for the first failure
			e.emit(EngineUnavailable, "", fields{"error": event.Failure.Message})
		}
		return
	}
	switch a := event.Action.(type) {
	case lifecycle.StartSandbox:
		e.sandboxFailed(before, event.Failure, why)
	case lifecycle.PullImage:
		if e.facts.Containers[a.Container].Pull.Cancelled.IsZero() {
			e.pullFailed(a.Container, why)
		}
	case lifecycle.StartContainer:
		if event.Failure.Kind == lifecycle.FailureRefused {
			e.emit(ContainerCreateFailed, a.Container, why)
			return
		}
		e.emit(ContainerCreated, a.Container, nil)
		e.emit(ContainerStartFailed, a.Container, why)
		e.backOff(a.Container)
	case lifecycle.RunPostStart:
		e.hookFailed(PostStartFailed, a.Ref, e.newest(a.Container).PostStart)
	case lifecycle.RunPreStop:
		e.hookFailed(PreStopFailed, a.Ref, e.newest(a.Container).PreStop)
	case lifecycle.StopContainer:
		e.signalFailed(before, a.Ref, event.Failure)
	case lifecycle.KillContainer:
		e.signalFailed(before, a.Ref, event.Failure)
	case lifecycle.RemoveSandbox:
		e.emit(RemovalFailed, "", fields{"what": "the pod sandbox", "error": event.Failure.Message})
	case lifecycle.RemoveContainer:
		e.emit(RemovalFailed, a.Container, fields{"what": "an exited container", "error": event.Failure.Message})
	case lifecycle.RemovePod:
		e.emit(RemovalFailed, "", fields{"what": "the pod", "error": event.Failure.Message})
	}
}

// sandboxFailed emits that the pod sandbox could not be created. A volume that stays missing is emitted once.
func (e emission) sandboxFailed(before lifecycle.Facts, failure lifecycle.Failure, why fields) {
	kind := SandboxFailed
	if failure.Reason == lifecycle.ReasonFailedMount {
		if before.Sandbox.Failures > 0 && before.Sandbox.Message == failure.Message {
			return
		}
		kind = VolumeFailed
	}
	e.emit(kind, "", why)
}

// pullFailed emits the kubelet's two events for an image that cannot be pulled and, if a registry was asked, its two events for the
// back-off.
func (e emission) pullFailed(container string, why fields) {
	reason := lifecycle.Reason(why["reason"])
	kind := pullFailureKind(reason)
	why["image"] = e.image(container)
	e.emit(kind, container, why)
	e.emit(ImageError, container, fields{"error": string(reason)})
	if kind == ImagePullFailed {
		delay := lifecycle.PullDelay(e.facts, container)
		e.emit(ImageBackOff, container, fields{"image": why["image"], "delay": delay.String()})
		e.emit(ImageError, container, fields{"error": string(lifecycle.ReasonImagePullBackOff)})
	}
}

// pullFailureKind returns the kind of a failed pull: the kubelet has three.
func pullFailureKind(why lifecycle.Reason) Kind {
	if why == lifecycle.ReasonErrImageNeverPull {
		return ImageNeverPull
	}
	if why == lifecycle.ReasonInvalidImageName || why == lifecycle.ReasonImageInspectError {
		return ImageInspectFailed
	}
	return ImagePullFailed
}

// signalFailed emits that a signal could not be sent. It is retried every second, but emitted only if the newest event of the container
// is another one. If the process has exited, the exit is emitted instead.
func (e emission) signalFailed(before lifecycle.Facts, ref lifecycle.Ref, failure lifecycle.Failure) {
	switch {
	case e.hasExited(before, ref.Container):
		e.exited(ref.Container, e.newest(ref.Container).Exit)
	case failure.Kind != lifecycle.FailureGone && !e.causes.repeats(ref.Container, SignalFailed):
		e.emit(SignalFailed, ref.Container, fields{"container": ref.Container, "error": failure.Message})
	}
}

// hookFailed emits that a hook failed. It emits nothing for a hook that was cancelled or timed out, or whose attempt is not the newest.
// The error is not in the event: it may contain output of the container.
func (e emission) hookFailed(kind Kind, ref lifecycle.Ref, h lifecycle.Hook) {
	inTime := h.Limit == 0 || e.now.Before(h.Asked.Add(h.Limit))
	if e.newest(ref.Container).Ref == ref && h.Failed && h.Cancelled.IsZero() && inTime {
		e.emit(kind, ref.Container, nil)
	}
}
