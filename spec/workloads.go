package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// defaultMaxReplicas is the maximum number of pods of one object.
const defaultMaxReplicas = 16

// AnnotationReplicaOf has the kind and the name of the object that a pod is a replica of, as in "Deployment/web". Replicas are updated one
// after the other.
const AnnotationReplicaOf = "podstead.io/replica-of"

// fieldsAre reports the fields of a table that are none of the keys.
func (s *stream) fieldsAre(n *node, keys ...string) {
	for _, c := range items(n) {
		if !slices.Contains(keys, c.key) {
			s.problems = append(s.problems, problemAt(c, unknownField, didYouMean(c.key, keys)))
		}
	}
}

// workload returns the spec of an object and the template of its pods; ok is false if it has none, which is reported.
func (s *stream) workload(x *object, keys ...string) (of, template *node, ok bool) {
	s.problems = append(s.problems, s.metadata(x, []string{"spec"})...)
	of = x.n.child("spec")
	template = of.child("template")
	switch {
	case len(dnsSubdomain(x.name)) > 0:
		at := cmp.Or(x.n.child("metadata").child("name"), x.n)
		s.fail(at, "Required value: the pods of a "+x.kind+" are named after it, which must be a DNS subdomain")
		return nil, nil, false
	case of == nil || of.kind != kindTable || template == nil || template.kind != kindTable:
		s.fail(cmp.Or(template, of, x.n), "spec.template: Required value: must be the metadata and the spec of a pod")
		return nil, nil, false
	}
	s.fieldsAre(of, append(keys, "template", "selector")...)
	return of, template, true
}

// selectsOwn reports a selector that does not select the pods of its object, as the API server does.
func (s *stream) selectsOwn(of, template *node) {
	selector := of.child("selector")
	if selector == nil {
		s.fail(of, "spec.selector: Required value: must have matchLabels")
		return
	}
	labels := template.child("metadata").child("labels")
	for _, c := range items(selector.child("matchLabels")) {
		if own := labels.child(c.key); own == nil || own.value != c.value {
			s.fail(c, "Invalid value: `selector` does not match template `labels`")
		}
	}
}

// number returns the value of a field that is a number of pods or the like; def: it is not set.
func (s *stream) number(of *node, key string, def int64) int64 {
	c := of.child(key)
	if c == nil {
		return def
	}
	n, is := c.value.(int64)
	if !is || n < 0 {
		s.fail(c, "must be an integer, greater than or equal to 0")
		return def
	}
	return n
}

// replicas returns the number of pods of an object.
func (s *stream) replicas(x *object, of *node, key string) int {
	n := s.number(of, key, 1)
	limit := cmp.Or(s.o.MaxReplicas, defaultMaxReplicas)
	if n > int64(limit) {
		hint := "set pods.maxReplicas in podstead.toml, or a smaller number"
		p := problemAt(of.child(key), fmt.Sprintf("must be at most %d: all pods run on one host", limit), hint)
		s.problems = append(s.problems, p)
		return 0
	}
	if n == 0 {
		w := warnAt(of.child(key), x.kind+" "+quote(x.name)+" has no pods")
		s.problems = append(s.problems, w)
	}
	return int(n)
}

// replica adds a pod of an object from its template. The template is not changed.
func (s *stream) replica(x *object, template *node, name string, change func(root *node)) {
	copied := template.clone()
	copied.parent, copied.depth = template.parent, template.depth
	root, problems := s.o.flatten(copied, []string{"metadata", "spec"})
	at := cmp.Or(x.n.child("metadata").child("name"), x.n)
	root.remove("name")
	root.put("name", &node{kind: kindString, value: name, at: at.at, keyAt: at.keyAt, segment: ".metadata.name"})
	root.child("name").segment = at.path()
	if change != nil {
		change(root)
	}
	s.add(source{root: root, problems: problems, changed: true}, x)
}

// annotate sets an annotation, or a label.
func annotate(root *node, list, key, value string) {
	table := root.child(list)
	if table == nil {
		table = newTable(nil)
		table.at, table.keyAt = root.at, root.at
		root.put(list, table)
	}
	if table.kind == kindTable {
		table.replace(key, kindString, value)
	}
}

