package lifecycle

import (
	"fmt"
	"time"
)

const (
	// maxRecovery is for how long a pod must be ready until its escalation starts again at the first step. A shorter
	// spec.Pod.UnhealthyAfterSeconds replaces it. Without it a container that crashes after each start would never lead to a reboot.
	maxRecovery = time.Minute
	// settleTime is the minimum time from a gap, in which nothing was supervised, to a step, or to the failure of a trial that has more
	// time: probes must run first.
	settleTime = time.Minute
)

// Step is a step of the escalation for a pod that stays unready.
type Step int

// The steps, in their order.
const (
	StepNone    Step = iota
	StepRestart      // all containers are restarted in their sandbox
	StepReplace      // the sandbox is replaced, and init containers run again
	StepReboot       // the host is rebooted
)

// Escalation is what was done because the pod stayed unready, see [spec.Pod.OnUnhealthy]. A reboot, a stop and a start of the pod, and
// a change of its definition start it again.
type Escalation struct {
	Since   Instant       `json:"since,omitzero"`    // from when on unready time counts; zero: it does not count now
	Counted time.Duration `json:"counted,omitempty"` // unready time before Since, after the last step
	Ready   Instant       `json:"ready,omitzero"`    // since when the pod is ready again
	Gap     Instant       `json:"gap,omitzero"`      // end of the newest time in which nothing was supervised
	Step    Step          `json:"step,omitempty"`    // the last step
	At      Instant       `json:"at,omitzero"`       // when it was taken
	Reboot  HostReboot    `json:"reboot,omitzero"`
}

// HostReboot is the newest request to reboot the host.
type HostReboot struct {
	Requested Instant `json:"requested,omitzero"`
	Accepted  Instant `json:"accepted,omitzero"` // the host was asked to reboot
	Failed    Instant `json:"failed,omitzero"`   // the request was held back, or it failed
	Reason    Reason  `json:"reason,omitempty"`  // of the failure
	Message   string  `json:"message,omitempty"`
}

// pending reports whether the request has no outcome yet.
func (r *HostReboot) pending() bool {
	return !r.Requested.IsZero() && r.Accepted.IsZero() && r.Failed.IsZero()
}

// rebase moves all instants.
func (e *Escalation) rebase(move func(*Instant)) {
	for _, t := range []*Instant{&e.Since, &e.Ready, &e.Gap, &e.At, &e.Reboot.Requested, &e.Reboot.Accepted, &e.Reboot.Failed} {
		move(t)
	}
}

// SetBack moves the escalation as [Facts.SetBack] does.
func (e Escalation) SetBack(saved, now Instant) Escalation {
	e.rebase(func(t *Instant) { *t = t.SetBack(saved, now) })
	return e
}

// Escalated folds in the escalation of a checkpoint, unless the facts have a later step.
func (f Facts) Escalated(e Escalation) Facts {
	if own := &f.Escalation; e.Step == own.Step && e.At.Boot == own.At.Boot && e.At.Mono == own.At.Mono {
		f.Escalation = e
	}
	return f
}

// count ends the current period of unready time and adds it.
func (e *Escalation) count(at Instant) {
	if !e.Since.IsZero() {
		e.Counted, e.Since = e.Counted+max(at.Sub(e.Since), 0), Instant{}
	}
}

// CountUnready records that the pod's unready time counts from now on. See [RecordOnly].
type CountUnready struct{}

func (CountUnready) issued(f *Facts, at Instant) {
	f.Escalation.Since, f.Escalation.Ready = at, Instant{}
}
func (CountUnready) failed(*Facts, Failure, Instant) {}

// PauseUnready records that the pod's unready time does not count from now on: the pod is ready, or it waits for something that no
// step can change. See [RecordOnly].
type PauseUnready struct{ Ready bool }

func (a PauseUnready) issued(f *Facts, at Instant) {
	f.Escalation.count(at)
	f.Escalation.Ready = Instant{}
	if a.Ready {
		f.Escalation.Ready = at
	}
}

func (PauseUnready) failed(*Facts, Failure, Instant) {}

