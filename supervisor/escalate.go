package supervisor

import (
	"context"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// escalationChanged schedules the checkpoint. A flapping probe must not write to the disk, so only the end of an escalation that has
// taken a step is saved.
func (l *loop) escalationChanged(before lifecycle.Step) {
	l.checkpointDue = true
	l.dirty = l.dirty || l.facts.Escalation.Step != before
}

// escalation returns the escalation for the checkpoint; nil if the pod does not use it.
func (l *loop) escalation() *lifecycle.Escalation {
	if lifecycle.LastStep(l.pod) == lifecycle.StepNone {
		return nil
	}
	copied := l.facts.Escalation // written later
	return &copied
}

// noticeGap folds that the pod was not supervised since the last turn: the host was suspended.
func (l *loop) noticeGap(before, now lifecycle.Instant) {
	if !before.IsZero() && now.Sub(before) > 2*maxSleep {
		l.fold(lifecycle.SupervisionGap{At: now}, now)
	}
}

// abandonReboot folds that a request to reboot the host failed if its result is not known. It is not repeated as other actions are: the
// pod may be ready by now. Otherwise the next request follows after more unready time.
func (l *loop) abandonReboot(now lifecycle.Instant) {
	for _, a := range l.facts.Unresolved() {
		if _, is := a.(lifecycle.RebootHost); is {
			why := lifecycle.Failure{Reason: lifecycle.ReasonRebootFailed, Message: "the daemon was interrupted during the request"}
			l.fold(lifecycle.ActionFailed{Action: a, Failure: why, At: now}, now)
		}
	}
}

// reboot requests a reboot of the host.
func (e *effects) reboot(ctx context.Context, pod string) error {
	if e.shared.rebooter == nil {
		return lifecycle.Failure{Reason: lifecycle.ReasonRebootHeldBack, Message: "reboots are disabled"}
	}
	return e.shared.rebooter.Reboot(ctx, pod)
}
