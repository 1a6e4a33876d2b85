package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// everyKind has a field of each kind that the output of get must keep.
const everyKind = `name = "web"
labels.app = "web"
annotations.note = "x"
restartPolicy = "OnFailure"
terminationGracePeriodSeconds = 2.5
os.name = "linux"
serviceAccountName = "web"
activeDeadlineSeconds = 60
restartBackoff.initialSeconds = 1
hostUsers = false
imageArchives = ["web.tar"]
hostAliases = [{ ip = "10.0.0.1", hostnames = ["db"] }]
dnsConfig.options = [{ name = "ndots", value = "2" }]
resources.limits.memory = "1Gi"
securityContext = { runAsUser = 1000, sysctls = [{ name = "net.ipv4.ip_forward", value = "1" }] }

[[initContainers]]
name = "sidecar"
image = "busybox"
restartPolicy = "Always"
startupProbe.exec.command = ["true"]

[[containers]]
name = "app"
image = "busybox"
env = { A = "1", B.fieldRef.fieldPath = "metadata.name", C.configMapKeyRef = { name = "config", key = "b" } }
envFrom = [{ secretRef.name = "login" }]
ports = [{ name = "http", containerPort = 80, hostPort = 8080 }]
resources = { limits = { cpu = 0.5 } }
volumeMounts = { tmp = "/tmp", config = { mountPath = "/config", readOnly = true } }
livenessProbe = { httpGet.port = "http", periodSeconds = 3 }
lifecycle.stopSignal = "SIGINT"
restartPolicy = "Never"
restartPolicyRules = [{ action = "Restart", exitCodes = { operator = "In", values = [42] } }]

[[volumes]]
name = "tmp"
emptyDir = { medium = "Memory", sizeLimit = "1Mi" }

[[volumes]]
name = "config"
configMap = { name = "config", items = [{ key = "a", path = "a" }] }

[[configMaps]]
name = "config"
data.a = "1"
envFile = "config.env"

[[secrets]]
name = "login"
envFile = "login.env"
`

// TestOutputIsInput checks that the JSON and the YAML of a pod are a manifest of the same pod.
func TestOutputIsInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"config.env": "b=2\n", "login.env": "password=hunter2\n", "every.toml": everyKind} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("../examples/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range append(files, filepath.Join(dir, "every.toml")) {
		switch filepath.Base(file) {
		case "shop.toml", "application.toml": // secrets with values, see TestSecretsAreNotPrinted, and several pods
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, problems := spec.Accept(file, text)
		if want == nil {
			t.Fatalf("%s: %v", file, problems)
		}
		p := api.Pod{
			Kind: "Pod", APIVersion: "v1", Spec: api.PodSpec{Pod: *want},
			Metadata: api.Metadata{Name: want.Name, UID: "u", Labels: want.Labels, Annotations: want.Annotations},
			Status:   api.PodStatus{AtRest: true, Owner: "me", Pulling: map[string]api.Progress{"app": {}}},
		}
		inJSON, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		inYAML, err := yaml.JSONToYAML(inJSON)
		if err != nil {
			t.Fatal(err)
		}
		for name, output := range map[string][]byte{"pod.json": inJSON, "pod.yaml": inYAML} {
			got, problems := spec.Accept(filepath.Join(filepath.Dir(file), name), output)
			if got == nil || len(problems) != len(problems.Warnings()) {
				t.Errorf("%s as %s: %v\n%s", file, name, problems, output)
				continue
			}
			ignored := cmp.Options{
				cmpopts.IgnoreFields(spec.Pod{}, "Hash"), cmpopts.IgnoreFields(spec.Container{}, "Hash"),
				cmpopts.IgnoreFields(spec.ConfigMap{}, "EnvFile"),
			}
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", file, name, diff)
			}
		}
	}
}

// TestOwnFields checks that the fields that the Pod API does not have are annotations in JSON, and fields for clients.
func TestOwnFields(t *testing.T) {
	t.Parallel()
	want := api.Pod{
		Metadata: api.Metadata{Name: "web", Annotations: map[string]string{"note": "x"}},
		Spec:     api.PodSpec{Pod: spec.Pod{Hash: "v1:1"}},
		Status: api.PodStatus{
			Owner: "me", StoppedBy: "you", StoppedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), File: "/pods.d/web.toml", AtRest: true,
			NotDurable: true, Pulling: map[string]api.Progress{"app": {}},
			Outcome: api.RequestOutcome{State: api.RolloutFailed, Message: "container \"a\" failed: no", Request: 2},
		},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"specHash", "atRest", `"owner"`, "stoppedBy", "notDurable", `"pulling"`} {
		if strings.Contains(string(text), field) {
			t.Errorf("the field %s is in %s", field, text)
		}
	}
	for _, annotation := range spec.OwnAnnotations {
		if !strings.Contains(string(text), annotation) {
			t.Errorf("no annotation %s in %s", annotation, text)
		}
	}
	var got api.Pod
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("JSON round trip (-want +got):\n%s", diff)
	}
	forged := api.Pod{Metadata: api.Metadata{Annotations: map[string]string{spec.AnnotationAtRest: "true"}}}
	if text, err := json.Marshal(forged); err != nil || strings.Contains(string(text), "annotations") {
		t.Errorf("an annotation of a pod file is printed as a field: %s, %v", text, err)
	}
}

// TestSecretsAreNotPrinted checks that the output for a pod with a secret in its file is refused because the values are missing.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	pod, _ := spec.Parse("web.toml",
		[]byte("secrets = [{ name = \"s\", data.a = \"hunter2\" }]\n[[containers]]\nname = \"c\"\nimage = \"i\"\n"+
			"env.A.secretKeyRef = { name = \"s\", key = \"a\" }\n"))
	text, err := json.Marshal(api.Pod{Kind: "Pod", APIVersion: "v1", Metadata: api.Metadata{Name: "web"}, Spec: api.PodSpec{Pod: *pod}})
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Fatal(string(text), err)
	}
	_, problems := spec.Parse("web.json", text)
	if errs := problems.Errors(); len(errs) != 1 || errs[0].Path != "spec.secrets[0].data" ||
		!strings.Contains(errs[0].Hint, "write the values") {
		t.Errorf("got %v, want one error for the data", errs)
	}
}
