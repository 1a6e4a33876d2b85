package lifecycle

import (
	"time"
)

// deadlineMessage is the kubelet's sentence for a pod that outlived its activeDeadlineSeconds.
const deadlineMessage = "Pod was active on the node longer than the specified deadline"

// EndPod ends the pod as failed, with the grace period of its own (activeDeadlineSeconds, contract 7.5). It has no effect
// outside of the facts: see [Noted].
type EndPod struct {
	Reason  Reason
	Message string
	Grace   time.Duration
}

func (a EndPod) issued(f *Facts, at Instant) {
	f.Stop = Stop{
		Asked: at, Deadline: at.Add(a.Grace), By: "activeDeadlineSeconds", Reason: a.Reason, Message: a.Message,
	}
}

func (EndPod) failed(*Facts, Failure, Instant) {}

// expired ends a pod whose time is over, and reports whether it does. The time begins when the pod was accepted, and
// covers pulls and init containers too.
func (p *plan) expired() bool {
	limit := p.pod.ActiveDeadlineSeconds
	if limit == nil || !p.due(p.facts.Accepted.Add(limit.Duration())) {
		return false
	}
	p.do(EndPod{Reason: ReasonDeadlineExceeded, Message: deadlineMessage, Grace: EffectiveGrace(p.pod, nil).Period})
	return true
}
