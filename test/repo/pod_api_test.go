package repo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/podstead/podstead/spec"
)

// TestPodAPI checks docs/pod-api.md, which has a row for every field of a pod in the version of k8s.io/api that go.mod has. The verdict on
// a field of the spec is what the parser says about a manifest that sets it. A field that the parser does not know, as one of a later
// version, has no verdict: support it, or list it in spec/keys.go. TestStatusFields of package api checks the rows of the status.
//
// This updates the page:
//
//	go test ./test/repo -run TestPodAPI -update
func TestPodAPI(t *testing.T) {
	const name = "docs/pod-api.md"
	want := podAPIPage(t)
	if *update && !t.Failed() {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, readFile(t, name)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./test/repo -run TestPodAPI -update (-want +got):\n%s", name, diff)
	}
}

// The verdicts on fields of the spec.
const (
	honoured   = "honoured"
	warned     = "honoured, with a warning"
	ignored    = "ignored, with a warning"
	refused    = "refused"
	refusedToo = "refused, as in Kubernetes"
)

// neverFilled are the fields of the status that no pod has, with the reason. A field in one of them has no row of its own.
var neverFilled = map[string]string{
	"status.resources.claims":                             "there are no drivers that allocate devices",
	"status.nominatedNodeName":                            "there is no scheduler",
	"status.resize":                                       "deprecated, see the condition `PodResizeInProgress`",
	"status.resourceClaimStatuses":                        "there are no drivers that allocate devices",
	"status.extendedResourceClaimStatus":                  "there are no drivers that allocate devices",
	"status.nodeAllocatableResourceClaimStatuses":         "there are no drivers that allocate devices",
	"status.volumeHealth":                                 "there are no storage drivers that report it",
	"status.conditions[].lastProbeTime":                   "deprecated, and always null in Kubernetes",
	"status.containerStatuses[].allocatedResourcesStatus": "there are no drivers that allocate devices",
	"status.containerStatuses[].resources.claims":         "there are no drivers that allocate devices",
	"status.containerStatuses[].stopSignal":               "of a feature that is off in the version that is followed",
	"status.containerStatuses[].user":                     "`podstead exec POD -- id` prints the user and the groups",
	"status.containerStatuses[].volumeMounts":             "the same as in `spec`, unless `recursiveReadOnly` is `IfPossible`",
	"status.containerStatuses[].state.terminated.signal":  "nor does Kubernetes with containerd: it is in the exit code, plus 128",
}

// podAPIPage returns the page.
func podAPIPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Fields of the Pod API\n\n" +
		"```sh\npodstead validate pod.yaml   # reports the fields that are ignored or refused\n```\n\n" +
		"This page has every field of `PodSpec` and `PodStatus` of the module `k8s.io/api` in the version that Podstead is built with.\n" +
		"It is generated: `go test ./test/repo -run TestPodAPI -update`. [Deviations](design/deviations.md#not-supported) has the " +
		"reasons for\n" +
		"fields that are not honoured, [Test coverage of fields](fields.md) the tests of the others. [Pod file](reference/pod-file.md) " +
		"describes them.\n\n" +
		"## Spec\n\n" +
		"A field has the verdict of the parser on a manifest that sets it:\n\n" +
		"- *" + honoured + "*: it has the effect that it has in Kubernetes.\n" +
		"- *" + warned + "*: the warning is about what it does not do.\n" +
		"- *" + ignored + "*: it only has an effect in a cluster. What a cluster sets itself has the warning with `--verbose` only.\n" +
		"- *" + refused + "*: it would have an effect here that is not supported. It is never ignored.\n" +
		"- *" + refusedToo + "*: the API server refuses it there too.\n\n" +
		"A table that is ignored or refused as a whole has one row. Init containers have the fields of containers.\n\n" +
		"| Field | Verdict |\n| --- | --- |\n")
	list := specVerdicts(t, &manifest{}, "containers[].")
	for _, v := range list {
		b.WriteString("| `spec." + v.path + "` | " + v.verdict + " |\n")
	}
	inits := specVerdicts(t, &manifest{}, "initContainers[].")
	if of, want := under(inits, "initContainers[]."), under(list, "containers[]."); !slices.Equal(of, want) {
		t.Errorf("init containers differ from containers (-containers +init):\n%s", cmp.Diff(want, of, cmp.AllowUnexported(verdictOf{})))
	}
	b.WriteString("\n## Ephemeral containers\n\n" +
		"`podstead debug` adds an ephemeral container to a running pod. These are the fields of `EphemeralContainer`:\n\n" +
		"| Field | Verdict |\n| --- | --- |\n")
	for _, v := range specVerdicts(t, &ephemeral{}, "") {
		b.WriteString("| `" + v.path + "` | " + v.verdict + " |\n")
	}
	b.WriteString("\n## Status\n\n" +
		"A field is *filled* if some pod has it. Statuses of init containers and ephemeral containers have the fields of\n" +
		"`containerStatuses`, `lastState` those of `state`.\n\n" +
		"| Field | |\n| --- | --- |\n")
	known := map[string]bool{}
	for _, path := range statusFields() {
		what := "filled"
		if why := neverFilled[path]; why != "" {
			what, known[path] = "never filled: "+why, true
		}
		b.WriteString("| `" + path + "` | " + what + " |\n")
	}
	for path := range neverFilled {
		if !known[path] {
			t.Errorf("%s is not a field of the status, or in a table that is never filled", path)
		}
	}
	return b.String()
}

