package spec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manifestOfWeb = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: app\n    image: busybox\n"

// TestKubectlOutput checks that what kubectl get pod -o yaml prints is accepted, with a warning for each field that is ignored.
func TestKubectlOutput(t *testing.T) {
	const file = "testdata/kubectl/pod.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod, problems := parse(file, data, Options{Verbose: true})
	if pod == nil {
		t.Fatal(problems)
	}
	if len(pod.Volumes) != 0 || len(pod.Containers[0].VolumeMounts) != 0 {
		t.Errorf("the volume of the service account is kept: %+v", pod)
	}
	var ignored []string
	for _, p := range problems {
		if !strings.HasPrefix(p.Message, "ignored: ") {
			t.Errorf("want only ignored fields, got %v", p)
		}
		ignored = append(ignored, p.Path)
	}
	want := strings.Fields(`metadata.creationTimestamp metadata.generateName metadata.ownerReferences metadata.resourceVersion metadata.uid
		spec.containers[0].volumeDevices spec.containers[0].volumeMounts[0] spec.ephemeralContainers spec.enableServiceLinks
		spec.nodeName spec.preemptionPolicy spec.priority spec.priorityClassName spec.schedulerName
		spec.tolerations spec.volumes[0] status`)
	if diff := cmp.Diff(want, ignored); diff != "" {
		t.Errorf("ignored fields (-want +got):\n%s", diff)
	}
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(manifestOfWeb, "\n", "\n  ")
	if pod, problems := Parse("list.yaml", []byte(list)); pod == nil || pod.Name != "web" {
		t.Errorf("a list of one pod: %v", problems)
	}
}

// TestNoEffect checks that a field that is not supported is an error only if its value has an effect.
func TestNoEffect(t *testing.T) {
	for line, accepted := range map[string]bool{
		"os: {name: linux}":                          true,
		"os: {name: windows}":                        false,
		"os: {name: plan9}":                          false,
		"os: {}":                                     false,
		"overhead: {}":                               true,
		"overhead: {cpu: 1}":                         false,
		"schedulingGates: []":                        true,
		"schedulingGates: [{name: a}]":               false,
		"ephemeralContainers: [{name: a, image: b}]": true,
		"volumes: [{name: v, nfs: {}}]":              false,
		"volumes: [{name: kube-api-access-a}]":       true,
		"volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: a}}]}}]": false,
	} {
		pod, problems := Parse("web.yaml", []byte(manifestOfWeb+"  "+line+"\n"))
		if (pod != nil) != accepted {
			t.Errorf("%s: got %v, want accepted: %v", line, problems, accepted)
		}
	}
}

// TestDocuments checks that empty documents are skipped.
func TestDocuments(t *testing.T) {
	for _, text := range []string{
		"---\n" + manifestOfWeb, "---\n---\n# nothing\n---\n" + manifestOfWeb, manifestOfWeb + "---\n",
		manifestOfWeb + "---\n# end\n---\nnull\n...\n",
	} {
		if pod, problems := Parse("web.yaml", []byte(text)); pod == nil || len(problems) > 0 {
			t.Errorf("%v\n%s", problems, text)
		}
	}
	for text, want := range map[string]string{
		"---\n---\n":                            "file is empty",
		manifestOfWeb + "---\n" + manifestOfWeb: `pod "web" is already defined in this file`,
		manifestOfWeb + "---\n" + strings.Replace(manifestOfWeb, "web", "db", 1): "file defines several pods: web, db",
		manifestOfWeb + "---\n\"": "invalid YAML",
	} {
		if pod, problems := Parse("web.yaml", []byte(text)); pod != nil || !strings.Contains(problems.Error(), want) {
			t.Errorf("got %v, want %q\n%s", problems, want, text)
		}
	}
}

// TestMergeKeys checks that merge keys work as in the YAML library of Kubernetes: the mapping's own keys take precedence, then those
// of the first mapping that is merged.
func TestMergeKeys(t *testing.T) {
	text := `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  initContainers:
  - &base
    name: base
    image: busybox
    imagePullPolicy: Never
    workingDir: /base
  - &other
    name: other
    image: alpine
    workingDir: /other
    command: [sh]
  containers:
  - <<: [*base, *other]
    name: app
    imagePullPolicy:
  - name: second
    <<: *other
  - <<: {<<: *base, image: inner}
    name: third
`
	pod, problems := Parse("web.yaml", []byte(text))
	if pod == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	var got []string
	for _, c := range pod.Containers {
		got = append(got, fmt.Sprint(c.Name, " ", c.Image, " ", c.ImagePullPolicy, " ", c.WorkingDir, " ", c.Command))
	}
	want := []string{"app busybox  /base [sh]", "second alpine  /other [sh]", "third inner Never /base []"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"<<: 1", "<<: [1]", "<<: {}\n<<: {}", "a: &a\n  <<: *a"} {
		if pod, problems := Parse("web.yaml", []byte(bad+"\n"+manifestOfWeb)); pod != nil || len(problems) != 1 {
			t.Errorf("%s: got %v, want one error", bad, problems)
		}
	}
	levels := "a0: &a0 {x: 1}\n"
	for i := range 20 {
		levels += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d, *a%d, *a%d]}\n", i+1, i+1, i, i, i, i)
	}
	if pod, problems := Parse("web.yaml", []byte(levels+manifestOfWeb)); pod != nil ||
		!strings.Contains(problems.Error(), "more than 20000") {
		t.Errorf("got %v, want the limit of nodes", problems)
	}
}

