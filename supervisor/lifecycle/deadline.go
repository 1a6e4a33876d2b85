package lifecycle

import "time"

// deadlineMessage is the kubelet's message for a pod that exceeded its activeDeadlineSeconds.
const deadlineMessage = "Pod was active on the node longer than the specified deadline"

// FailPod terminates the pod as Failed within its grace period (activeDeadlineSeconds, contract 7.5). A pod that is stopping
// keeps its grace period. See [RecordOnly].
type FailPod struct {
	Reason  Reason
	Message string
	Grace   time.Duration
}

func (a FailPod) issued(f *Facts, at Instant) {
	if f.Stop.Requested.IsZero() {
		f.Stop.within(a.Grace, "activeDeadlineSeconds", at)
	}
	f.Stop.Reason, f.Stop.Message = a.Reason, a.Message
	f.Restart = Restart{}
}

func (FailPod) failed(*Facts, Failure, Instant) {}

// failExpired fails a pod that exceeded its activeDeadlineSeconds, and reports whether it did. The deadline counts from
// acceptance, or from a restart of the pod that was requested since, includes image pulls and init containers, and applies to a
// terminating pod until no process is left (contract 2.1). It does not apply while a restart of the pod is pending, which resets it.
func (p *plan) failExpired() bool {
	limit, stop := p.pod.ActiveDeadlineSeconds, &p.facts.Stop
	if limit == nil || stop.Reason != "" || p.facts.Restart.pending() {
		return false
	}
	if Terminating(p.pod, *p.facts) && !p.facts.anyLive() {
		return false
	}
	if !p.due(p.facts.activeSince().Add(limit.Duration())) {
		return false
	}
	p.do(FailPod{Reason: ReasonDeadlineExceeded, Message: deadlineMessage, Grace: EffectiveGrace(p.pod, nil).Period})
	return true
}