type verdictOf struct{ path, verdict string }

// under returns the verdicts on what is in a table, without the path of the table.
func under(list []verdictOf, table string) []verdictOf {
	var inside []verdictOf
	for _, v := range list {
		if rest, ok := strings.CutPrefix(v.path, table); ok {
			inside = append(inside, verdictOf{rest, v.verdict})
		}
	}
	return inside
}

// subject is what has the fields: a manifest, or an ephemeral container.
type subject interface {
	// fresh returns a pointer to a new value that is valid.
	fresh() reflect.Value
	// parse parses the value after it was changed.
	parse(t *testing.T) spec.Problems
	// prefix is what paths of problems begin with.
	prefix() string
}

type manifest struct{ spec *corev1.PodSpec }

func (m *manifest) fresh() reflect.Value {
	m.spec = &corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	return reflect.ValueOf(m.spec).Elem()
}

func (m *manifest) prefix() string { return "spec." }

func (m *manifest) parse(t *testing.T) spec.Problems {
	t.Helper()
	for _, list := range [][]corev1.Container{m.spec.InitContainers, m.spec.Containers} {
		for i := range list {
			completeContainer(&list[i])
			for _, mount := range list[i].VolumeMounts {
				m.spec.Volumes = append(m.spec.Volumes, corev1.Volume{Name: mount.Name})
			}
			for _, variable := range list[i].Env {
				if from := variable.ValueFrom; from != nil && from.FileKeyRef != nil {
					m.spec.Volumes = append(m.spec.Volumes, corev1.Volume{Name: from.FileKeyRef.VolumeName})
				}
			}
		}
	}
	for i := range m.spec.Volumes {
		v := &m.spec.Volumes[i]
		if v.DownwardAPI != nil {
			completeFiles(v.DownwardAPI.Items)
		}
		if v.Projected == nil {
			continue
		}
		for j := range v.Projected.Sources {
			if d := v.Projected.Sources[j].DownwardAPI; d != nil {
				completeFiles(d.Items)
			}
		}
	}
	if s := m.spec.SecurityContext; s != nil {
		completeProfiles(s.SeccompProfile, s.AppArmorProfile)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"}, "spec": m.spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, problems := spec.Options{Verbose: true}.ParseParts("web.yaml", text)
	return problems
}

type ephemeral struct{ container *corev1.EphemeralContainer }

func (e *ephemeral) fresh() reflect.Value {
	e.container = &corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "i"}}
	return reflect.ValueOf(e.container).Elem()
}

func (e *ephemeral) prefix() string { return "" }

func (e *ephemeral) parse(t *testing.T) spec.Problems {
	t.Helper()
	completeContainer((*corev1.Container)(&e.container.EphemeralContainerCommon))
	text, err := json.Marshal(e.container)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := toml.NewEncoder(&file).Encode(object); err != nil {
		t.Fatal(err)
	}
	volumes := []spec.Volume{{Name: "v", EmptyDir: &spec.EmptyDirVolume{}}}
	pod := &spec.Pod{Name: "web", Containers: []spec.Container{{Name: "c"}}, Volumes: volumes}
	_, problems := spec.ParseEphemeral("debug.toml", file.Bytes(), pod)
	return problems
}

