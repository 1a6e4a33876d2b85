package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// defaultMaxReplicas is the maximum number of pods of one object.
const defaultMaxReplicas = 16

// MaxReplicas is the largest value of the setting pods.maxReplicas. It is the limit where the setting is not known.
const MaxReplicas = maxParts

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
	template, ok = s.template(x, of, keys...)
	return of, template, ok
}

// template returns the template of the pods in the spec of an object; ok is false if it has none, which is reported.
func (s *stream) template(x *object, of *node, keys ...string) (template *node, ok bool) {
	template = of.child("template")
	switch {
	case len(dnsSubdomain(x.name)) > 0:
		at := cmp.Or(x.n.child("metadata").child("name"), x.n)
		s.fail(at, "Required value: the pods of a "+x.kind+" are named after it, which must be a DNS subdomain")
		return nil, false
	case of == nil || of.kind != kindTable || template == nil || template.kind != kindTable:
		s.fail(cmp.Or(template, of, x.n), "spec.template: Required value: must be the metadata and the spec of a pod")
		return nil, false
	}
	s.fieldsAre(of, append(keys, "template", "selector")...)
	return template, true
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
		s.empty = true
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
