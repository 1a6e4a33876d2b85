package change_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
)

// between compares two pod files and returns the changes as text.
func between(t *testing.T, before, after string) []string {
	t.Helper()
	var lines []string
	for _, c := range change.Between(accept(t, "/srv", before), accept(t, "/srv", after)) {
		lines = append(lines, c.String())
	}
	return lines
}

const web = `labels.app = "web"
[[containers]]
name = "app"
image = "nginx:1.27"
env.A = "1"
[[containers]]
name = "worker"
image = "busybox:1.36"
volumeMounts.data = "/data"
[[volumes]]
name = "data"
[[secrets]]
name = "db"
data.password = "hunter2"
`

// TestText checks what people see of changes.
func TestText(t *testing.T) {
	for _, test := range []struct {
		name     string
		old, new string // a replacement in the pod file
		want     []string
	}{
		{"image", "nginx:1.27", "nginx:1.28", []string{`containers[0].image: "nginx:1.27" -> "nginx:1.28" (restarts container app)`}},
		{"label", `labels.app = "web"`, `labels = { app = "shop", "example.com/tier" = "a" }`, []string{
			`labels."example.com/tier": "a" added (in place)`, `labels.app: "web" -> "shop" (in place)`,
		}},
		{"medium of a volume", `name = "data"`, "name = \"data\"\nemptyDir.medium = \"Memory\"", []string{
			`volumes[0].emptyDir.medium: "Memory" added (restarts the pod, the content of the volume is lost)`,
		}},
		{"size of a volume", `name = "data"`, "name = \"data\"\nemptyDir.sizeLimit = \"1Mi\"", []string{
			`volumes[0].emptyDir.sizeLimit: "1Mi" added (restarts the pod)`,
		}},
		{"no label", `labels.app = "web"`, "", []string{`labels.app: "web" removed (in place)`}},
		{
			"command", "env.A", "command = [\"sh\", \"-c\", \"true\"]\nenv.A",
			[]string{`containers[0].command: ["sh", "-c", "true"] added (restarts container app)`},
		},
		{"variables", `env.A = "1"`, "env.B = \"1\"\nenv.A = \"2\"", []string{
			`containers[0].env[0]: { name = "B", value = "1" } added (restarts container app)`,
			`containers[0].env[1].value: "1" -> "2" (restarts container app)`,
		}},
		{"renamed container", `name = "worker"`, `name = "job"`, []string{
			`containers[1]: "job" added (starts container job)`, `containers[1]: "worker" removed (stops container worker)`,
		}},
		{"init container", "[[volumes]]", "[[initContainers]]\nname = \"init\"\nimage = \"busybox:1.36\"\n[[volumes]]", []string{
			`initContainers[0]: "init" added (at the next start of the pod)`,
		}},
		{"volume", `name = "data"`, "name = \"data\"\nhostPath.path = \"/data\"", []string{
			`volumes[0].emptyDir: {} removed (restarts the pod, the content of the volume is lost)`,
			`volumes[0].hostPath: { path = "/data" } added (restarts the pod)`,
		}},
		{
			"probe", "env.A", "readinessProbe = { httpGet = { port = \"http\" } }\nports = [{ name = \"http\", containerPort = 80 }]\nenv.A",
			[]string{
				`containers[0].ports[0]: { name = "http", containerPort = 80, protocol = "TCP" } added (in place)`,
				`containers[0].readinessProbe: { httpGet = { path = "/", port = "http", scheme = "HTTP" }, periodSeconds = 10, ` +
					`timeoutSeconds = 1, ` +
					`successThreshold = 1, failureThreshold = 3 } added (in place)`,
			},
		},
		{"limit", "env.A", "resources.limits.memory = \"64Mi\"\nenv.A", []string{
			`containers[0].resources.limits.memory: "64Mi" added (restarts the pod)`,
		}},
		{"secret", "hunter2", "hunter3", []string{`secrets[0].data.password: (changed) (in place)`}},
		{
			"key of a secret", "data.password", "data.user",
			[]string{`secrets[0].data.password: removed (in place)`, `secrets[0].data.user: added (in place)`},
		},
		{"secret in use", "env.A = \"1\"", "env.A.secretKeyRef = { name = \"db\", key = \"password\" }", []string{
			`containers[0].env[0].value: "1" removed (restarts container app)`,
			`containers[0].env[0].valueFrom: { secretKeyRef = { name = "db", key = "password" } } added (restarts container app)`,
		}},
		{"notation", "labels.app = \"web\"", "name = \"pair\"\nlabels = { 'app' = 'web' } # the same", nil},
		{"order of volumes", "[[volumes]]\nname = \"data\"", "[[volumes]]\nname = \"data\"\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, between(t, web, strings.Replace(web, test.old, test.new, 1))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPages: a volume gets pages of another size if containers request others.
func TestPages(t *testing.T) {
	volume := func(limits string) string {
		return "containers = [{ name = \"a\", image = \"a\", resources.limits = { cpu = 1, " + limits + " } }]\n" +
			"volumes = [{ name = \"v\", emptyDir.medium = \"HugePages\" }]\n"
	}
	want := []string{
		`containers[0].resources.limits.hugepages-1Gi: "1Gi" added (restarts the pod)`,
		`containers[0].resources.limits.hugepages-2Mi: "2Mi" removed (restarts the pod)`,
		`volumes[0].emptyDir.medium: "HugePages" (2Mi) -> "HugePages" (1Gi) (restarts the pod, the content of the volume is lost)`,
	}
	two := volume(`hugepages-2Mi = "2Mi"`)
	if diff := cmp.Diff(want, between(t, two, volume(`hugepages-1Gi = "1Gi"`))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = []string{`containers[0].resources.limits.hugepages-2Mi: "2Mi" -> "4Mi" (restarts the pod)`}
	if diff := cmp.Diff(want, between(t, two, volume(`hugepages-2Mi = "4Mi"`))); diff != "" {
		t.Errorf("other number (-want +got):\n%s", diff)
	}
}

// TestDiff checks the lines in which lists and texts differ: only those, with three equal ones before and after, and none for secrets.
func TestDiff(t *testing.T) {
	const script = "command = [\"sh\", \"-c\", \"\"\"\na\nb\nc\nd\n%s\ne\nf\ng\nh\n\"\"\"]\nenv.A"
	config := web + "[[configMaps]]\nname = \"site\"\ndata.conf = \"%s\"\ndata.word = \"a\"\n"
	for _, test := range []struct{ name, old, new, want string }{
		{"script", fmt.Sprintf(script, "one"), fmt.Sprintf(script, "two"), "...\n b\n c\n d\n-one\n+two\n e\n f\n g\n..."},
		{"element", `args = ["-a", "-b"]` + "\nenv.A", `args = ["-a", "-c", "-b"]` + "\nenv.A", " -a\n+-c\n -b"},
		{"one element", `args = ["-a"]` + "\nenv.A", `args = ["-b"]` + "\nenv.A", ""},
		{"no list before", "env.A", `args = ["-a", "-b"]` + "\nenv.A", ""},
	} {
		before, after := strings.Replace(web, "env.A", test.old, 1), strings.Replace(web, "env.A", test.new, 1)
		changes := change.Between(accept(t, "/srv", before), accept(t, "/srv", after))
		if len(changes) != 1 || changes[0].Diff != test.want {
			t.Errorf("%s: %q, want %q", test.name, changes, test.want)
		}
	}
	changes := change.Between(accept(t, "/srv", fmt.Sprintf(config, `a\nb`)), accept(t, "/srv", fmt.Sprintf(config, `a\nc`)))
	if len(changes) != 1 || changes[0].Diff != " a\n-b\n+c" {
		t.Errorf("config map: %q", changes)
	}
	changes = change.Between(accept(t, "/srv", web), accept(t, "/srv", strings.Replace(web, `"hunter2"`, `"a\nb"`, 1)))
	if len(changes) != 1 || changes[0].Diff != "" {
		t.Errorf("secret: %q", changes)
	}
	long := strings.Repeat("a\n", 5000)
	withScript := func(text string) *spec.Pod {
		return accept(t, "/srv", strings.Replace(web, "env.A", fmt.Sprintf(script, text), 1))
	}
	changes = change.Between(withScript(long+"x"), withScript(long+"y"))
	if len(changes) != 1 || !strings.Contains(changes[0].Diff, "-x\n+y") || len(changes[0].Diff) > 100 {
		t.Errorf("a long text: %q", changes)
	}
}

// TestLongValues checks that long values are shortened between two characters.
func TestLongValues(t *testing.T) {
	lines := between(t, web, strings.Replace(web, `env.A = "1"`, `env.A = "`+strings.Repeat("ä", 5000)+`"`, 1))
	if len(lines) != 1 || len(lines[0]) > 300 || !strings.Contains(lines[0], "ä... (") {
		t.Errorf("%q", lines)
	}
}

// TestSecretsAreHidden checks that no change contains the value of a secret, in any format.
func TestSecretsAreHidden(t *testing.T) {
	before := accept(t, "/srv", web)
	for _, text := range []string{
		strings.Replace(web, "hunter2", "hunter3", 1), strings.Replace(web, "password", "user", 1), web[:strings.Index(web, "[[secrets]]")],
	} {
		after := accept(t, "/srv", text)
		for _, changes := range [][]change.Change{change.Between(before, after), change.Between(after, before)} {
			encoded, err := json.Marshal(changes)
			if err != nil {
				t.Fatal(err)
			}
			if shown := fmt.Sprintf("%+v %#v %s", changes, changes, encoded); strings.Contains(shown, "hunter") || len(changes) == 0 {
				t.Errorf("%s", shown)
			}
		}
	}
}

// TestHash checks that a pod or a container with an equal hash is unchanged although its defaults differ, and that hashes that differ do
// not count: those of another version, or of a path that has become absolute.
func TestHash(t *testing.T) {
	old := accept(t, "/srv", web)
	newer := accept(t, "/srv", web)
	newer.Containers[0].TerminationMessagePath = "/dev/other-default"
	newer.TerminationGracePeriodSeconds = 40
	if found := change.Between(old, newer); len(found) > 0 {
		t.Errorf("equal pod: %v", found)
	}
	newer.Hash, newer.TerminationGracePeriodSeconds = "v1:other", old.TerminationGracePeriodSeconds
	if found := change.Between(old, newer); len(found) > 0 {
		t.Errorf("equal container: %v", found)
	}
	newer.Containers[0].Hash = "v2:" + strings.TrimPrefix(old.Containers[0].Hash, "v1:")
	if found := change.Between(old, newer); len(found) != 1 || found[0].Path != "containers[0].terminationMessagePath" {
		t.Errorf("a hash of another version: %v", found)
	}
	mount := "[[containers]]\nname = \"c\"\nimage = \"i:1\"\n[[volumes]]\nname = \"v\"\nhostPath.path = %q\n"
	relative, absolute := accept(t, "/srv/shop",
		fmt.Sprintf(mount, "data")), accept(t, "/etc/podstead/pods.d", fmt.Sprintf(mount, "/srv/shop/data"))
	relative.Hash = "v1:other"
	if found := change.Between(relative, absolute); len(found) > 0 {
		t.Errorf("a path that became absolute: %v", found)
	}
	if found := change.Between(accept(t, "/srv/a", fmt.Sprintf(mount, "data")),
		accept(t, "/srv/b", fmt.Sprintf(mount, "data"))); change.Largest(found) != change.RestartPod {
		t.Errorf("the same relative path in another directory: %v", found)
	}
}

// TestOrder checks that the order of containers, variables and mounts counts, and that of volumes does not.
func TestOrder(t *testing.T) {
	const pod = "[[containers]]\nname = \"c\"\nimage = \"i:1\"\n%s[[volumes]]\nname = \"v\"\n[[volumes]]\nname = \"w\"\n"
	reversed := strings.Replace(strings.Replace(pod, `"v"`, `"x"`, 1), `"w"`, `"v"`, 1)
	reversed = strings.Replace(reversed, `"x"`, `"w"`, 1)
	if lines := between(t, fmt.Sprintf(pod, ""), fmt.Sprintf(reversed, "")); len(lines) > 0 {
		t.Errorf("order of volumes: %v", lines)
	}
	lines := between(t, fmt.Sprintf(pod, "env = [{ name = \"A\" }, { name = \"B\" }]\n"),
		fmt.Sprintf(pod, "env = [{ name = \"B\" }, { name = \"A\" }]\n"))
	if want := []string{`containers[0].env: ["A", "B"] -> ["B", "A"] (restarts container c)`}; !slices.Equal(lines, want) {
		t.Errorf("order of variables: %v, want %v", lines, want)
	}
	twice := "env = [{ name = \"A\", value = \"1\" }, { name = \"A\", value = %q }]\n"
	lines = between(t, fmt.Sprintf(pod, fmt.Sprintf(twice, "2")), fmt.Sprintf(pod, fmt.Sprintf(twice, "3")))
	if want := []string{`containers[0].env[1].value: "2" -> "3" (restarts container c)`}; !slices.Equal(lines, want) {
		t.Errorf("a variable that is set twice: %v, want %v", lines, want)
	}
}

// TestEffectJSON checks that changes come back from JSON.
func TestEffectJSON(t *testing.T) {
	want := []change.Change{
		{Path: "a", Effect: change.InPlace}, {Path: "b", Container: "c", Old: "1", New: "2", Effect: change.RestartContainer},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got []change.Change
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(string(text), `"effect":"RestartContainer"`) {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
	if err := json.Unmarshal([]byte(`{"effect":"Other"}`), &change.Change{}); err == nil {
		t.Error("an unknown effect is accepted")
	}
}

// TestLostSecrets checks that a pod whose secrets were lost with its state differs from itself only in them.
func TestLostSecrets(t *testing.T) {
	pod := accept(t, "/srv", web)
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var lost spec.Pod
	if err := json.Unmarshal(text, &lost); err != nil {
		t.Fatal(err)
	}
	if found := change.Between(&lost, pod); len(found) > 0 {
		t.Errorf("%v", found)
	}
	lost.Hash = ""
	if found := change.Between(&lost, pod); len(found) != 1 || found[0].Path != "secrets[0].data.password" {
		t.Errorf("%v", found)
	}
}