// completeContainer adds what the fields that are set need.
func completeContainer(c *corev1.Container) {
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil && p.ProbeHandler == (corev1.ProbeHandler{}) {
			p.Exec = &corev1.ExecAction{Command: []string{"a"}}
		}
	}
	for i := range c.EnvFrom {
		if from := &c.EnvFrom[i]; from.ConfigMapRef == nil && from.SecretRef == nil {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}
		}
	}
	for i := range c.VolumeMounts {
		if mount := &c.VolumeMounts[i]; mount.RecursiveReadOnly != nil {
			mount.ReadOnly = true
		}
	}
	if len(c.RestartPolicyRules) > 0 && c.RestartPolicy == nil {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
	}
	if s := c.SecurityContext; s != nil {
		completeProfiles(s.SeccompProfile, s.AppArmorProfile)
	}
}

func completeFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		if f := &files[i]; f.FieldRef == nil && f.ResourceFieldRef == nil {
			f.FieldRef = &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}
		} else if f.ResourceFieldRef != nil {
			f.ResourceFieldRef.ContainerName = "c"
		}
	}
}

func completeProfiles(seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile) {
	if seccomp != nil && seccomp.LocalhostProfile != nil {
		seccomp.Type = corev1.SeccompProfileTypeLocalhost
	}
	if appArmor != nil && appArmor.LocalhostProfile != nil {
		appArmor.Type = corev1.AppArmorProfileTypeLocalhost
	}
}

// smallest are the values of tables that have required fields.
var smallest = []any{
	corev1.Container{Name: "init", Image: "i", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
	corev1.ContainerPort{ContainerPort: 80},
	corev1.ContainerResizePolicy{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
	corev1.ContainerRestartRule{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{1}},
	},
	corev1.EnvVar{Name: "A"},
	corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
	corev1.ResourceFieldSelector{Resource: "limits.cpu"},
	corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "a"},
	corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "a"},
	corev1.FileKeySelector{VolumeName: "v", Path: "a", Key: "a"},
	corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}},
	corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}},
	corev1.LocalObjectReference{Name: "a"},
	corev1.VolumeMount{Name: "v", MountPath: "/v"},
	corev1.Volume{Name: "v"},
	corev1.HostPathVolumeSource{Path: "/a"},
	corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"},
	corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}},
	corev1.SecretVolumeSource{SecretName: "a"},
	corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}},
	corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}},
	corev1.KeyToPath{Key: "a", Path: "a"},
	corev1.DownwardAPIVolumeFile{Path: "a"},
	corev1.ImageVolumeSource{Reference: "i"},
	corev1.ExecAction{Command: []string{"a"}},
	corev1.HTTPGetAction{Port: intstr.FromInt32(80)},
	corev1.TCPSocketAction{Port: intstr.FromInt32(80)},
	corev1.GRPCAction{Port: 80},
	corev1.HTTPHeader{Name: "A"},
	corev1.SleepAction{Seconds: 1},
	corev1.HostAlias{IP: "192.0.2.1", Hostnames: []string{"a"}},
	corev1.PodReadinessGate{ConditionType: "a"},
	corev1.PodDNSConfigOption{Name: "a"},
	corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
	corev1.Sysctl{Name: "net.ipv4.ip_forward", Value: "1"},
}