// rolled marks a pod as one of several, and sets what its object says about updates. As a Deployment, the pod keeps a definition that does
// not become ready.
func rolled(root *node, x *object, of *node, count int) {
	if count > 1 {
		annotate(root, "annotations", AnnotationReplicaOf, x.kind+"/"+x.name)
	}
	minReady, deadline := of.child("minReadySeconds"), of.child("progressDeadlineSeconds")
	if minReady == nil && deadline == nil || root.child("update") != nil {
		return
	}
	const defaultDeadline int64 = 600
	update := newTable(nil)
	update.at, update.keyAt = of.at, of.keyAt
	add := func(key string, from *node, def int64) {
		c := &node{kind: kindInteger, value: def, at: of.at, keyAt: of.keyAt}
		if from != nil {
			c = from.clone()
		}
		update.add(key, c)
		c.segment = ""
		if from != nil {
			c.segment = from.path()
		}
	}
	add("minReadySeconds", minReady, 0)
	add("readyWithinSeconds", deadline, defaultDeadline)
	update.replace("onFailure", kindString, string(OnFailureKeep))
	root.put("update", update)
}

// strategy reports a strategy for updates that is none of pods on one host.
func (s *stream) strategy(n *node) {
	if n == nil {
		return
	}
	if kind := n.child("type"); kind != nil && kind.value == "OnDelete" {
		s.lose(kind, "pods are updated when their definition changes", "")
	}
	if partition := n.child("rollingUpdate").child("partition"); partition != nil && partition.value != int64(0) {
		s.lose(partition, "all pods have the same definition", "")
	}
}

func (s *stream) deployment(x *object) {
	of, template, ok := s.workload(x, "replicas", "strategy", "minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit",
		"paused")
	if !ok {
		return
	}
	s.selectsOwn(of, template)
	s.strategy(of.child("strategy"))
	if paused := of.child("paused"); paused != nil && paused.value == true {
		s.lose(paused, "updates are not paused", "")
	}
	count := s.replicas(x, of, "replicas")
	for i := range count {
		s.replica(x, template, fmt.Sprintf("%s-%d", x.name, i), func(root *node) { rolled(root, x, of, count) })
	}
	s.samePorts(template, count)
}

func (s *stream) daemonSet(x *object) {
	of, template, ok := s.workload(x, "updateStrategy", "minReadySeconds", "revisionHistoryLimit")
	if !ok {
		return
	}
	s.selectsOwn(of, template)
	s.strategy(of.child("updateStrategy"))
	s.replica(x, template, x.name, func(root *node) { rolled(root, x, of, 1) })
}

// samePorts reports host ports that several pods of a template cannot have. In a cluster they run on several hosts, or wait.
func (s *stream) samePorts(template *node, count int) {
	if count < 2 {
		return
	}
	for _, c := range items(template.child("spec").child("containers")) {
		for _, p := range items(c.child("ports")) {
			if host := p.child("hostPort"); host != nil && host.value != int64(0) {
				s.fail(host, fmt.Sprintf("%d pods of one host cannot have the same hostPort", count))
			}
		}
	}
	if n := template.child("spec").child("hostNetwork"); n != nil && n.value == true {
		w := warnAt(n, fmt.Sprintf("%d pods share the ports of the host", count))
		s.problems = append(s.problems, w)
	}
}

// statefulSet adds the pods of a StatefulSet. Each has its own claims and, unless podManagementPolicy is Parallel, waits for the one
// before.
func (s *stream) statefulSet(x *object) {
	of, template, ok := s.workload(x, "replicas", "serviceName", "volumeClaimTemplates", "podManagementPolicy", "updateStrategy",
		"revisionHistoryLimit", "minReadySeconds", "persistentVolumeClaimRetentionPolicy", "ordinals")
	if !ok {
		return
	}
	s.selectsOwn(of, template)
	s.strategy(of.child("updateStrategy"))
	for _, c := range items(of.child("persistentVolumeClaimRetentionPolicy")) {
		if c.value == "Delete" {
			s.lose(c, "volumes are kept until podstead volume rm deletes them", "")
		}
	}
	var claims []string
	for _, c := range items(of.child("volumeClaimTemplates")) {
		name := textOf(c.child("metadata").child("name"))
		if name == "" {
			s.fail(c, "metadata.name: Required value")
			continue
		}
		s.claim(&object{n: c, kind: "PersistentVolumeClaim", name: name})
		claims = append(claims, name)
	}
	first := s.number(of.child("ordinals"), "start", 0)
	count := s.replicas(x, of, "replicas")
	ordered := textOf(of.child("podManagementPolicy")) != "Parallel"
	for i := range count {
		ordinal := strconv.FormatInt(first+int64(i), 10)
		name := x.name + "-" + ordinal
		s.replica(x, template, name, func(root *node) {
			rolled(root, x, of, count)
			annotate(root, "labels", "apps.kubernetes.io/pod-index", ordinal)
			annotate(root, "labels", "statefulset.kubernetes.io/pod-name", name)
			for _, claim := range claims {
				root.claim(claim, claim+"-"+name)
			}
			if service := of.child("serviceName"); textOf(service) != "" && root.child("subdomain") == nil {
				root.put("subdomain", &node{kind: kindString, value: service.value, at: service.at, keyAt: service.keyAt})
				root.child("subdomain").segment = service.path()
			}
			if ordered && i > 0 {
				root.waitFor("pod:" + x.name + "-" + strconv.FormatInt(first+int64(i)-1, 10) + ":ready")
			}
		})
	}
	s.samePorts(template, count)
}

