package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// object is a Kubernetes object of a file.
type object struct {
	n                   *node
	kind, version, name string
	file                string // the other file that has it; empty: this one
}

// stream collects the objects of a file.
type stream struct {
	o        *Options
	byPodman bool // podman generate kube has written the file
	problems Problems
	pods     []source
	several  bool // the file has more than a Pod
	nodes    int  // values of all pods
	tooLarge bool // a limit of all pods is exceeded, which is reported
	empty    bool // an object has no pods because it requests none
	objects  []object
	// configMaps and secrets are the entries of those lists of a pod file, by name.
	configMaps, secrets map[string]*node
	foreign             map[*node]string // the file of an entry, if it is another one
	ambiguous           map[*node]string // a second file that has other values for an entry of another file
}

// readStream reads Kubernetes objects in YAML or JSON, in any order: Pods and what becomes pods, and what pods use. The error is a
// [*syntaxError].
func readStream(data []byte, o *Options) ([]source, Problems, error) {
	documents, err := yamlDocuments(data)
	if err != nil {
		err.at = blockErrorAt(data, err)
		return nil, nil, err
	}
	s := &stream{
		o: o, byPodman: createdByPodman.Match(data), configMaps: map[string]*node{}, secrets: map[string]*node{},
		foreign: map[*node]string{}, ambiguous: map[*node]string{},
	}
	r := &yamlReader{}
	for _, document := range documents {
		n := &node{}
		if err := r.read(n, document); err != nil {
			return nil, nil, err
		}
		if err := s.collect(n, object{}, len(documents) == 1); err != nil {
			return nil, nil, err
		}
	}
	s.collectOthers()
	s.convert()
	if len(s.pods) == 0 && len(s.problems.Errors()) == 0 && o.Others == nil {
		at := position{1, 1}
		if len(s.objects) > 0 {
			at = s.objects[0].n.at
		}
		return nil, nil, &syntaxError{at: at, message: "file defines no pod", hint: s.noPodHint()}
	}
	return s.pods, s.problems, nil
}

// collect adds the objects of a document, which is an object or a list of them. The items of a list may omit what the list says.
func (s *stream) collect(n *node, list object, alone bool) *syntaxError {
	if n.kind != kindTable {
		return &syntaxError{at: n.at, message: "not a Kubernetes object: must be a mapping, found " + n.kind.String()}
	}
	x := object{n: n, kind: cmp.Or(textOf(n.child("kind")), list.kind), version: cmp.Or(textOf(n.child("apiVersion")), list.version)}
	if kind := strings.TrimSuffix(x.kind, "List"); kind != x.kind && list.n == nil {
		elements := n.child("items")
		if elements == nil || elements.kind != kindArray {
			return &syntaxError{at: n.at, message: "items: must be an array of objects"}
		}
		s.several = true
		of := object{n: n}
		if kind != "" {
			of.kind, of.version = kind, x.version
		}
		for _, item := range elements.items {
			if err := s.collect(item, of, false); err != nil {
				return err
			}
		}
		return nil
	}
	if err := checkObject(&x, n); err != nil {
		return err
	}
	if s.isPodmans(n) {
		s.podman(&x)
	}
	x.name = textOf(n.child("metadata").child("name"))
	if !alone || x.kind != "Pod" {
		s.several = true
	}
	s.objects = append(s.objects, x)
	return nil
}

// textOf returns the text of a string; empty: it is none.
func textOf(n *node) string {
	if n == nil || n.kind != kindString {
		return ""
	}
	text, _ := n.value.(string) // by the kind
	return text
}

