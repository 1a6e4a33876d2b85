package spec

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

const (
	// defaultBackoffLimit is that of a Job.
	defaultBackoffLimit int64 = 6
	// noLimit is the largest backoffLimit. It counts as none: a Job always has one.
	noLimit int64 = math.MaxInt32
)

// jobKeys are the fields of the spec of a Job, apart from the template.
var jobKeys = []string{
	"completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completionMode", "suspend",
	"podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "maxFailedIndexes", "manualSelector", "podReplacementPolicy", "managedBy",
}

// job adds the pods of a Job: one for each completion. They have the field job, unless it would mean nothing for a single pod.
func (s *stream) job(x *object) {
	of, template, ok := s.workload(x, jobKeys...)
	if !ok {
		return
	}
	if suspend := of.child("suspend"); suspend != nil && suspend.value == true {
		s.empty = true
		s.problems = append(s.problems, warnAt(suspend, "Job "+quote(x.name)+" has no pods: it is suspended"))
		return
	}
	change := s.jobFields(of)
	if c := of.child("parallelism"); s.number(of, "parallelism", 1) == 0 && of.child("completions") != nil {
		s.empty = true
		s.problems = append(s.problems, warnAt(c, "Job "+quote(x.name)+" has no pods: it is paused"))
		return
	}
	key := "completions"
	if of.child(key) == nil {
		key = "parallelism"
	}
	count := s.replicas(x, of, key)
	indexed := textOf(of.child("completionMode")) == indexedMode
	single := count == 1 && !slices.ContainsFunc(ofSeveral, func(key string) bool { return of.child(key) != nil })
	for i := range count {
		name := x.name
		if count > 1 || indexed {
			name = fmt.Sprintf("%s-%d", x.name, i)
		}
		s.replica(x, template, name, func(root *node) {
			if !single {
				root.take("job", jobOf(of, x.name, int64(i)), of)
			}
			change(root)
			if indexed {
				root.jobIndex("JOB_COMPLETION_INDEX", strconv.Itoa(i))
			}
		})
	}
}

// ofSeveral are the fields of the spec of a Job that concern all its pods together.
var ofSeveral = []string{"successPolicy", "maxFailedIndexes"}

// jobOf returns the field job of the pod with an index. Rules for conditions never apply: pods are not disrupted.
func jobOf(of *node, name string, index int64) *node {
	job := newTable(nil)
	job.at, job.keyAt = of.at, of.keyAt
	job.put("name", &node{kind: kindString, value: name, at: of.at, keyAt: of.at})
	job.put("index", &node{kind: kindInteger, value: index, at: of.at, keyAt: of.at})
	for _, key := range append([]string{
		"completions", "parallelism", "backoffLimit", "backoffLimitPerIndex", "podFailurePolicy",
	}, ofSeveral...) {
		if c := of.child(key); c != nil {
			job.take(key, c.clone(), c)
		}
	}
	if rules := job.child("podFailurePolicy").child("rules"); rules != nil {
		rules.items = slices.DeleteFunc(rules.items, func(rule *node) bool { return rule.child("onExitCodes") == nil })
		if len(rules.items) == 0 {
			job.remove("podFailurePolicy")
		}
	}
	return job
}

// indexedMode is the completionMode of a Job whose pods have a number.
const indexedMode = "Indexed"