// claim sets the volume of a name to a claim. As in a StatefulSet, it takes precedence.
func (root *node) claim(name, claim string) {
	volumes := root.list("volumes")
	if volumes == nil {
		return
	}
	volumes.items = slices.DeleteFunc(volumes.items, func(v *node) bool { return textOf(v.child("name")) == name })
	v, of := newTable(nil), newTable(nil)
	for _, n := range []*node{v, of} {
		n.at, n.keyAt = root.at, root.at
	}
	volumes.appendItem(v)
	v.replace("name", kindString, name)
	of.replace("claimName", kindString, claim)
	v.add("persistentVolumeClaim", of)
}

// waitFor adds a condition for the start of a pod.
func (root *node) waitFor(condition string) {
	if list := root.list("waitFor"); list != nil {
		list.appendItem(&node{kind: kindString, value: condition, at: root.at, keyAt: root.at})
	}
}

// list returns an array of a pod, which is added if it is not set; nil: the field is no array.
func (root *node) list(key string) *node {
	n := root.child(key)
	if n == nil {
		n = &node{kind: kindArray, at: root.at, keyAt: root.at}
		root.put(key, n)
		n.segment = "." + key
	}
	if n.kind != kindArray {
		return nil
	}
	return n
}

// job adds the pods of a Job: one for each completion. Those beyond parallelism wait for an earlier one.
func (s *stream) job(x *object) {
	of, template, ok := s.workload(x, "completions", "parallelism", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished",
		"completionMode", "suspend", "podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "maxFailedIndexes", "manualSelector",
		"podReplacementPolicy", "managedBy")
	if !ok {
		return
	}
	if ttl := of.child("ttlSecondsAfterFinished"); ttl != nil {
		s.problems = append(s.problems, warnAt(ttl, ignored+"finishedPodTTL of the host is the time for all pods"))
	}
	for _, key := range []string{"successPolicy", "backoffLimitPerIndex", "maxFailedIndexes"} {
		if c := of.child(key); c != nil {
			s.lose(c, "each pod of a Job succeeds or fails for itself", "")
		}
	}
	retries := s.number(of, "backoffLimit", 6)
	if c := of.child("backoffLimit"); c != nil && retries > 0 {
		w := warnAt(c, "a pod that fails is restarted without a limit")
		w.Hint = "set activeDeadlineSeconds in the pod"
		s.problems = append(s.problems, w)
	}
	if suspend := of.child("suspend"); suspend != nil && suspend.value == true {
		s.problems = append(s.problems, warnAt(suspend, "Job "+quote(x.name)+" has no pods: it is suspended"))
		return
	}
	parallelism := int(min(s.number(of, "parallelism", 1), 1<<20))
	key := "completions"
	if of.child(key) == nil {
		key = "parallelism"
	}
	count := s.replicas(x, of, key)
	indexed := textOf(of.child("completionMode")) == "Indexed"
	rule := s.failurePolicy(of.child("podFailurePolicy"))
	for i := range count {
		name := x.name
		if count > 1 || indexed {
			name = fmt.Sprintf("%s-%d", x.name, i)
		}
		s.replica(x, template, name, func(root *node) {
			s.jobPod(root, retries, rule)
			if deadline := of.child("activeDeadlineSeconds"); deadline != nil && root.child("activeDeadlineSeconds") == nil {
				c := deadline.clone()
				c.segment = ""
				root.put("activeDeadlineSeconds", c)
				c.segment = deadline.path()
			}
			if indexed {
				root.jobIndex("JOB_COMPLETION_INDEX", strconv.Itoa(i))
			}
			if parallelism > 0 && i >= parallelism {
				root.waitFor(fmt.Sprintf("pod:%s-%d:succeeded", x.name, i-parallelism))
			}
		})
	}
}