// EndEscalation records that the pod has recovered. See [RecordOnly].
type EndEscalation struct{}

func (EndEscalation) issued(f *Facts, _ Instant)      { f.Escalation = Escalation{} }
func (EndEscalation) failed(*Facts, Failure, Instant) {}

// Escalate takes [StepRestart] or [StepReplace]. See [RecordOnly].
type Escalate struct {
	Step    Step
	Unready time.Duration // for how long the pod was unready
}

func (a Escalate) issued(f *Facts, at Instant) {
	f.Escalation = Escalation{Gap: f.Escalation.Gap, Step: a.Step, At: at}
	if a.Step == StepReplace {
		f.Restart = Restart{Requested: at, By: EscalationBy}
	}
}

func (Escalate) failed(*Facts, Failure, Instant) {}

// EscalationBy is who requests restarts of an escalation.
const EscalationBy = "onUnhealthy of the pod file"

// RestartUnhealthy restarts one container in [StepRestart], with its preStop hook and its grace period. See [RecordOnly].
type RestartUnhealthy struct{ Container string }

func (a RestartUnhealthy) issued(f *Facts, _ Instant)    { f.replace(a.Container, ReasonRestartRequested) }
func (RestartUnhealthy) failed(*Facts, Failure, Instant) {}

// RebootHost requests a reboot of the host. Its outcome is [HostRebootRequested], or a failure if the reboot is held back.
type RebootHost struct{ Unready time.Duration }

func (a RebootHost) issued(f *Facts, at Instant) {
	e := &f.Escalation
	*e = Escalation{Gap: e.Gap, Step: StepReboot, At: at, Reboot: HostReboot{Requested: at, Reason: e.Reboot.Reason, Message: e.Reboot.Message}}
}

func (RebootHost) failed(f *Facts, why Failure, at Instant) {
	if r := &f.Escalation.Reboot; r.pending() {
		r.Failed, r.Reason, r.Message = at, why.Reason, why.Message
	}
}

// HostRebootRequested reports that the host was asked to reboot.
type HostRebootRequested struct{ At Instant }

func (e HostRebootRequested) apply(f *Facts) {
	if r := &f.Escalation.Reboot; r.pending() {
		r.Accepted, r.Reason, r.Message = e.At, "", ""
	}
}

// SupervisionGap reports that the pod was not supervised until now, because the daemon did not run or the host was suspended. The
// next step waits until probes have run again.
type SupervisionGap struct{ At Instant }

func (e SupervisionGap) apply(f *Facts) {
	if f.Escalation != (Escalation{}) {
		f.Escalation.Gap = e.At
	}
	f.Trial.resume(e.At)
}

// words of the steps, for people.
var stepWords = [...]string{"", "restart all containers", "replace the pod sandbox", "reboot the host"}

// String returns what the step does, in the imperative.
func (s Step) String() string { return stepWords[s] }

// escalationCondition computes the condition Unhealthy: whether the pod is unready for so long that a step was taken.
func (v *view) escalationCondition() Condition {
	e, last := &v.facts.Escalation, LastStep(v.pod)
	var message string
	reason := Reason("")
	switch e.Step {
	case StepNone:
	case StepRestart:
		reason, message = ReasonContainersRestarted, "all containers were restarted"
	case StepReplace:
		reason, message = ReasonSandboxReplaced, "the pod sandbox was replaced"
	case StepReboot:
		reason, message = ReasonHostRebootRequested, "a reboot of the host was requested"
		if r := &e.Reboot; !r.Failed.IsZero() {
			reason, message = r.Reason, "the host is not rebooted: "+r.Message
		}
	}
	if message != "" {
		message = fmt.Sprintf("step %d of %d, at %s: %s", e.Step, last, stamp(e.At).Format(time.RFC3339), message)
	}
	if !e.Since.IsZero() {
		next := fmt.Sprintf("unready, next step at %s: %v", stamp(e.due(v.pod.UnhealthyAfter())).Format(time.RFC3339), min(e.Step+1, last))
		if message != "" {
			message += "; "
		}
		message += next
	}
	return condition(PodUnhealthy, e.Step != StepNone, reason, message)
}