// jobFields reports the fields of the spec of a Job that its pods do not have, and returns the change that sets the others in a pod.
func (s *stream) jobFields(of *node) func(root *node) {
	indexed := textOf(of.child("completionMode")) == indexedMode
	if c := of.child("completionMode"); c != nil && !indexed && c.value != "NonIndexed" {
		s.fail(c, `Unsupported value: supported values: "Indexed", "NonIndexed"`)
	}
	if c := of.child("completions"); indexed && c == nil {
		s.fail(of, "completions: Required value: when completion mode is Indexed")
	}
	for _, key := range append([]string{"backoffLimitPerIndex"}, ofSeveral...) {
		if c := of.child(key); c != nil && !indexed {
			s.fail(c, "Invalid value: requires indexed completion mode")
		}
	}
	if c := of.child("managedBy"); c != nil && c.value != "kubernetes.io/job-controller" {
		s.lose(c, "there are no other controllers", "")
	}
	if c := of.child("podReplacementPolicy"); c != nil && c.value != "Failed" {
		s.problems = append(s.problems, warnAt(c, ignored+"what failed is started again after it has stopped"))
	}
	if c := of.child("manualSelector"); c != nil {
		s.problems = append(s.problems, warnAt(c, ignored+"pods are not selected by labels"))
	}
	limit := of.child("backoffLimitPerIndex")
	retries := s.number(of, "backoffLimitPerIndex", noLimit)
	if total := of.child("backoffLimit"); limit == nil || total != nil && less(total, limit) {
		limit = total
		retries = s.number(of, "backoffLimit", defaultBackoffLimit)
	}
	pod := of.child("template").child("spec")
	var names []string
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range items(pod.child(key)) {
			names = append(names, textOf(c.child("name")))
		}
	}
	rules := s.failurePolicy(of, names, retries != noLimit)
	if rules != nil && retries > 0 {
		s.ownPolicies(pod)
	}
	deadline, total := pod.child("activeDeadlineSeconds"), of.child("activeDeadlineSeconds")
	if deadline != nil && retries > 0 && (total == nil || less(deadline, total)) {
		s.lose(deadline, "it includes all attempts", "set activeDeadlineSeconds of the Job, or backoffLimit to 0")
	}
	return func(root *node) {
		policy := root.child("restartPolicy")
		if textOf(policy) != string(RestartNever) && textOf(policy) != string(RestartOnFailure) {
			s.fail(cmp.Or(policy, root), `spec.restartPolicy: Required value: must be "OnFailure" or "Never" in a Job`)
			return
		}
		if of.child("podFailurePolicy") != nil && textOf(policy) != string(RestartNever) {
			s.fail(policy, `spec.restartPolicy: Invalid value: must be "Never" with podFailurePolicy`)
			return
		}
		if root.child("job") == nil && root.child("backoffLimit") == nil && (retries != noLimit || textOf(policy) == string(RestartNever)) {
			at := cmp.Or(limit, of)
			root.take("backoffLimit", &node{kind: kindInteger, value: retries, at: at.at, keyAt: at.keyAt}, limit)
		}
		if rules != nil && retries > 0 {
			root.retriedBy(rules)
		}
		for _, key := range []string{"activeDeadlineSeconds", "ttlSecondsAfterFinished"} {
			own := root.child(key)
			if c := of.child(key); c != nil && (own == nil || key == "activeDeadlineSeconds" && less(c, own)) {
				root.remove(key)
				root.take(key, c.clone(), c)
			}
		}
	}
}

// less reports whether a number is less than another.
func less(n, than *node) bool {
	a, is := n.value.(int64)
	b, isToo := than.value.(int64)
	return is && isToo && a < b
}

// ownPolicies reports the restart policies of containers that podFailurePolicy replaces.
func (s *stream) ownPolicies(pod *node) {
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range items(pod.child(key)) {
			if key == "initContainers" && textOf(c.child("restartPolicy")) == string(RestartAlways) {
				continue
			}
			for _, own := range []*node{c.child("restartPolicy"), c.child("restartPolicyRules")} {
				if own != nil {
					s.lose(own, "podFailurePolicy determines what is restarted", "")
				}
			}
		}
	}
}

// take sets a field of a pod to a value of another table. Problems of the value are those of the source; nil: the file does not have it.
func (root *node) take(key string, c, source *node) {
	root.put(key, c)
	if source != nil {
		c.movedFrom = source.path()
	}
}

// failureRule is a rule of podFailurePolicy for exit codes.
type failureRule struct {
	codes     *node  // onExitCodes
	container string // empty: each
	in        bool   // the operator is In, not NotIn
	values    []int64
	fails     bool // the action is FailJob or FailIndex
}

// failsAfter reports whether a container that exits with a code makes its Job or index fail: the first rule that matches decides.
func failsAfter(rules []failureRule, container string, code int64) bool {
	for _, r := range rules {
		if (r.container == "" || r.container == container) && slices.Contains(r.values, code) == r.in {
			return r.fails
		}
	}
	return false
}