// checkObject reports what is not an object of a kind that is converted.
func checkObject(x *object, n *node) *syntaxError {
	k, known := kinds[x.kind]
	switch {
	case x.kind == "" && n.child("kind") != nil:
		return &syntaxError{at: n.child("kind").at, message: "kind: must be a string"}
	case x.kind == "" && n.child("services") != nil:
		return &syntaxError{at: n.at, message: "not a Pod manifest, but a Compose file", hint: servicesHint}
	case isChart(n):
		return &syntaxError{
			at: n.at, message: "not a Pod manifest, but a Helm chart",
			hint: "pass what Helm writes, as in helm template CHART | podstead apply -",
		}
	case isKustomization(x.kind, x.version):
		return &syntaxError{
			at: n.at, message: "not a Pod manifest, but a configuration of Kustomize",
			hint: "pass what it writes, as in kubectl kustomize DIR | podstead apply -",
		}
	case x.kind == "":
		return &syntaxError{
			at: n.at, message: "not a Pod manifest: kind: Required value", hint: "begin the manifest with apiVersion: v1 and kind: Pod",
		}
	case !known:
		return nil // reported by convert
	case !slices.Contains(k.versions, x.version):
		return &syntaxError{
			at:      cmp.Or(n.child("apiVersion"), n).at,
			message: fmt.Sprintf("not a %s manifest: apiVersion must be %s", x.kind, k.versions[0]),
		}
	}
	return nil
}

// kindOf is how objects of a kind are converted.
type kindOf struct {
	versions []string
	convert  func(*stream, *object)
	// after makes it wait for the objects that become pods.
	after bool
}

var kinds = map[string]kindOf{
	"Pod":                   {versions: []string{"v1"}, convert: (*stream).pod},
	"ConfigMap":             {versions: []string{"v1"}, convert: (*stream).configMap},
	"Secret":                {versions: []string{"v1"}, convert: (*stream).secret},
	"PersistentVolumeClaim": {versions: []string{"v1"}, convert: (*stream).claim},
	"Service":               {versions: []string{"v1"}, convert: (*stream).service, after: true},
	"Deployment":            {versions: []string{"apps/v1"}, convert: (*stream).deployment},
	"ReplicaSet":            {versions: []string{"apps/v1"}, convert: (*stream).deployment},
	"StatefulSet":           {versions: []string{"apps/v1"}, convert: (*stream).statefulSet},
	"DaemonSet":             {versions: []string{"apps/v1"}, convert: (*stream).daemonSet},
	"Job":                   {versions: []string{"batch/v1"}, convert: (*stream).job},
	"CronJob":               {versions: []string{"batch/v1"}, convert: (*stream).cronJob},
}

// convert turns the objects into pods.
func (s *stream) convert() {
	for _, last := range []bool{false, true} {
		for i := range s.objects {
			x := &s.objects[i]
			k, known := kinds[x.kind]
			switch {
			case known && k.after == last && x.file != "":
				s.convertOther(x, k.convert)
			case known && k.after == last:
				k.convert(s, x)
			case !known && !last:
				s.unknownKind(x)
			}
		}
	}
	for i := range s.pods {
		dropOwnLabels(s.pods[i].root)
		s.addValues(&s.pods[i])
	}
}

// pod adds a Pod.
func (s *stream) pod(x *object) {
	root, problems := s.o.flatten(x.n, manifestKeys)
	s.add(source{root: root, problems: problems, changed: s.several && isOutput(x.n.child("metadata"))}, x)
}

// add adds a pod, unless there are too many.
func (s *stream) add(p source, x *object) {
	switch {
	case s.tooLarge:
	case len(s.pods) >= maxParts:
		s.tooLarge = true
		s.fail(x.n, fmt.Sprintf("file defines more than %d pods", maxParts))
	case s.holds(p.root.count(), x.n):
		s.pods = append(s.pods, p)
	}
}

// holds reports whether the pods may have further values. The error about too many is that of n.
func (s *stream) holds(values int, n *node) bool {
	s.nodes += values
	if s.nodes > maxPartNodes && !s.tooLarge {
		s.tooLarge = true
		s.fail(n, fmt.Sprintf("the pods of the file have more than %d values, including those of config maps and secrets", maxPartNodes))
	}
	return !s.tooLarge
}

// count returns the number of values.
func (n *node) count() int {
	total := 1
	for _, c := range n.items {
		total += c.count()
	}
	return total
}

