package spec

import "reflect"

// Retries reports whether all containers of the pod are started again after a failure, as a Job starts another pod.
func (p *Pod) Retries() bool {
	return p.RestartPolicy == RestartNever && p.BackoffLimit != nil && *p.BackoffLimit > 0
}

// RetriedFor reports whether a failure of a container starts all containers of the pod again because of backoffLimit, not because of a rule
// of its file. c may be nil.
func (p *Pod) RetriedFor(c *Container) bool {
	return p.Retries() && c != nil && c.RestartPolicy == RestartNever && reflect.DeepEqual(c.RestartPolicyRules, retryRules())
}

// retryRules are the rules of a container that has none of its own, in a pod that is retried.
func retryRules() []RestartRule {
	return []RestartRule{{Action: "RestartAllContainers", ExitCodes: &ExitCodes{Operator: "NotIn", Values: []int32{0}}}}
}

// job adds the rule by which a pod that is retried restarts all containers, to those that have no policy of their own.
func (d *defaulter) job() {
	if !d.pod.Retries() {
		return
	}
	for c := range d.pod.EveryContainer() {
		if c.RestartPolicy == "" {
			c.RestartPolicy = RestartNever
			c.RestartPolicyRules = retryRules()
		}
	}
}

func (v *validator) job() {
	p := v.pod
	if p.BackoffLimit != nil && *p.BackoffLimit < 0 {
		v.bad(p.BackoffLimit, "must be greater than or equal to 0")
	}
	if p.RestartPolicy != RestartAlways {
		return
	}
	const hint = `set restartPolicy to "OnFailure" or "Never" at the top of the file`
	if p.BackoffLimit != nil {
		v.badHint(p.BackoffLimit, hint, `requires restartPolicy "OnFailure" or "Never": containers that are always restarted have no limit`)
	}
	if p.TTLSecondsAfterFinished != nil {
		v.badHint(p.TTLSecondsAfterFinished, hint,
			`requires restartPolicy "OnFailure" or "Never": a pod that is always restarted does not finish`)
	}
}