// TestGenerateName checks that generateName makes a name if there is no name.
func TestGenerateName(t *testing.T) {
	manifest := func(metadata string) string { return strings.Replace(manifestOfWeb, "name: web", metadata, 1) }
	name := func(metadata string) string {
		t.Helper()
		pod, problems := Options{Suffix: "abcde"}.Accept("file.yaml", []byte(manifest(metadata)))
		if pod == nil {
			t.Fatal(problems)
		}
		return pod.Name
	}
	for metadata, want := range map[string]string{
		"generateName: web-":                       "web-abcde",
		"{generateName: web-, name: db}":           "db",
		"generateName: " + strings.Repeat("a", 70): strings.Repeat("a", 58) + "abcde",
		"labels: {a: b}":                           "file",
	} {
		if got := name(metadata); got != want {
			t.Errorf("%s: name %q, want %q", metadata, got, want)
		}
	}
	first, _ := Parse("file.yaml", []byte(manifest("generateName: web-")))
	second, _ := Parse("file.yaml", []byte(manifest("generateName: web-")))
	if first.Name == second.Name || len(first.Name) != len("web-abcde") {
		t.Errorf("generated names %q and %q", first.Name, second.Name)
	}
	if _, problems := Parse("file.yaml", []byte(manifest("generateName: Web-"))); len(problems) != 1 ||
		problems[0].Path != "metadata.generateName" || problems[0].Line != 4 {
		t.Errorf("an invalid prefix: %v", problems)
	}
}

