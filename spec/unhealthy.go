package spec

import (
	"cmp"
	"time"
)

// UnhealthyStep is the last step for a pod that stays unready.
type UnhealthyStep string

// The steps, each after the ones before it.
const (
	UnhealthyRestart UnhealthyStep = "restart"
	UnhealthyReplace UnhealthyStep = "replace"
	UnhealthyReboot  UnhealthyStep = "reboot"
)

const (
	defaultUnhealthyAfter Seconds = 600
	maxUnhealthyAfter     Seconds = 7 * 24 * 60 * 60
)

// UnhealthyAfter returns how long the pod may be unready before each step.
func (p *Pod) UnhealthyAfter() time.Duration {
	return cmp.Or(p.UnhealthyAfterSeconds, defaultUnhealthyAfter).Duration()
}

// unhealthy checks the steps for a pod that stays unready.
func (v *validator) unhealthy() {
	p := v.pod
	oneOf(v, &p.OnUnhealthy, "", UnhealthyRestart, UnhealthyReplace, UnhealthyReboot)
	if p.OnUnhealthy != "" && p.RestartPolicy == RestartNever { // the shutdown of the host would end the pod for good
		v.badHint(&p.OnUnhealthy, `set restartPolicy to "OnFailure" or "Always"`, `must not be set with restartPolicy "Never"`)
	}
	after := &p.UnhealthyAfterSeconds
	switch {
	case *after == 0:
	case *after < 1 || *after > maxUnhealthyAfter:
		v.bad(after, "must be from 1 to %g", maxUnhealthyAfter)
	case p.OnUnhealthy == "":
		v.bad(after, "has no effect without onUnhealthy")
	}
}
