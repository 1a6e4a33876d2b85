package lifecycle

import "time"

// deadlineMessage is the kubelet's sentence for a pod that outlived its activeDeadlineSeconds.
const deadlineMessage = "Pod was active on the node longer than the specified deadline"

// FailPod ends the pod as failed, with the grace period of its own (activeDeadlineSeconds, contract 7.5). One that is asked to
// end already keeps the grace period that it has. It has no effect outside of the facts: see [RecordOnly].
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
}

func (FailPod) failed(*Facts, Failure, Instant) {}

// expired ends a pod whose time is over, and reports whether it does. The time begins when the pod was accepted, covers
// pulls and init containers too, and the end of the pod until nothing of it runs (contract 2.1, what overrides the phase).
func (p *plan) expired() bool {
	limit, stop := p.pod.ActiveDeadlineSeconds, &p.facts.Stop
	if limit == nil || stop.Reason != "" {
		return false
	}
	if Terminating(p.pod, *p.facts) && !p.facts.anyLive() {
		return false
	}
	if !p.due(p.facts.Accepted.Add(limit.Duration())) {
		return false
	}
	p.do(FailPod{Reason: ReasonDeadlineExceeded, Message: deadlineMessage, Grace: EffectiveGrace(p.pod, nil).Period})
	return true
}