// TestProfileAnnotations checks the annotations from which Kubernetes read profiles before it had fields for them.
func TestProfileAnnotations(t *testing.T) {
	parse := func(annotations, container string) (*Pod, Problems) {
		return Parse("web.toml", []byte("name = \"web\"\n[annotations]\n"+annotations+"\n"+podTail+container))
	}
	const appArmor = `"container.apparmor.security.beta.kubernetes.io/app" = `
	for value, want := range map[string]SecurityProfile{
		"runtime/default": {Type: "RuntimeDefault"}, "unconfined": {Type: "Unconfined"},
		"localhost/mine": {Type: "Localhost", LocalhostProfile: new("mine")},
	} {
		pod, problems := parse(appArmor+`"`+value+`"`, "")
		if pod == nil || len(problems) != 1 || !strings.Contains(problems[0].Message, "appArmorProfile") {
			t.Errorf("%s: got %v, want one warning", value, problems)
			continue
		}
		if diff := cmp.Diff(&want, pod.Containers[0].SecurityContext.AppArmorProfile); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
	for _, bad := range []struct{ annotations, container, words string }{
		{appArmor + `"other"`, "", "invalid AppArmor profile name"},
		{appArmor + `"localhost/"`, "", "invalid AppArmor profile name"},
		{`"container.apparmor.security.beta.kubernetes.io/nope" = "unconfined"`, "", `Not found: container "nope"`},
		{appArmor + `"unconfined"`, "securityContext.appArmorProfile.type = \"RuntimeDefault\"\n", "must match"},
		{
			appArmor + `"localhost/a"`, "securityContext.appArmorProfile = { type = \"Localhost\", localhostProfile = \"b\" }\n",
			"must match",
		},
	} {
		if pod, problems := parse(bad.annotations, bad.container); pod != nil || !strings.Contains(problems.Errors().Error(), bad.words) {
			t.Errorf("%s: got %v, want %q", bad.annotations, problems, bad.words)
		}
	}
	for _, key := range []string{"seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/app"} {
		if pod, problems := parse(`"`+key+`" = "runtime/default"`, ""); pod == nil || len(problems) != 1 ||
			!strings.Contains(problems[0].Message, "seccompProfile") {
			t.Errorf("%s: got %v, want one warning", key, problems)
		}
	}
}

// TestHintsHaveTheFormatOfTheFile checks hints that show a line of the file.
func TestHintsHaveTheFormatOfTheFile(t *testing.T) {
	const (
		head = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  "
		tail = "\n  containers: [{name: a, image: b}]\n"
		json = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "b"}], %s}}`
	)
	for _, test := range []struct{ file, text, hint string }{
		{"web.toml", initWith(`livenessProbe.exec.command = ["a"]`), `set restartPolicy = "Always" to make it a sidecar`},
		{
			"web.yaml", head + "initContainers: [{name: i, image: b, livenessProbe: {exec: {command: [a]}}}]" + tail,
			`set restartPolicy: Always to make it a sidecar`,
		},
		{
			"web.json", fmt.Sprintf(json, `"initContainers": [{"name": "i", "image": "b", "livenessProbe": {"exec": {"command": ["a"]}}}]`),
			`set "restartPolicy": "Always" to make it a sidecar`,
		},
		{"web.json", fmt.Sprintf(json, `"hostname": 1`), `write "hostname": "1"`},
		{"web.yaml", head + "hostname: 1" + tail, `write hostname: "1"`},
		{"Web.yaml", strings.Replace(head, "{name: web}", "{}", 1) + "hostname: a" + tail, "set metadata.name"},
		{"web.yaml", head + "namespace: a" + tail, "move it to metadata"},
		{"web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "write the pods that use it into the same file"},
	} {
		_, problems := Parse(test.file, []byte(test.text))
		if len(problems) != 1 || !strings.Contains(problems[0].Hint, test.hint) {
			t.Errorf("%s: got %v, want the hint %q", test.file, report(problems), test.hint)
		}
	}
}

// TestStdin checks that the format of standard input is that of its content, and that the pod needs a name.
func TestStdin(t *testing.T) {
	for _, text := range []string{
		pod(""), manifestOfWeb, "---\n" + manifestOfWeb,
		`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}`,
	} {
		if pod, problems := Parse(Stdin, []byte(text)); pod == nil || pod.Name != "web" {
			t.Errorf("%v\n%s", problems, text)
		}
	}
	if _, problems := Parse(Stdin, []byte(podTail)); len(problems) != 1 || problems[0].Path != "name" ||
		problems[0].Message != "Required value" {
		t.Errorf("without a name: %v", problems)
	}
}

// TestServiceAccount checks that the pod has the name of its service account, also by the deprecated field, and a warning if permissions
// may be bound to it.
func TestServiceAccount(t *testing.T) {
	for line, want := range map[string]struct {
		name     string
		problems int
	}{
		"":                            {"default", 0},
		"serviceAccountName: default": {"default", 0},
		"serviceAccountName: ''":      {"default", 0},
		"serviceAccountName: web":     {"web", 1},
		"serviceAccount: web":         {"web", 1},
		"{serviceAccountName: a, serviceAccount: b}":    {"a", 1},
		"{serviceAccountName: '', serviceAccount: web}": {"web", 1},
	} {
		line = strings.Trim(strings.ReplaceAll(line, ", ", "\n  "), "{}")
		pod, problems := Parse("web.yaml", []byte(manifestOfWeb+"  "+line+"\n"))
		if pod == nil || pod.ServiceAccount() != want.name || len(problems) != want.problems {
			t.Errorf("%s: got %v, want the name %q and %d warnings", line, problems, want.name, want.problems)
		}
	}
	for _, bad := range []string{"serviceAccountName: A", "serviceAccount: [a]", "serviceAccount: A"} {
		if pod, problems := Parse("web.yaml", []byte(manifestOfWeb+"  "+bad+"\n")); pod != nil || len(problems) != 1 {
			t.Errorf("%s: got %v, want one error", bad, problems)
		}
	}
}

// TestStopSignalNeedsOS checks that a manifest that sets a stop signal names its operating system, as the API server requires. A pod file
// is for Linux.
func TestStopSignalNeedsOS(t *testing.T) {
	const lifecycle = "    lifecycle: {stopSignal: SIGINT}\n"
	if pod, problems := Parse("web.yaml", []byte(manifestOfWeb+lifecycle+"  os: {name: linux}\n")); pod == nil || len(problems) > 0 {
		t.Error(problems)
	}
	pod, problems := Parse("web.yaml", []byte(manifestOfWeb+lifecycle))
	if pod != nil || len(problems) != 1 || problems[0].Path != "spec.containers[0].lifecycle.stopSignal" ||
		problems[0].Hint != `set os: {name: "linux"} in the spec` {
		t.Errorf("without an operating system: %+v", problems)
	}
	toml := "name = \"web\"\n[[containers]]\nname = \"a\"\nimage = \"b\"\nlifecycle.stopSignal = \"SIGINT\"\n"
	if pod, problems := Parse("web.toml", []byte(toml)); pod == nil || len(problems) > 0 {
		t.Error(problems)
	}
}

// TestOwnOutput checks that what "podstead get" adds to a pod is accepted without a warning, but in no other manifest.
func TestOwnOutput(t *testing.T) {
	text := strings.Replace(manifestOfWeb, "  name: web\n", "  name: web\n  uid: u\n  generation: 2\n  creationTimestamp: x\n", 1) +
		"  nodeName: edge\nstatus: {phase: Running}\n"
	if _, problems := parse("web.yaml", []byte(text), Options{Verbose: true}); len(problems) != 5 {
		t.Errorf("a manifest of a cluster: %v, want five warnings", problems)
	}
	if _, problems := Parse("web.yaml", []byte(text)); len(problems) != 0 {
		t.Errorf("a manifest of a cluster: %v, want no warnings", problems)
	}
	text = strings.Replace(text, "  uid: u\n", "  uid: u\n  annotations: {podstead.io/spec-hash: a}\n", 1)
	if pod, problems := Parse("web.yaml", []byte(text)); pod == nil || len(problems) > 0 || len(pod.Annotations) > 0 {
		t.Errorf("own output: %v", problems)
	}
}