// jobPod sets the restart policy of the pod of a Job. A Job replaces a pod that failed, up to its limit; here its containers are restarted.
func (s *stream) jobPod(root *node, retries int64, rule *node) {
	policy := root.child("restartPolicy")
	if textOf(policy) != string(RestartNever) && textOf(policy) != string(RestartOnFailure) {
		s.fail(cmp.Or(policy, root), `spec.restartPolicy: Required value: must be "OnFailure" or "Never" in a Job`)
		return
	}
	next := RestartOnFailure
	if retries == 0 {
		next = RestartNever
	}
	root.replace("restartPolicy", kindString, string(next))
	for _, c := range items(root.child("containers")) {
		if rule == nil || c.kind != kindTable || retries == 0 {
			continue
		}
		c.replace("restartPolicy", kindString, string(RestartNever))
		list := &node{kind: kindArray, at: rule.at, keyAt: rule.keyAt}
		c.remove("restartPolicyRules")
		c.add("restartPolicyRules", list)
		list.appendItem(rule.clone())
	}
}

// failurePolicy returns the rule by which containers are restarted that have not failed for good; nil: all of them are. A policy with one
// rule for exit codes can be kept. Those for conditions, such as DisruptionTarget, never apply: pods are not disrupted.
func (s *stream) failurePolicy(policy *node) *node {
	var codes *node
	for _, rule := range items(policy.child("rules")) {
		exit, action := rule.child("onExitCodes"), textOf(rule.child("action"))
		switch {
		case exit == nil:
			continue
		case codes != nil || action != "FailJob" && action != "FailIndex" || exit.child("containerName") != nil:
			s.lose(rule, "only one rule with onExitCodes and the action FailJob is supported", "")
			continue
		}
		codes = exit
	}
	if codes == nil {
		return nil
	}
	operator, values := "NotIn", []int64{}
	if textOf(codes.child("operator")) == "NotIn" {
		operator = "In"
	}
	for _, v := range items(codes.child("values")) {
		if n, is := v.value.(int64); is && n != 0 {
			values = append(values, n)
		}
	}
	if operator == "NotIn" {
		values = append(values, 0) // a container that succeeds is not restarted
	}
	rule, exit, list := newTable(nil), newTable(nil), &node{kind: kindArray, at: codes.at, keyAt: codes.keyAt}
	for _, n := range []*node{rule, exit} {
		n.at, n.keyAt = codes.at, codes.keyAt
	}
	rule.replace("action", kindString, "Restart")
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

// cronJob reads a CronJob. Its schedule is not kept: run starts its job once, and nothing else starts it.
func (s *stream) cronJob(x *object) {
	s.problems = append(s.problems, s.metadata(x, []string{"spec"})...)
	of := x.n.child("spec")
	s.fieldsAre(of, "schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "jobTemplate",
		"successfulJobsHistoryLimit", "failedJobsHistoryLimit")
	template := of.child("jobTemplate")
	if textOf(of.child("schedule")) == "" || template.child("spec") == nil {
		s.fail(cmp.Or(of, x.n), "CronJob: spec.schedule and spec.jobTemplate.spec: Required value")
		return
	}
	before := len(s.pods)
	jobTable := newTable(nil)
	jobTable.at, jobTable.keyAt = x.n.at, x.n.at
	jobTable.add("metadata", x.n.child("metadata"))
	jobTable.add("spec", template.child("spec"))
	x.n.child("metadata").parent, template.child("spec").parent = x.n, template
	s.job(&object{n: jobTable, kind: "Job", name: x.name})
	message := "the schedule is not used: the job runs once, now"
	if !s.o.RunCronJobs {
		s.pods = s.pods[:before]
		s.waiting++
		message = "the schedule is not used: no pod is started"
	}
	w := warnAt(of.child("schedule"), message)
	w.Hint = scheduleHint
	s.problems = append(s.problems, w)
}