// values are the values of fields that do not take any value, by type and field.
var values = map[string]any{
	"PodSpec.restartPolicy": "Never", "PodSpec.dnsPolicy": "Default", "PodOS.name": "linux",
	"Container.imagePullPolicy": "Always", "Container.restartPolicy": "Always", "Container.terminationMessagePath": "/a",
	"Container.terminationMessagePolicy": "File", "Container.workingDir": "/a",
	"EphemeralContainerCommon.imagePullPolicy": "Always", "EphemeralContainerCommon.terminationMessagePath": "/a",
	"EphemeralContainerCommon.terminationMessagePolicy": "File", "EphemeralContainerCommon.workingDir": "/a",
	"EphemeralContainer.targetContainerName": "c",
	"ContainerRestartRule.action":            "Restart", "ContainerRestartRuleOnExitCodes.operator": "NotIn",
	"ContainerPort.hostIP": "127.0.0.1", "ContainerPort.protocol": "UDP", "Lifecycle.stopSignal": "SIGINT",
	"ObjectFieldSelector.apiVersion": "v1", "ObjectFieldSelector.fieldPath": "metadata.uid",
	"ResourceFieldSelector.resource": "limits.memory", "ResourceFieldSelector.containerName": "c",
	"FileKeySelector.volumeName": "v", "ContainerResizePolicy.resourceName": "memory",
	"ContainerResizePolicy.restartPolicy": "RestartContainer",
	"VolumeMount.name":                    "v", "VolumeMount.mountPath": "/a", "VolumeMount.mountPropagation": "HostToContainer",
	"VolumeMount.recursiveReadOnly": "IfPossible",
	"EmptyDirVolumeSource.medium":   "Memory", "HostPathVolumeSource.type": "Directory", "HostPathVolumeSource.path": "/a",
	"ImageVolumeSource.pullPolicy": "Always", "HTTPGetAction.scheme": "HTTPS", "HostAlias.ip": "192.0.2.1",
	"PodDNSConfig.nameservers":               "192.0.2.1",
	"PodSecurityContext.fsGroupChangePolicy": "Always", "PodSecurityContext.supplementalGroupsPolicy": "Strict",
	"SecurityContext.procMount": "Default",
	"SeccompProfile.type":       "Unconfined", "AppArmorProfile.type": "Unconfined", "Sysctl.name": "net.ipv4.ip_forward",
	"Capabilities.add": "KILL", "Capabilities.drop": "KILL",
	"EphemeralContainerCommon.restartPolicy": "Always",
	"ResourceRequirements.limits":            "cpu", "ResourceRequirements.requests": "cpu", "Probe.successThreshold": 1,
}

// apiStep is a field of a type of the API, with those that it embeds.
type apiStep struct {
	name  string
	of    string // the type and the field, as in values
	index []int
	t     reflect.Type
}

// apiFields returns the fields of a type as they are in JSON.
func apiFields(t reflect.Type) []apiStep {
	var list []apiStep
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			for _, inner := range apiFields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				list = append(list, inner)
			}
			continue
		}
		list = append(list, apiStep{name, t.Name() + "." + name, []int{i}, f.Type})
	}
	return list
}

// tableOf returns the type of a table, or of the tables of a list.
func tableOf(t reflect.Type) (inside reflect.Type, list, ok bool) {
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), true
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	scalars := []reflect.Type{reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Time]()}
	return t, list, t.Kind() == reflect.Struct && !slices.Contains(scalars, t)
}

// specVerdicts returns the verdicts on the fields of a subject. Of containers and init containers, only those of the prefix have rows of
// their own.
func specVerdicts(t *testing.T, s subject, containers string) []verdictOf {
	t.Helper()
	var list []verdictOf
	var walk func(at reflect.Type, steps []apiStep, path string)
	walk = func(at reflect.Type, steps []apiStep, path string) {
		for _, f := range apiFields(at) {
			here, to := path+f.name, append(slices.Clone(steps), f)
			inside, isList, isTable := tableOf(f.t)
			if isTable {
				whole := judge(t, s, to, here, true)
				if whole != "" {
					list = append(list, verdictOf{rowOf(here), whole})
					continue
				}
				if isList {
					here += "[0]"
				}
				if row := rowOf(here) + "."; (row == "containers[]." || row == "initContainers[].") && row != containers {
					list = append(list, verdictOf{strings.TrimSuffix(rowOf(here), "[]"), honoured})
					continue
				}
				if inside.NumField() == 0 {
					list = append(list, verdictOf{rowOf(here), honoured})
				}
				walk(inside, to, here+".")
				continue
			}
			verdict := judge(t, s, to, here, false)
			list = append(list, verdictOf{rowOf(here), verdict})
		}
	}
	walk(s.fresh().Type(), nil, "")
	return list
}

func rowOf(path string) string { return strings.ReplaceAll(path, "[0]", "[]") }