// fail adds an error about the file.
func (s *stream) fail(n *node, message string) {
	s.problems = append(s.problems, problemAt(n, message, ""))
}

// lose adds an error about what does not behave as in a cluster, or a warning if the user accepts that.
func (s *stream) lose(n *node, message, hint string) {
	p := s.o.loss(n, message, hint)
	p.Line, p.Column = n.at.line, n.at.column
	s.problems = append(s.problems, p)
}

// loss returns the error about what does not behave as it did, or the warning if the user accepts that.
func (o *Options) loss(n *node, message, hint string) Problem {
	p := problemAt(n, "not supported: "+message, cmp.Or(hint, "accept it with --allow-loss"))
	if o.AllowLoss {
		p.Message, p.Warning, p.Hint = lost+message, true, ""
	}
	return p
}

// withoutMeaning are kinds that only matter in a cluster.
var withoutMeaning = map[string]string{
	"ClusterRole": noAccounts.why, "ClusterRoleBinding": noAccounts.why, "Role": noAccounts.why, "RoleBinding": noAccounts.why,
	"ServiceAccount": noAccounts.why,
	"Namespace":      `the only namespace is "default"`, "PodDisruptionBudget": "pods are not evicted by requests",
	"PriorityClass": noPriority.why, "StorageClass": "there are no storage classes", "Event": "events are not defined by files",
}

// unknownKind reports an object of a kind that is not converted.
func (s *stream) unknownKind(x *object) {
	at := cmp.Or(x.n.child("kind"), x.n)
	if why := withoutMeaning[x.kind]; why != "" {
		w := warnAt(at, ignored+why)
		w.Path = x.kind
		s.problems = append(s.problems, w)
		return
	}
	if x.kind == "RuntimeClass" {
		w := warnAt(at, "has no effect: a class is an element of engine.runtimeClasses in podstead.toml")
		w.Path = x.kind
		s.problems = append(s.problems, w)
		return
	}
	if hint := kindHints[x.kind]; hint != "" {
		s.lose(at, "there is no "+clip(x.kind)+" on one host", hint+", or accept the loss with --allow-loss")
		return
	}
	s.lose(at, "there is no "+clip(x.kind)+" on one host", "")
}

// kindHints tell what does the work of objects of other kinds.
var kindHints = map[string]string{
	"HorizontalPodAutoscaler": "set replicas",
	"Ingress":                 "run a proxy as a pod with hostPort",
	"NetworkPolicy":           "limit access with hostIP of ports, or with the firewall of the host",
	"PersistentVolume":        "set hostPath in the volume of the pod",
	"PodTemplate":             templateHint + "template",
	"ReplicationController":   "write a Deployment with its template",
}

const templateHint = `write a Pod with the metadata and the spec of `

// noPodHint tells what to do with a file that has only what pods use.
func (s *stream) noPodHint() string {
	switch {
	case len(s.objects) == 0:
		return ""
	case s.empty:
		return "delete the pods with podstead delete POD, or stop them with podstead stop POD"
	}
	return "write the pods that use it into the same file"
}

// oneWarning joins the warnings of what has no effect outside of a cluster into one.
func (o *Options) oneWarning(problems Problems) Problems {
	var fields []string
	first := -1
	kept := slices.Clone(problems[:0])
	for _, p := range problems {
		if !p.Warning || o.Verbose || !strings.HasPrefix(p.Message, ignored) || p.Path == "" {
			kept = append(kept, p)
			continue
		}
		if first < 0 || p.Line < kept[first].Line {
			if first >= 0 {
				kept[first] = p
			} else {
				first = len(kept)
				kept = append(kept, p)
			}
		}
		if !slices.Contains(fields, p.Path) {
			fields = append(fields, p.Path)
		}
	}
	if len(fields) > 1 {
		kept[first].Path = ""
		kept[first].Message = ignored + "only a cluster uses " + shortened(fields)
	}
	return kept
}

// shortened lists names, of which it omits those beyond a limit.
func shortened(names []string) string {
	const limit = 6
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), limit)], ", ")
	if more := len(names) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
