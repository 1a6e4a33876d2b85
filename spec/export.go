package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// InputFile is a pod file that is converted together with others.
type InputFile struct {
	Name string // as problems have it; relative paths in the file are relative to its directory
	Text []byte
}

// Manifests returns the pods of files as Kubernetes objects in YAML, for a cluster: a Pod for each of them, a CronJob if it has a schedule,
// a Job if it has fields of a Job, and the ConfigMaps, PersistentVolumeClaims, Services and ServiceAccounts that they need, each kind in
// the order of the pods. Secrets are written, with their values, only if secrets is true. Comments of TOML are kept. What a cluster has no
// equivalent for is an error, with AllowLoss a warning. Env files are read. The text is nil if one of the problems is an error.
func (o Options) Manifests(files []InputFile, secrets bool) ([]byte, Problems) {
	o.read, o.forCluster = readEnvFile, true
	x := &exporter{o: &o, secrets: secrets, owners: map[string]owner{}, claims: map[string]string{}}
	var problems Problems
	var after []string
	for _, f := range files {
		parts, found := o.parts(f.Name, f.Text)
		problems = append(problems, found...)
		if len(found.Errors()) > 0 || len(parts) == 0 {
			continue
		}
		whole := newTable(nil)
		for i := range parts {
			whole.items = append(whole.items, parts[i].root)
		}
		if parts[0].format == formatTOML {
			attach(whole, f.Text, commentsOf(f.Text))
			after = append(after, whole.after...)
			if root := parts[0].root; len(parts) == 1 && len(root.items) > 0 {
				first := root.items[0] // the comment at the beginning of the file
				root.above, first.above = append(root.above, first.above...), nil
			}
		}
		for i := range parts {
			x.pod(&parts[i])
		}
		problems = append(problems, x.problems.in(f.Name)...)
		x.problems = nil
	}
	problems = append(problems, x.services()...)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	text, err := x.write(after)
	if err != nil { // the encoder takes every tree of this package
		return nil, append(problems, Problems{{Line: 1, Column: 1, Message: printable(err.Error())}}.in(files[0].Name)...)
	}
	return text, problems
}

// exportedKinds are the kinds of objects that are written, in their order.
var exportedKinds = [][]string{
	{"ServiceAccount"}, {"ConfigMap"}, {"Secret"}, {"PersistentVolumeClaim"}, {"Service"}, {"Pod", "Job", "CronJob"},
}

// exporter collects the objects of pods.
type exporter struct {
	o        *Options
	secrets  bool
	problems Problems // of the file that is converted
	objects  []*node
	owners   map[string]owner // of objects, by kind and name
	claims   map[string]string
	pods     []exportedPod
}

// owner is the pod that an object is written for.
type owner struct {
	pod  string
	data map[string]string
}

// exportedPod is a pod of the output.
type exportedPod struct {
	pod  *Pod
	root *node
	file string
}

// write returns the text of the objects.
func (x *exporter) write(after []string) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, kinds := range exportedKinds {
		for _, n := range x.objects {
			if !slices.Contains(kinds, textOf(n.items[1])) {
				continue
			}
			document := yamlNode(n)
			document.HeadComment = yamlComments(n, n.beside)
			if err := e.Encode(document); err != nil {
				return nil, err
			}
		}
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	for _, c := range after {
		b.WriteString(yamlComment(c) + "\n")
	}
	return b.Bytes(), nil
}

// keyed returns a value as that of a key, without its place in a file.
func keyed(key string, n node) *node {
	n.key = key
	return &n
}

func keyedText(key, value string) *node { return keyed(key, node{kind: kindString, value: value}) }

func keyedTable(key string, items ...*node) *node {
	return keyed(key, node{kind: kindTable, items: items})
}

func keyedArray(key string, items ...*node) *node {
	return keyed(key, node{kind: kindArray, items: items})
}

// add adds an object of the API group v1, unless it is there.
func (x *exporter) add(kind, name string, of *exportedPod, data map[string]string, fields ...*node) bool {
	key := kind + "/" + name
	if _, exists := x.owners[key]; exists {
		return false
	}
	x.owners[key] = owner{of.pod.Name, data}
	x.objects = append(x.objects, keyedTable("", append([]*node{
		keyedText("apiVersion", "v1"), keyedText("kind", kind), keyedTable("metadata", keyedText("name", name)),
	}, fields...)...))
	return true
}