// judge returns the verdict on a field. Of a table it is empty if the table is not ignored or refused as a whole.
func judge(t *testing.T, s subject, steps []apiStep, path string, table bool) string {
	t.Helper()
	v := s.fresh()
	for i, step := range steps {
		v = v.FieldByIndex(step.index)
		switch last := i == len(steps)-1; {
		case last && table:
			fill(v, 0)
		case last:
			set(v, step.of)
		default:
			v = open(v)
		}
	}
	problems := s.parse(t)
	for _, p := range problems {
		if p.Path != s.prefix()+path {
			continue
		}
		switch {
		case p.Warning && strings.HasPrefix(p.Message, "ignored: "):
			return ignored
		case p.Warning:
			return warned
		case strings.HasPrefix(p.Message, "not supported"):
			return refused
		case p.Message == "Forbidden: cannot be set for an Ephemeral Container":
			return refusedToo
		case !table && strings.HasPrefix(p.Message, "Forbidden: "):
			return refusedToo
		case p.Message == "unknown field":
			t.Errorf("%s is a field of k8s.io/api that the parser does not know: support it, or list it in spec/keys.go", path)
			return "unknown"
		}
	}
	if table {
		return ""
	}
	if len(problems) > 0 {
		t.Errorf("%s: the value of this test is not valid: %v", path, problems)
	}
	return honoured
}

// open returns the table of a field, or the first one of a list, with its required fields.
func open(v reflect.Value) reflect.Value {
	inside, list, _ := tableOf(v.Type())
	value := reflect.New(inside).Elem()
	for _, s := range smallest {
		if reflect.TypeOf(s) == inside {
			value.Set(reflect.ValueOf(s))
		}
	}
	// The value must not share anything with smallest.
	text, _ := json.Marshal(value.Interface())
	value.SetZero()
	_ = json.Unmarshal(text, value.Addr().Interface())
	switch {
	case list && v.Len() == 0:
		v.Set(reflect.Append(v, value))
		return v.Index(0)
	case list:
		return v.Index(0)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(value.Addr())
		}
		return v.Elem()
	}
	v.Set(value)
	return v
}

// set sets a field to a value that has an effect.
func set(v reflect.Value, of string) {
	value := values[of]
	switch v.Interface().(type) {
	case resource.Quantity, *resource.Quantity:
		value = "1"
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(80)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), of)
	case reflect.Slice:
		one := reflect.New(v.Type().Elem()).Elem()
		set(one, of)
		v.Set(reflect.Append(reflect.Zero(v.Type()), one))
	case reflect.Map:
		key, one := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		set(key, of)
		set(one, "")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, one)
	case reflect.Struct: // a quantity
		v.Set(reflect.ValueOf(resource.MustParse("1")))
	case reflect.String:
		if value == nil {
			value = "a"
		}
		v.SetString(fmt.Sprint(value))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}

// fill sets all fields of a table.
func fill(v reflect.Value, depth int) {
	inside, list, isTable := tableOf(v.Type())
	switch {
	case depth > 4 || !v.CanSet():
	case !isTable && v.Type() == reflect.TypeFor[metav1.Time]():
	case !isTable && v.Type() == reflect.TypeFor[*metav1.Time]():
	case !isTable:
		set(v, "")
	case list:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one, depth+1)
		v.Set(reflect.Append(reflect.Zero(v.Type()), one))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(inside))
		fill(v.Elem(), depth)
	default:
		for _, field := range v.Fields() {
			fill(field, depth+1)
		}
	}
}

// statusFields returns the paths of the fields of the status. A table that is never filled has one.
func statusFields() []string {
	var list []string
	same := map[string]bool{"initContainerStatuses": true, "ephemeralContainerStatuses": true, "lastState": true}
	var walk func(at reflect.Type, path string)
	walk = func(at reflect.Type, path string) {
		for _, f := range apiFields(at) {
			here := path + f.name
			inside, isList, isTable := tableOf(f.t)
			if !isTable || neverFilled[here] != "" || same[f.name] {
				list = append(list, here)
				continue
			}
			if isList {
				here += "[]"
			}
			walk(inside, here+".")
		}
	}
	walk(reflect.TypeFor[corev1.PodStatus](), "status.")
	return list
}