// failurePolicy returns the rules of a podFailurePolicy for exit codes; nil: the pod is retried after each failure. Rules for conditions,
// such as DisruptionTarget, never apply: pods are not disrupted. Counted says that the number of retries is limited.
//
// Source: batch/v1 PodFailurePolicy and its validation (KEP-3329).
func (s *stream) failurePolicy(of *node, containers []string, counted bool) []failureRule {
	policy := of.child("podFailurePolicy")
	var rules []failureRule
	s.fieldsAre(policy, "rules")
	for _, rule := range items(policy.child("rules")) {
		s.fieldsAre(rule, "action", "onExitCodes", "onPodConditions")
		codes, action := rule.child("onExitCodes"), rule.child("action")
		name := textOf(action)
		switch name {
		case "FailJob", "Count":
		case "FailIndex":
			if of.child("backoffLimitPerIndex") == nil {
				s.fail(action, "Invalid value: requires backoffLimitPerIndex")
			}
		case "Ignore":
			if codes != nil && counted {
				s.lose(action, "the failure counts towards the limit of retries", "")
			}
		default:
			s.fail(cmp.Or(action, rule), `action: Unsupported value: supported values: "Count", "FailIndex", "FailJob", "Ignore"`)
		}
		if (codes == nil) == (rule.child("onPodConditions") == nil) {
			s.fail(rule, "Invalid value: must have one of onExitCodes and onPodConditions")
		}
		if codes != nil {
			rules = append(rules, s.failureRule(codes, containers, name))
		}
	}
	if !slices.ContainsFunc(rules, func(r failureRule) bool { return r.fails }) {
		return nil
	}
	return rules
}

// failureRule returns the rule of onExitCodes.
func (s *stream) failureRule(codes *node, containers []string, action string) failureRule {
	s.fieldsAre(codes, "containerName", "operator", "values")
	name, operator, values := codes.child("containerName"), codes.child("operator"), codes.child("values")
	r := failureRule{
		codes: codes, container: textOf(name), in: textOf(operator) == "In", fails: action == "FailJob" || action == "FailIndex",
	}
	if name != nil && !slices.Contains(containers, r.container) {
		s.fail(name, "Invalid value: must be one of the container or initContainer names in the pod template")
	}
	if !r.in && textOf(operator) != "NotIn" {
		s.fail(cmp.Or(operator, codes), `operator: Unsupported value: supported values: "In", "NotIn"`)
	}
	if len(items(values)) == 0 {
		s.fail(cmp.Or(values, codes), "values: Required value")
	}
	for _, v := range items(values) {
		n, is := v.value.(int64)
		switch {
		case !is:
			s.fail(v, "must be an integer")
		case n == 0 && r.in:
			s.fail(v, "Invalid value: must not be 0 for the In operator")
		}
		r.values = append(r.values, n)
	}
	return r
}

// retriedBy sets the rules by which the containers of a pod that fails are started again.
func (root *node) retriedBy(rules []failureRule) {
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(key)) {
			if c.kind != kindTable || key == "initContainers" && textOf(c.child("restartPolicy")) == string(RestartAlways) {
				continue
			}
			c.replace("restartPolicy", kindString, string(RestartNever))
			c.remove("restartPolicyRules")
			if rule := retryRule(rules, textOf(c.child("name"))); rule != nil {
				list := &node{kind: kindArray, at: rule.at, keyAt: rule.keyAt}
				c.add("restartPolicyRules", list)
				list.appendItem(rule)
			}
		}
	}
}