// ownField is a field of Podstead that a cluster has no equivalent for.
type ownField struct {
	why, hint string
	harmless  bool // the pod behaves the same without it
}

var ownFields = map[reflect.Type]map[string]ownField{
	reflect.TypeFor[Pod](): {
		"imageArchives": {"a cluster pulls images from registries", "push the images to a registry, or import them on each node", true},
		"job":           {"each pod is written as a Job of its own", "write a Job with completions for the pods", false},
		"keepID":        {"pods of a cluster do not run as a user of the node", "make the files accessible to runAsUser", false},
		"onUnhealthy":   {"a pod that stays unready is not restarted", "set livenessProbe in its containers", false},
		"pidsLimit":     {"all pods of a node have the same limit of processes", "limit them in the configuration of the kubelet", false},
		"restartBackoff": {
			"all containers of a node have the same back-off", "", false,
		},
		"shmSize": {
			"/dev/shm of a container has 64 MiB", "mount an emptyDir volume with medium Memory and sizeLimit at /dev/shm", false,
		},
		"systemd":               {"units of a host do not order pods of a cluster", "", false},
		"unhealthyAfterSeconds": {"it belongs to onUnhealthy", "", true},
		"update":                {"a Pod has no updates and no rollback", "write a Deployment with the Pod as its template", false},
		"waitFor": {
			"pods of a cluster start in any order", "retry connections in the program, or wait in an entry of initContainers", false,
		},
	},
	reflect.TypeFor[Schedule](): {"jitterSeconds": {"runs of a CronJob have no delay", "", false}},
	reflect.TypeFor[Container](): {
		"devices": {
			"a cluster has devices of a device plugin", "request them in resources.limits, such as example.com/serial = 1", false,
		},
		"init": {
			"containers of a cluster have no init process", "set shareProcessNamespace, or run an init program of the image", false,
		},
		"maxRestarts": {
			"containers of a cluster are restarted without a maximum", "write a Job with backoffLimit, if the program completes", false,
		},
		"restartBackoff": {"all containers of a node have the same back-off", "", false},
		"ulimits": {
			"the container runtime of a node sets the limits of processes",
			"lower a limit in the command, such as sh -c \"ulimit -n 1024; exec PROGRAM\"", false,
		},
	},
}

// loss reports a value that the output does not have.
func (x *exporter) loss(n *node, f ownField) {
	if f.harmless {
		w := warnAt(n, lost+f.why)
		w.Hint = f.hint
		x.problems = append(x.problems, w)
		return
	}
	hint := f.hint
	if hint != "" {
		hint += ", or accept the loss with --allow-loss"
	}
	x.problems = append(x.problems, x.o.loss(n, f.why, hint))
}

// own removes the fields of a table that only Podstead has, and reports them.
func (x *exporter) own(n *node, t reflect.Type) {
	n.items = slices.DeleteFunc(n.items, func(c *node) bool {
		f, is := ownFields[t][c.key]
		if is {
			if c.key == "update" && textOf(c.child("onFailure")) == string(OnFailureKeep) {
				f.harmless = true
			}
			x.loss(c, f)
			delete(n.index, c.key)
		}
		return is
	})
}

// pod adds a pod, and the objects that it needs. The tree of the part becomes that of the object.
func (x *exporter) pod(p *Part) {
	root := p.root
	out := exportedPod{pod: p.Pod, root: root, file: p.file}
	if x.owners["Pod/"+p.Name].pod != "" {
		x.problems = append(x.problems, problemAt(cmp.Or(root.child("name"), root), "Duplicate value: pod "+quote(p.Name)+
			" is already defined in another file", ""))
		return
	}
	x.own(root, reflect.TypeFor[Pod]())
	if schedule := root.child("schedule"); schedule != nil {
		x.own(schedule, reflect.TypeFor[Schedule]())
		if schedule.child("timeZone") == nil {
			w := warnAt(schedule, "a cluster uses the time zone of its kube-controller-manager")
			w.Hint = "set timeZone"
			x.problems = append(x.problems, w)
		}
	}
	x.annotations(root.child("annotations"))
	stopSignal := false
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			x.own(c, reflect.TypeFor[Container]())
			if signal := c.child("lifecycle").child("stopSignal"); signal != nil {
				stopSignal = true
				w := warnAt(signal, "a cluster ignores it unless it has the feature ContainerStopSignals")
				w.Hint = "enable the feature gate in the cluster, or stop the program with preStop"
				x.problems = append(x.problems, w)
			}
		}
	}
	if stopSignal && root.child("os") == nil {
		root.put("os", keyedTable("", keyedText("name", Linux)))
	}
	x.wholeSeconds(root, reflect.TypeFor[Pod]())
	x.volumes(&out)
	x.values(&out)
	if account := root.child("serviceAccountName"); p.Pod.ServiceAccount() != defaultServiceAccount {
		if x.add("ServiceAccount", p.Pod.ServiceAccount(), &out, nil) {
			x.problems = append(x.problems, warnAt(account, "the ServiceAccount is written without permissions"))
		}
	}
	if root.child("name") == nil {
		root.items = slices.Insert(root.items, 0, keyedText("name", p.Name))
	}
	x.owners["Pod/"+p.Name] = owner{p.Name, nil}
	x.pods = append(x.pods, out)
}

