package spec

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Job makes a pod one completion of a Job: of the pods with the same name in it. The fields are those of a Job of Kubernetes.
//
// All but `index` are equal in its pods; if not, those of the pod with the lowest index count. The pods start in the order of their
// indexes, and end together. Source: batch/v1 JobSpec (KEP-3329, KEP-3850, KEP-3998).
type Job struct {
	// Name of the Job, a DNS subdomain. Required.
	Name string `json:"name"`
	// Index of the completion, from 0. Default: 0.
	Index int32 `json:"index,omitempty"`
	// Number of pods that must succeed, at least 1. Default: the Job has as many pods as `parallelism`, which is required then, and
	// completes when one has succeeded and all have terminated.
	Completions *int32 `json:"completions,omitempty"`
	// Number of pods that may run at the same time, from 0. The next pod starts when one has terminated. Default: 1.
	Parallelism *int32 `json:"parallelism,omitempty"`
	// Number of failures of all pods after which the Job fails with the next one. Default: 6, and no limit with `backoffLimitPerIndex`.
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// Number of restarts of each pod after a failure. The other pods continue when a pod has failed, and the Job fails after them. It
	// requires `completions`. Default: a pod that fails makes the Job fail.
	BackoffLimitPerIndex *int32 `json:"backoffLimitPerIndex,omitempty"`
	// Number of pods that may fail before the Job fails at once, at most `completions`. It requires `backoffLimitPerIndex`. Default: no
	// limit.
	MaxFailedIndexes *int32 `json:"maxFailedIndexes,omitempty"`
	// When the Job completes before all pods have succeeded. It requires `completions`. Default: never.
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`
	// What the exit codes of a pod that has failed mean for the Job. It requires `restartPolicy` Never. Default: the limits apply.
	PodFailurePolicy *PodFailurePolicy `json:"podFailurePolicy,omitempty"`
}

// SuccessPolicy is what must succeed so that the other pods of the Job are stopped (KEP-3998).
type SuccessPolicy struct {
	// Rules, at most 20. The Job completes when the first one is fulfilled. Required.
	Rules []SuccessRule `json:"rules"`
}

// SuccessRule is fulfilled when pods have succeeded. With both fields, as many of these indexes must have.
type SuccessRule struct {
	// Indexes such as `0-2,5`. Without `succeededCount` all must have succeeded. Default: all indexes.
	SucceededIndexes string `json:"succeededIndexes,omitempty"`
	// Number of pods that must have succeeded. Default: all in `succeededIndexes`.
	SucceededCount *int32 `json:"succeededCount,omitempty"`
}

// PodFailurePolicy is what exit codes of a failed pod mean for its Job (KEP-3329).
type PodFailurePolicy struct {
	// Rules, at most 20. The first one that matches decides. Required.
	Rules []PodFailureRule `json:"rules"`
}

// PodFailureRule matches exit codes of a pod that has failed.
//
// Which exit codes restart the pod before is determined by the `restartPolicyRules` of its containers.
type PodFailureRule struct {
	// `FailJob` makes the Job fail. `FailIndex`, `Count` and `Ignore` do not. Required.
	Action FailureAction `json:"action"`
	// The exit codes. Required.
	OnExitCodes *OnExitCodes `json:"onExitCodes,omitempty"`
}

// FailureAction is the action of a [PodFailureRule].
type FailureAction string

// The actions.
const (
	ActionFailJob   FailureAction = "FailJob"
	ActionFailIndex FailureAction = "FailIndex"
	ActionCount     FailureAction = "Count"
	ActionIgnore    FailureAction = "Ignore"
)

// OnExitCodes matches the exit codes of containers, apart from 0.
type OnExitCodes struct {
	// Container of the pod. Default: each.
	ContainerName string `json:"containerName,omitempty"`
	// `In` or `NotIn`. Required.
	Operator string `json:"operator"`
	// Exit codes, at most 255. With `In` they must not contain 0. Required.
	Values []int32 `json:"values"`
}

// Matches reports whether a container that has exited with a code matches.
func (c *OnExitCodes) Matches(container string, code int32) bool {
	of := c.ContainerName == "" || c.ContainerName == container
	return of && code != 0 && slices.Contains(c.Values, code) == (c.Operator == "In")
}

// Turn returns the condition that a pod of the Job waits for before it starts.
func (j *Job) Turn() string { return WaitJob + ":" + j.Name }

// MaxParallel returns how many pods of the Job may run at the same time.
func (j *Job) MaxParallel() int {
	if j.Parallelism == nil {
		return 1
	}
	return int(*j.Parallelism)
}

// Limit returns the number of failures of all pods that the Job tolerates.
func (j *Job) Limit() int32 {
	switch {
	case j.BackoffLimit != nil:
		return *j.BackoffLimit
	case j.BackoffLimitPerIndex != nil:
		return math.MaxInt32
	}
	return int32(defaultBackoffLimit)
}

// podLimit returns the backoffLimit of each pod.
func (j *Job) podLimit() int32 {
	if j.BackoffLimitPerIndex != nil {
		return min(*j.BackoffLimitPerIndex, j.Limit())
	}
	return j.Limit()
}

// Indexes is a set of indexes as intervals, each with its first and its last index.
type Indexes [][2]int32

// ParseIndexes reads indexes below a number of completions, such as "0-2,5" (batch/v1: validateIndexesFormat).
func ParseIndexes(text string, completions int32) (Indexes, error) {
	var list Indexes
	last := int32(-1)
	for part := range strings.SplitSeq(text, ",") {
		interval := [2]int32{}
		limits := strings.Split(part, "-")
		if len(limits) > len(interval) {
			return nil, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts "+
				"separated by '-'", part)
		}
		for i, limit := range limits {
			n, err := strconv.ParseInt(limit, 10, 32)
			switch {
			case err != nil:
				return nil, fmt.Errorf("cannot convert string to integer for index: %q", limit)
			case n >= int64(completions):
				return nil, fmt.Errorf("too large index: %q", limit)
			case int32(n) <= last:
				return nil, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, n)
			}
			last = int32(n)
			interval[i], interval[1] = last, last
		}
		list = append(list, interval)
	}
	return list, nil
}

// Contains reports whether an index is one of them.
func (list Indexes) Contains(index int32) bool {
	for _, interval := range list {
		if interval[0] <= index && index <= interval[1] {
			return true
		}
	}
	return false
}

// Len returns the number of indexes.
func (list Indexes) Len() int {
	n := 0
	for _, interval := range list {
		n += int(interval[1]-interval[0]) + 1
	}
	return n
}

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

// job adds the limit of the Job, and the rule by which a pod that is retried restarts all containers, to those that have no policy of their
// own.
func (d *defaulter) job() {
	if j := d.pod.Job; j != nil && d.pod.BackoffLimit == nil {
		limit := j.podLimit()
		d.pod.BackoffLimit = &limit
	}
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
	v.notNegative(p.BackoffLimit)
	v.jobTable(p.Job)
	if p.Job != nil && p.Job.PodFailurePolicy != nil && p.RestartPolicy == RestartOnFailure {
		v.bad(p.Job.PodFailurePolicy, `requires restartPolicy "Never"`)
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
	if p.Job != nil {
		v.badHint(p.Job, hint, `requires restartPolicy "OnFailure" or "Never": a pod that is always restarted does not complete`)
	}
}

func (v *validator) notNegative(n *int32) {
	if n != nil && *n < 0 {
		v.bad(n, "must be greater than or equal to 0")
	}
}

// maxJobRules is the maximum number of rules of a policy of a Job.
const maxJobRules = 20

// jobTable checks the Job of a pod (batch/v1: validateJobSpec).
func (v *validator) jobTable(j *Job) {
	if j == nil {
		return
	}
	if v.pod.BackoffLimit != nil {
		v.badHint(v.pod.BackoffLimit, "set job.backoffLimit or job.backoffLimitPerIndex", "must not be set with job")
	}
	if v.pod.Schedule != nil {
		v.bad(j, "must not be set with schedule: a run of a schedule has one pod")
	}
	v.requiredName(j, "name", &j.Name, dnsSubdomain)
	for _, n := range []*int32{&j.Index, j.Parallelism, j.BackoffLimit, j.BackoffLimitPerIndex, j.MaxFailedIndexes} {
		v.notNegative(n)
	}
	if j.Completions != nil && *j.Completions < 1 {
		v.bad(j.Completions, "must be greater than or equal to 1")
	} else if j.Completions != nil && j.Index >= *j.Completions {
		v.bad(&j.Index, "must be less than completions, which is %d", *j.Completions)
	}
	if j.Completions == nil && j.Parallelism == nil {
		v.bad(j, "must have completions or parallelism")
	}
	if j.Completions == nil && j.BackoffLimitPerIndex != nil {
		v.bad(j.BackoffLimitPerIndex, "requires completions")
	}
	switch {
	case j.MaxFailedIndexes == nil:
	case j.BackoffLimitPerIndex == nil:
		v.bad(j.MaxFailedIndexes, "requires backoffLimitPerIndex")
	case j.Completions != nil && *j.MaxFailedIndexes > *j.Completions:
		v.bad(j.MaxFailedIndexes, "must be less than or equal to completions")
	}
	v.successPolicy(j)
	v.podFailurePolicy(j)
}

// successPolicy checks the policy of a Job (batch/v1: validateSuccessPolicy).
func (v *validator) successPolicy(j *Job) {
	policy := j.SuccessPolicy
	switch {
	case policy == nil:
		return
	case j.Completions == nil:
		v.bad(policy, "requires completions")
		return
	case len(policy.Rules) == 0:
		v.bad(policy, "rules: Required value: at least one rule must be specified")
	}
	v.tooMany(&policy.Rules, len(policy.Rules), maxJobRules)
	for i := range policy.Rules {
		r := &policy.Rules[i]
		most, of := int(*j.Completions), "the number of specified completions"
		if r.SucceededIndexes != "" {
			list, err := ParseIndexes(r.SucceededIndexes, *j.Completions)
			if err != nil {
				v.invalid(&r.SucceededIndexes, r.SucceededIndexes, "error parsing succeededIndexes: "+err.Error())
				continue
			}
			most, of = list.Len(), "the number of indexes in succeededIndexes"
		} else if r.SucceededCount == nil {
			v.bad(r, "Required value: at least one of succeededCount or succeededIndexes must be specified")
		}
		v.notNegative(r.SucceededCount)
		if n := r.SucceededCount; n != nil && int(*n) > most {
			v.bad(n, "must be less than or equal to %d (%s)", most, of)
		}
	}
}

// podFailurePolicy checks the policy of a Job (batch/v1: validatePodFailurePolicy).
func (v *validator) podFailurePolicy(j *Job) {
	policy := j.PodFailurePolicy
	if policy == nil {
		return
	}
	if len(policy.Rules) == 0 {
		v.bad(policy, "rules: Required value")
	}
	v.tooMany(&policy.Rules, len(policy.Rules), maxJobRules)
	for i := range policy.Rules {
		r := &policy.Rules[i]
		codes := r.OnExitCodes
		v.required(r, "action", r.Action == "")
		oneOf(v, &r.Action, ActionCount, ActionFailIndex, ActionFailJob, ActionIgnore)
		if r.Action == ActionFailIndex && j.BackoffLimitPerIndex == nil {
			v.bad(&r.Action, "requires backoffLimitPerIndex")
		}
		if v.required(r, "onExitCodes", codes == nil); codes == nil {
			continue
		}
		v.required(codes, "operator", codes.Operator == "")
		oneOf(v, &codes.Operator, "In", "NotIn")
		v.required(codes, "values", len(codes.Values) == 0)
		v.tooMany(&codes.Values, len(codes.Values), maxExitCodes)
		for k, code := range codes.Values {
			if code == 0 && codes.Operator == "In" {
				v.bad(&codes.Values[k], "must not be 0 for the In operator")
			}
		}
		if codes.ContainerName != "" && v.pod.Container(codes.ContainerName) == nil {
			v.bad(&codes.ContainerName, "must be the name of a container of the pod")
		}
	}
}
