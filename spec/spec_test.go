package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t *testing.T, file, text string) *Pod {
	t.Helper()
	pod, problems := parse(file, []byte(text), Options{})
	if pod == nil {
		t.Fatalf("parse %s: %v\n%s", file, problems, text)
	}
	return pod
}

func readGood(t *testing.T, name string) *Pod {
	t.Helper()
	file := filepath.Join("testdata", "good", name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, file, string(data))
}

// TestRoundTrip checks that a pod is the same after a JSON round trip: state
// files are read without defaulting.
func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"everything.toml", "web.toml", "manifest.yaml"} {
		want := readGood(t, name)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Pod
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.WithSecretValues(want.SecretValues())); diff != "" {
			t.Errorf("%s: JSON round trip (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoEmptyCollections checks that empty collections are nil, which the JSON
// round trip needs.
func TestNoEmptyCollections(t *testing.T) {
	p := mustParse(t, "web.toml", "name = \"web\"\nlabels = {}\nvolumes = []\nresources = { limits = {} }\n"+
		podTail+"args = []\nenv = {}\n")
	c := p.Containers[0]
	if p.Labels != nil || p.Volumes != nil || p.Resources.Limits != nil || c.Args != nil || c.Env != nil {
		t.Errorf("an empty collection is not nil: %+v", p)
	}
}

func TestPortJSON(t *testing.T) {
	for text, want := range map[string]Port{"80": {Number: 80}, `"http"`: {Name: "http"}} {
		var got Port
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %v: %v", text, got, err)
		}
		if data, err := json.Marshal(got); err != nil || string(data) != text {
			t.Errorf("%v is written as %s: %v", got, data, err)
		}
		if got.String() != strings.Trim(text, `"`) {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
	if err := json.Unmarshal([]byte("{}"), new(Port)); err == nil {
		t.Error("an object was read as a port")
	}
}

func TestSecondsDuration(t *testing.T) {
	for seconds, want := range map[Seconds]time.Duration{
		0: 0, 1: time.Second, 0.5: 500 * time.Millisecond, 0.1: 100 * time.Millisecond, 1e-9: 1,
		maxSeconds: maxSeconds * time.Second, 1e300: math.MaxInt64,
	} {
		if got := seconds.Duration(); got != want {
			t.Errorf("%v seconds are %v, want %v", float64(seconds), got, want)
		}
	}
}

func TestBackoffOf(t *testing.T) {
	kubelet := Backoff{InitialSeconds: 10, MaxSeconds: 300, Factor: 2, ResetAfterSeconds: 600}
	for _, test := range []struct {
		name           string
		pod, container *Backoff
		want           Backoff
	}{
		{"defaults of the kubelet", nil, nil, kubelet},
		{"empty tables", &Backoff{}, &Backoff{}, kubelet},
		{"pod", &Backoff{InitialSeconds: 1, Factor: 3}, nil, Backoff{1, 300, 3, 600}},
		{
			"container before pod for each number",
			&Backoff{InitialSeconds: 1, MaxSeconds: 5}, &Backoff{InitialSeconds: 2, ResetAfterSeconds: 7},
			Backoff{2, 5, 2, 7},
		},
		{"initial at most maximum", &Backoff{MaxSeconds: 4}, nil, Backoff{4, 4, 2, 600}},
	} {
		p := &Pod{RestartBackoff: test.pod}
		if got := p.BackoffOf(&Container{RestartBackoff: test.container}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
	if kubeletBackoff != kubelet {
		t.Error("BackoffOf changed the defaults")
	}
}

func TestDefaults(t *testing.T) {
	p := mustParse(t, "/etc/podstead/pods.d/shop.toml",
		"hostNetwork = true\ndnsPolicy = \"ClusterFirst\"\nimageArchives = [\"a.tar\", \"/b.tar\"]\n"+
			"configMaps = [{ name = \"a\", envFile = \"a.env\" }]\nsecrets = [{ name = \"a\", envFile = \"b.env\" }]\n"+
			podTail+
			"ports = [{ containerPort = 80 }]\nresources = { limits = { cpu = 1, memory = \"1Gi\" }, requests = { cpu = \"100m\" } }\n"+
			"livenessProbe = { httpGet.port = 80, periodSeconds = 0 }\n"+
			"[[volumes]]\nname = \"v\"\nhostPath.path = \"../data\"\n")
	c := p.Containers[0]
	got := map[string]any{
		"name": p.Name, "dir": p.Dir, "policy": p.RestartPolicy, "grace": p.TerminationGracePeriodSeconds, "dns": p.DNSPolicy,
		"archives": strings.Join(p.ImageArchives, " "), "host path": p.Volumes[0].HostPath.Path,
		"env files": p.ConfigMaps[0].EnvFile + " " + p.Secrets[0].EnvFile,
		"pull":      c.ImagePullPolicy, "port": c.Ports[0], "cpu": c.Resources.Requests["cpu"], "memory": c.Resources.Requests["memory"],
		"probe": *c.LivenessProbe, "sidecar": c.IsSidecar(), "message": c.TerminationMessagePath,
	}
	want := map[string]any{
		"name": "shop", "dir": "/etc/podstead/pods.d", "policy": RestartAlways, "grace": Seconds(30), "dns": DNSDefault,
		"archives": "/etc/podstead/pods.d/a.tar /b.tar", "host path": "/etc/podstead/data",
		"env files": "/etc/podstead/pods.d/a.env /etc/podstead/pods.d/b.env",
		"pull":      PullPolicy(""), "port": ContainerPort{ContainerPort: 80, HostPort: 80, Protocol: ProtocolTCP},
		"cpu": c.Resources.Requests["cpu"], "memory": c.Resources.Limits["memory"],
		"probe": Probe{
			HTTPGet: &HTTPGetAction{Path: "/", Port: Port{Number: 80}, Scheme: "HTTP"}, PeriodSeconds: 10, TimeoutSeconds: 1,
			SuccessThreshold: 1, FailureThreshold: 3,
		},
		"sidecar": false, "message": "/dev/termination-log",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if cpu := c.Resources.Requests["cpu"]; cpu.MilliValue() != 100 {
		t.Errorf("the request became %s", cpu.String())
	}
}

func TestZeroGracePeriod(t *testing.T) {
	p := mustParse(t, "web.toml", "terminationGracePeriodSeconds = 0\n"+podTail)
	if p.TerminationGracePeriodSeconds != 0 {
		t.Errorf("a grace period of 0 became %v", p.TerminationGracePeriodSeconds)
	}
}

func TestInvalidFileName(t *testing.T) {
	_, problems := Parse("/tmp/My Pod\n.toml", []byte(podTail))
	if len(problems) != 1 || problems[0].Path != "name" || strings.Contains(problems.Error(), "\n") {
		t.Errorf("got %q", problems.Error())
	}
}

// TestTableForms checks that the table forms of env and volumeMounts give the
// same pod and the same hash as the Kubernetes arrays.
func TestTableForms(t *testing.T) {
	tables := mustParse(t, "web.toml", appWith("env.B = \"1\"\nenv.A.fieldRef.fieldPath = \"metadata.name\"\n"+
		"volumeMounts = { v = \"/v\", w = { mountPath = \"/w\", readOnly = true } }\n"+twoVolumes))
	arrays := mustParse(t, "web.toml",
		appWith("env = [{ name = \"B\", value = \"1\" }, { name = \"A\", valueFrom = { fieldRef = { fieldPath = \"metadata.name\" } } }]\n"+
			"volumeMounts = [{ name = \"v\", mountPath = \"/v\" }, { name = \"w\", mountPath = \"/w\", readOnly = true }]\n"+twoVolumes))
	if diff := cmp.Diff(arrays, tables); diff != "" {
		t.Errorf("the two forms differ (-array +table):\n%s", diff)
	}
}

// TestArrayAndTableFormInOneFile checks that no key is lost if one container has the array form of env and the next the table form
// with dotted keys.
func TestArrayAndTableFormInOneFile(t *testing.T) {
	const container = "[[containers]]\nname = %q\nimage = \"i\"\n"
	p := mustParse(t, "web.toml", fmt.Sprintf(container, "array")+"env = [{ name = \"A\", value = \"1\" }]\n"+
		fmt.Sprintf(container, "table")+"env.B = \"2\"\nenv.C = \"3\"\nenv.D.fieldRef.fieldPath = \"metadata.name\"\n")
	want := []EnvVar{
		{Name: "B", Value: "2"},
		{Name: "C", Value: "3"},
		{Name: "D", ValueFrom: &EnvVarSource{FieldRef: &FieldRef{FieldPath: "metadata.name"}}},
	}
	if diff := cmp.Diff(want, p.Containers[1].Env); diff != "" {
		t.Errorf("variables of the second container (-want +got):\n%s", diff)
	}
	if _, problems := Parse("web.toml", []byte("a = [{}]\n[[b]]\nc = [1]\n[[b]]\nc.d = 1\nc.d = 2\n")); len(problems) == 0 {
		t.Error("a duplicate key is accepted")
	}
}

const twoVolumes = "[[volumes]]\nname = \"v\"\nemptyDir = {}\n[[volumes]]\nname = \"w\"\nemptyDir = {}\n"

func TestHash(t *testing.T) {
	base := mustParse(t, "/a/web.toml", appWith("resources.limits.cpu = \"500m\"\n"))
	if !strings.HasPrefix(base.Hash, "v1:") || !strings.HasPrefix(base.Containers[0].Hash, "v1:") {
		t.Fatalf("hashes %q and %q", base.Hash, base.Containers[0].Hash)
	}
	for _, test := range []struct {
		name, file, text   string
		samePod, sameFirst bool
	}{
		{
			"same values in other notation", "/a/web.toml",
			strings.ReplaceAll(appWith("resources = { limits = { cpu = 0.5 } }\nargs = [] # none\n"), "30", "30.0"), true, true,
		},
		{"ignored field", "/a/web.toml", "nodeSelector = {}\n" + appWith("resources.limits.cpu = 0.5"), true, true},
		{"explicit default", "/a/web.toml", "dnsPolicy = \"Default\"\n" + appWith("resources.limits.cpu = 0.5"), false, true},
		{"other value of the pod", "/a/web.toml", strings.ReplaceAll(appWith("resources.limits.cpu = 0.5"), "30", "30.5"), false, true},
		{"other value of the container", "/a/web.toml", appWith("resources.limits.cpu = 0.25"), false, false},
		{
			"other value of env", "/a/web.toml",
			strings.Replace(appWith("resources.limits.cpu = 0.5\nenv.A = \"1\""), "\"1\"", "\"true\"", 1), false, false,
		},
	} {
		p := mustParse(t, test.file, test.text)
		if same := p.Hash == base.Hash; same != test.samePod {
			t.Errorf("%s: equal pod hash: %v", test.name, same)
		}
		if same := p.Containers[0].Hash == base.Containers[0].Hash; same != test.sameFirst {
			t.Errorf("%s: equal container hash: %v", test.name, same)
		}
	}
	// A relative path depends on the directory of the file.
	relative := volume("hostPath.path = \"data\"\n")
	if mustParse(t, "/a/web.toml", relative).Hash == mustParse(t, "/b/web.toml", relative).Hash {
		t.Error("relative paths in two directories have the same hash")
	}
	if manifest, file := mustParse(t, "a.yaml",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: busybox}]}\n"),
		mustParse(t, "a.toml", "name = \"web\"\n"+podTail); manifest.Hash != file.Hash {
		t.Error("a manifest and a pod file with the same content have different hashes")
	}
}

// TestValuesWithoutEffect checks that unsupported fields are accepted with a value
// that has no effect.
func TestValuesWithoutEffect(t *testing.T) {
	file := "name = \"web\"\nhostPID = false\nhostUsers = true\nresources = {}\nsecurityContext = {}\n" +
		podTail + "stdin = false\nenvFrom = []\nterminationMessagePolicy = \"File\"\n[[volumes]]\nname = \"v\"\nemptyDir.medium = \"\"\n"
	if pod, problems := Parse("web.toml", []byte(file)); pod == nil {
		t.Error(problems)
	}
	if pod, _ := Parse("web.toml", []byte("imagePullSecrets = [\"a\"]\n"+podTail)); pod != nil {
		t.Error("a value of another type was accepted")
	}
}

// TestSupported checks that a file with common fields has no problems.
func TestSupported(t *testing.T) {
	file := `name = "web"
labels = { app = "web" }
annotations = { note = "x" }
restartPolicy = "OnFailure"
terminationGracePeriodSeconds = 5
restartBackoff = { initialSeconds = 1 }
imageArchives = ["web.tar"]
hostNetwork = true
hostname = "edge"
hostAliases = [{ ip = "10.0.0.1", hostnames = ["db"] }]
dnsPolicy = "None"
dnsConfig = { nameservers = ["10.0.0.53"] }

[[initContainers]]
name = "prepare"
image = "busybox"

[[containers]]
name = "app"
image = "busybox"
imagePullPolicy = "Never"
command = ["a"]
args = ["b"]
workingDir = "/"
env.A = "$(B)"
ports = [{ containerPort = 80, name = "http", protocol = "TCP" }]
volumeMounts = { data = "/data", host = { mountPath = "/host", readOnly = true } }
restartBackoff = { maxSeconds = 60 }
lifecycle.stopSignal = "SIGINT"

[[volumes]]
name = "data"
emptyDir = {}

[[volumes]]
name = "host"
hostPath = { path = "/srv", type = "Directory" }
`
	if pod, problems := Parse("web.toml", []byte(file)); pod == nil || len(problems) > 0 {
		t.Errorf("problems:\n%v", problems)
	}
}

func TestParseFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.toml")
	if _, _, err := ParseFile(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
	if err := os.WriteFile(file, []byte(podTail), 0o600); err != nil {
		t.Fatal(err)
	}
	p, problems, err := ParseFile(file)
	if err != nil || p == nil || len(problems) > 0 || p.Name != "web" || p.Dir != filepath.Dir(file) {
		t.Errorf("got %+v, %v, %v", p, problems, err)
	}
	if _, _, err := ParseFile(filepath.Dir(file)); err == nil {
		t.Error("a directory was read")
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"imgae": "image", "IMAGE": "image", "livenesProbe": "livenessProbe", "liveness": "", "x": "", "": "", strings.Repeat("a", 100): "",
	} {
		if got := nearest(name, []string{"image", "livenessProbe", "name"}); got != want {
			t.Errorf("nearest to %q: %q, want %q", name, got, want)
		}
	}
}

// TestProblemsHaveNoControlCharacters checks that hostile text cannot control the
// terminal.
func TestProblemsHaveNoControlCharacters(t *testing.T) {
	const escape = `\u001b[2J`
	for _, file := range []string{
		`"` + escape + `" = 1`, `name = "` + escape + `"`, `restartPolicy = "` + escape + `"`,
		podTail + `env."` + escape + `" = 1`, podTail + `volumeMounts."` + escape + `" = "/a"`, podTail + `command = "` + escape + `"`,
		"[[containers]]\nname = \"" + escape + "\"\nimage = \"" + escape + "\"\nrestartPolicy = \"Never\"",
		"a = \x1b", "\"a\\u001b\" = 1\n\"a\\u001b\" = 1",
	} {
		_, problems := parse("web\x1b.toml", []byte(file), Options{})
		if text := report(problems); text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Errorf("%q: problem %q", file, text)
		}
	}
}