// retryRule returns the item of restartPolicyRules that starts a container again unless its Job or index fails; nil: it always fails.
func retryRule(rules []failureRule, container string) *node {
	var named []int64
	for _, r := range rules {
		named = append(named, r.values...)
	}
	slices.Sort(named)
	const other = -1 // stands for all codes that no rule names
	fails := failsAfter(rules, container, other)
	var values []int64
	for _, code := range slices.Compact(named) {
		if code != 0 && failsAfter(rules, container, code) != fails {
			values = append(values, code)
		}
	}
	operator := "In"
	if !fails {
		operator, values = "NotIn", append(values, 0) // a container that succeeds is not restarted
	}
	if len(values) == 0 {
		return nil
	}
	codes := rules[0].codes
	rule, exit, list := newTable(nil), newTable(nil), &node{kind: kindArray, at: codes.at, keyAt: codes.keyAt}
	for _, n := range []*node{rule, exit} {
		n.at, n.keyAt = codes.at, codes.keyAt
	}
	rule.replace("action", kindString, "RestartAllContainers")
	rule.add("exitCodes", exit)
	exit.replace("operator", kindString, operator)
	exit.add("values", list)
	for _, n := range values {
		list.appendItem(&node{kind: kindInteger, value: n, at: codes.at, keyAt: codes.keyAt})
	}
	return rule
}

// jobIndex sets an environment variable and the annotation of an indexed Job.
func (root *node) jobIndex(variable, value string) {
	annotate(root, "annotations", "batch.kubernetes.io/job-completion-index", value)
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			if c.kind != kindTable {
				continue
			}
			if env := c.list("env"); env != nil {
				e := newTable(nil)
				e.at, e.keyAt = c.at, c.at
				env.appendItem(e)
				e.replace("name", kindString, variable)
				e.replace("value", kindString, value)
			}
		}
	}
}

// scheduleFields are the fields of the spec of a CronJob that a schedule has, by their names there.
var scheduleFields = map[string]string{
	"schedule": "cron", "timeZone": "timeZone", "suspend": "suspend",
	"startingDeadlineSeconds": "startingDeadlineSeconds", "concurrencyPolicy": "concurrencyPolicy",
	"successfulJobsHistoryLimit": "successfulJobsHistoryLimit", "failedJobsHistoryLimit": "failedJobsHistoryLimit",
}

// cronJob adds the pod with a schedule whose runs are those of a CronJob.
func (s *stream) cronJob(x *object) {
	s.problems = append(s.problems, s.metadata(x, []string{"spec"})...)
	of := x.n.child("spec")
	s.fieldsAre(of, append(slices.Sorted(maps.Keys(scheduleFields)), "jobTemplate")...)
	job := of.child("jobTemplate").child("spec")
	if of.child("schedule") == nil || job == nil {
		s.fail(cmp.Or(of, x.n), "CronJob: spec.schedule and spec.jobTemplate.spec: Required value")
		return
	}
	s.jobTemplate(of.child("jobTemplate"))
	template, ok := s.template(x, job, jobKeys...)
	if !ok {
		return
	}
	change := s.jobFields(job)
	for _, key := range []string{"completions", "parallelism"} {
		if c := job.child(key); s.number(job, key, 1) != 1 {
			s.lose(c, "a run of a schedule has one pod", "")
		}
	}
	for _, key := range ofSeveral {
		if c := job.child(key); c != nil {
			s.lose(c, "a run of a schedule has one pod", "")
		}
	}
	if c := job.child("suspend"); c != nil && c.value == true {
		s.lose(c, "a run starts when it is created", "set spec.suspend of the CronJob to start no runs")
	}
	schedule := newTable(nil)
	schedule.at, schedule.keyAt = of.at, of.keyAt
	for _, c := range of.items {
		if key := scheduleFields[c.key]; key != "" {
			schedule.take(key, c.clone(), c)
		}
	}
	s.replica(x, template, x.name, func(root *node) {
		change(root)
		if textOf(job.child("completionMode")) == indexedMode {
			root.jobIndex("JOB_COMPLETION_INDEX", "0")
		}
		root.take("schedule", schedule, of)
	})
}

// jobTemplate reports what the template of a Job has besides its spec. Labels and annotations are those of the Job, not of its pods.
func (s *stream) jobTemplate(template *node) {
	s.fieldsAre(template, "metadata", "spec")
	for _, c := range items(template.child("metadata")) {
		switch {
		case c.key == "labels" || c.key == "annotations":
			s.problems = append(s.problems, warnAt(c, ignored+"a run has those of its pod"))
		case !objectMetaKeys[c.key] && !slices.Contains(metadataKeys, c.key):
			s.problems = append(s.problems, problemAt(c, unknownField, didYouMean(c.key, metadataKeys)))
		}
	}
}