// annotations reports those that Podstead follows. They are kept.
func (x *exporter) annotations(n *node) {
	for _, c := range items(n) {
		if c.key == LogDriverAnnotation || c.key == LogRateAnnotation || strings.HasPrefix(c.key, logRateContainerPrefix) {
			x.problems = append(x.problems, warnAt(c, "a cluster ignores it"))
		}
	}
}

// wholeSeconds rounds up times with fractions of seconds, which the API does not have.
func (x *exporter) wholeSeconds(n *node, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t = t.Elem(); n.kind == kindArray {
			for _, c := range n.items {
				x.wholeSeconds(c, t)
			}
			return
		}
	}
	f, isFloat := n.value.(float64)
	switch {
	case t == reflect.TypeFor[Seconds]() && isFloat:
		whole := int64(math.Ceil(f))
		if float64(whole) != f {
			x.problems = append(x.problems, warnAt(n, fmt.Sprintf("lost: a cluster has whole seconds, %d is written", whole)))
		}
		n.kind, n.value, n.text = kindInteger, whole, ""
	case t.Kind() == reflect.Struct && n.kind == kindTable:
		for name, i := range fieldsOf(t) {
			if c := n.child(name); c != nil {
				x.wholeSeconds(c, t.Field(i).Type)
			}
		}
	}
}

// volumes makes paths of the host absolute, and adds a PersistentVolumeClaim for each volume of that kind.
func (x *exporter) volumes(p *exportedPod) {
	for i, v := range items(p.root.child("volumes")) {
		of := &p.pod.Volumes[i]
		if path := v.child("hostPath").child("path"); path != nil && of.HostPath != nil && textOf(path) != of.HostPath.Path {
			w := warnAt(path, "the nodes of a cluster need "+quote(of.HostPath.Path))
			w.Hint = "copy it to the nodes, or set configMap for a few small files"
			x.problems = append(x.problems, w)
			path.value = of.HostPath.Path
		}
		claim := v.child("persistentVolumeClaim").child("claimName")
		if claim == nil {
			continue
		}
		name := of.PersistentVolumeClaim.ClaimName
		if first := x.claims[name]; first != "" && first != p.pod.Name {
			w := warnAt(claim, "pod "+quote(first)+" uses it too, so both must run on the same node")
			w.Hint = "set accessModes of the PersistentVolumeClaim to ReadWriteMany, if the storage class has it"
			x.problems = append(x.problems, w)
		}
		x.claims[name] = p.pod.Name
		spec := keyedTable("spec",
			keyedArray("accessModes", keyedText("", "ReadWriteOnce")),
			keyedTable("resources", keyedTable("requests", keyedText("storage", claimSize))))
		if x.add("PersistentVolumeClaim", name, p, nil, spec) {
			w := warnAt(claim, "a PersistentVolumeClaim has a size, "+claimSize+" is written")
			w.Hint = "set spec.resources.requests.storage of the PersistentVolumeClaim"
			x.problems = append(x.problems, w)
		}
	}
}

// claimSize is the size of PersistentVolumeClaims: volumes of a host have none.
const claimSize = "1Gi"

// yamlComment returns a comment of TOML, without characters that end a line of YAML.
func yamlComment(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && (unicode.IsControl(r) || !unicode.IsPrint(r)) {
			return ' '
		}
		return r
	}, text)
}

// yamlComments returns the comments above a value as yaml.v3 has them.
func yamlComments(n *node, more ...string) string {
	var lines []string
	for _, c := range append(slices.Clone(n.above), more...) {
		if c != "" {
			lines = append(lines, yamlComment(c))
		}
	}
	return strings.Join(lines, "\n")
}
