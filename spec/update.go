package spec

import (
	"cmp"
	"time"
)

// Update sets what happens when the pod does not become ready after its file changed.
type Update struct {
	// Time for the pod to become ready after its file changed, greater than 0 and at most 86400. Default: 120.
	ReadyWithinSeconds Seconds `json:"readyWithinSeconds,omitempty"`
	// Time for which the pod must stay ready, without a container that fails, before a change or a start counts as successful; at most
	// 86400. Default: 10. Without the table it is 5.
	MinReadySeconds Seconds `json:"minReadySeconds,omitempty"`
	// `rollback` restores the last definition that was ready if the changed one is not ready in time or fails before; `keep` keeps the
	// changed one. Default: `rollback`.
	OnFailure UpdatePolicy `json:"onFailure,omitempty"`
}

// UpdatePolicy tells what happens after an update that failed.
type UpdatePolicy string

// The update policies.
const (
	OnFailureRollback UpdatePolicy = "rollback"
	OnFailureKeep     UpdatePolicy = "keep"
)

const (
	defaultReadyWithin Seconds = 120
	defaultMinReady    Seconds = 10
	// plainMinReady is the minimum ready time of a pod without the table. It finds a crash at the start, such as a mistake in a
	// configuration or a port in use, and costs little. Docker Swarm monitors an update for as long, Nomad (min_healthy_time) for 10 s,
	// as the table does: it decides about a rollback. A Deployment has 0, but goes on to watch what it has started.
	plainMinReady Seconds = 5
	maxUpdateTime Seconds = 24 * 60 * 60
)

// UpdateRule returns how long a changed definition may take to become ready, 0 for any time, how long it must stay ready, and whether the
// last one that was ready is restored if it does not. Without the table nothing is restored, and there is no limit.
func (p *Pod) UpdateRule() (within, minReady time.Duration, rollback bool) {
	if p.Update == nil {
		return 0, plainMinReady.Duration(), false
	}
	u := p.Update
	return cmp.Or(u.ReadyWithinSeconds, defaultReadyWithin).Duration(), u.MinReadySeconds.Duration(), u.OnFailure != OnFailureKeep
}

// update sets the defaults, so that a file that states them defines the same pod.
func (d *defaulter) update() {
	table := d.root.child("update")
	if table.child("readyWithinSeconds") == nil {
		d.pod.Update.ReadyWithinSeconds = defaultReadyWithin
	}
	if table.child("minReadySeconds") == nil {
		d.pod.Update.MinReadySeconds = defaultMinReady
	}
	setDefault(&d.pod.Update.OnFailure, OnFailureRollback)
}

func (v *validator) update(u *Update) {
	if u == nil {
		return
	}
	v.positive(&u.ReadyWithinSeconds)
	for _, seconds := range []*Seconds{&u.ReadyWithinSeconds, &u.MinReadySeconds} {
		if *seconds > maxUpdateTime {
			v.bad(seconds, "must be less than or equal to %v", maxUpdateTime)
		}
	}
	oneOf(v, &u.OnFailure, OnFailureRollback, OnFailureKeep)
}
