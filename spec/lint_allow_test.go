package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// TestAllow checks which warnings a comment silences, by their lines.
func TestAllow(t *testing.T) {
	const (
		two = `name = "web"
[[containers]]
name = "a"
image = "a:1"
command = ["a b"]
resources.limits.memory = "100m"
[[containers]]
name = "b"
image = "b:1"
command = ["a b"]
[containers.resources.limits]
memory = "100m"
`
		manifest = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: a
    image: a:1
    command: ["a b"]
  - name: b
    image: b:1
    command:
    - a b
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: 2
  selector: {matchLabels: {app: app}}
  template:
    metadata:
      labels: {app: app}
    spec:
      containers:
      - name: c
        image: c:1
        command: ["a b"]
`
		flow    = "{apiVersion: v1, kind: Pod, metadata: {name: f}, spec: {containers: [{name: a, image: a, command: [a b]}]}}\n"
		inArray = "name = \"web\"\ncontainers = [\n  { name = \"a\", image = \"a:1\", command = [\"a b\"] },\n" +
			"  { name = \"b\", image = \"b:1\", command = [\"a b\"] },\n]\n"
		several = "[[pods]]\nname = \"a\"\n[[pods.containers]]\nname = \"a\"\nimage = \"a:1\"\ncommand = [\"a b\"]\n" +
			"[[pods]]\nname = \"b\"\n[[pods.containers]]\nname = \"b\"\nimage = \"b:1\"\ncommand = [\"a b\"]\n"
		words  = "command-in-one-string"
		beside = " # podstead: allow " + words
		above  = "# podstead: allow " + words + "\n"
	)
	// insert adds a text before the n-th place, from 1, that has another one.
	insert := func(text, at string, n int, comment string) string {
		parts := strings.SplitAfterN(text, at, n+1)
		before, last := strings.Join(parts[:n], ""), strings.Join(parts[n:], "")
		return strings.TrimSuffix(before, at) + comment + at + last
	}
	for _, test := range []struct {
		name, file, text string
		want             string // line and code of each warning, without the comments
	}{
		{"none", "web.toml", two, "5 words, 6 milli, 10 words, 12 milli"},
		{"above the value", "web.toml", insert(two, "command", 1, above), "7 milli, 11 words, 13 milli"},
		{"beside the value", "web.toml", strings.Replace(two, "[\"a b\"]", "[\"a b\"]"+beside, 1), "6 milli, 10 words, 12 milli"},
		{"above a table of an array", "web.toml", insert(two, "[[containers]]", 1, above), "7 milli, 11 words, 13 milli"},
		{"beside a header", "web.toml", strings.ReplaceAll(two, "[[containers]]", "[[containers]]"+beside), "6 milli, 12 milli"},
		{"above the last table", "web.toml", insert(two, "[[containers]]", 2, above), "5 words, 6 milli, 13 milli"},
		{
			"above another header", "web.toml", insert(two, "[containers.resources", 1, "# podstead: allow millibytes\n"),
			"5 words, 6 milli, 10 words",
		},
		{"above a value beside it", "web.toml", insert(two, "image", 1, above), "6 words, 7 milli, 11 words, 13 milli"},
		{"above the first value", "web.toml", above + two, "7 milli, 13 milli"},
		{"several codes and a reason", "web.toml", "\n#  podstead:allow  millibytes,command-in-one-string # it is a test\n\n" + two, ""},
		{"with comments around it", "web.toml", "# A pod.\n" + above + "# It has two containers.\n\n" + two, "10 milli, 16 milli"},
		{
			"in a string", "web.toml", strings.Replace(two, `"a:1"`, `"a:1"`+"\nworkingDir = \"/# podstead: allow millibytes\"", 1),
			"6 words, 7 milli, 11 words, 13 milli",
		},
		{"above an element", "web.toml", insert(inArray, "  {", 1, above), "5 words"},
		{"beside an array", "web.toml", strings.Replace(inArray, "= [\n", "= ["+beside+"\n", 1), ""},
		{
			"no other comment", "web.toml", "# podstead: allows " + words + "\n# about podstead: allow " + words + "\n" + two,
			"7 words, 8 milli, 12 words, 14 milli",
		},
		{"above a pod", "web.toml", insert(several, "[[pods]]", 2, above), "6 words"},
		{"above the first pod", "web.toml", above + several, ""},

		{
			"beside a dotted key", "web.toml", strings.Replace(two, "resources.limits.memory = \"100m\"",
				"resources.limits.memory = \"100m\" # podstead: allow millibytes\nresources.requests.memory = \"50m\"", 1),
			"5 words, 7 milli, 11 words, 13 milli",
		},
		{
			"above a dotted key", "web.toml", strings.Replace(two, "resources.limits.memory = \"100m\"",
				"# podstead: allow millibytes\nresources.limits.memory = \"100m\"\nresources.requests.memory = \"50m\"", 1),
			"5 words, 8 milli, 12 words, 14 milli",
		},
		{"above the header of the values", "web.toml", strings.Replace(two, "[containers.resources.limits]\n",
			"# podstead: allow millibytes\n[containers.resources]\nlimits.memory = \"200m\"\nrequests.", 1), "5 words, 6 milli, 10 words"},

		{"YAML: none", "web.yaml", manifest, "9 words, 13 words, 29 words"},
		{"YAML: above the value", "web.yaml", insert(manifest, "    command", 1, "    "+above), "14 words, 30 words"},
		{"YAML: beside the value", "web.yaml", strings.Replace(manifest, "- a b", "- a b"+beside, 1), "9 words, 29 words"},
		{"YAML: beside the key", "web.yaml", strings.Replace(manifest, "command:\n", "command:"+beside+"\n", 1), "9 words, 29 words"},
		{"YAML: above an element", "web.yaml", insert(manifest, "  - name: a", 1, "  "+above), "14 words, 30 words"},
		{"YAML: above a list", "web.yaml", insert(manifest, "  containers", 1, "  "+above), "30 words"},
		{"YAML: in a template", "web.yaml", insert(manifest, "      - name: c", 1, "      "+above), "9 words, 13 words"},
		{"YAML: above the first value", "web.yaml", "---\n" + above + manifest, ""},
		{"YAML: beside the begin of the first document", "web.yaml", "---" + beside + "\n" + manifest, ""},
		{"YAML: below a directive", "web.yaml", "%YAML 1.1\n---\n" + above + manifest, ""},
		{"YAML: above a directive", "web.yaml", above + "%YAML 1.1\n---\n" + manifest, ""},
		{"YAML: below a marker with a comment", "web.yaml", "--- # A pod.\n" + above + manifest, ""},
		{"YAML: above the first value, on its line", "web.yaml", above + "--- " + flow, ""},
		{
			"YAML: beside the first value, on its line", "web.yaml",
			"--- " + strings.TrimSuffix(flow, "\n") + beside + "\n---\n" + manifest, "11 words, 15 words, 31 words",
		},
		{
			"YAML: above the first value of the second document", "web.yaml", insert(manifest, "apiVersion: apps", 1, above),
			"9 words, 13 words",
		},
		{"YAML: above the marker of the second document", "web.yaml", insert(manifest, "---", 1, above), "9 words, 13 words"},
		{
			"YAML: above the second of three documents", "web.yaml",
			insert(manifest, "apiVersion: apps", 1, above) + "...\n---\n" + strings.Replace(flow, "f", "g", 1),
			"9 words, 13 words, 33 words",
		},
		{"JSON has no comments", "web.json", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": ` +
			`[` + "\n" +
			`{"name": "a", "image": "a:1", "workingDir": "/# podstead: allow command-in-one-string", "command": ["a b"]}]}}`, "2 words"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, o := range []spec.Options{{Lint: &spec.Lint{}}, {}} {
				_, problems := o.ParseParts("/pods/"+test.file, []byte(test.text))
				if errs := problems.Errors(); len(errs) > 0 {
					t.Fatal(errs)
				}
				var got []string
				for _, line := range coded(problems) {
					number, _, _ := strings.Cut(line, ":")
					code := line[strings.LastIndex(line, "(")+1:]
					got = append(got, number+" "+map[string]string{words + ")": "words", "millibytes)": "milli"}[code])
				}
				if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
					t.Errorf("lint %v (-want +got):\n%s\n%s", o.Lint != nil, diff, test.text)
				}
			}
		})
	}
}

// TestAllowDottedTable checks that a comment beside a dotted key silences a warning about the table that it creates, if the warning has
// this line, and no warning about the other keys.
func TestAllowDottedTable(t *testing.T) {
	const timeout = "livenessProbe.tcpSocket = 80 # podstead: allow timeout-over-period\nlivenessProbe.timeoutSeconds = 20\n"
	want := []string{"6: containers[0].livenessProbe.timeoutSeconds: a probe that times out lasts 20s, longer than periodSeconds 10, and " +
		"the next one begins after it: a container that does not respond fails the probe after failureThreshold 3 x timeoutSeconds 20 = " +
		"60s (timeout-over-period)"}
	if got, _ := lint(t, "/pods/web.toml", head+timeout, spec.Lint{}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	const start = "livenessProbe.tcpSocket = 80 # podstead: allow liveness-before-start\nlivenessProbe.failureThreshold = 1\n"
	if got, _ := lint(t, "/pods/web.toml", head+start, spec.Lint{}); len(got) > 0 {
		t.Errorf("%q", got)
	}
	const volume = "volumeMounts.v = \"/v\"\nresources.limits.memory = \"64Mi\"\n"
	const memory = "volumes.v.emptyDir.medium = \"Memory\" # podstead: allow memory-volume-over-limit\n" +
		"volumes.v.emptyDir.sizeLimit = \"1Gi\"\n"
	if got, _ := lint(t, "/pods/web.toml", memory+head+volume, spec.Lint{}); len(got) != 1 || !strings.HasPrefix(got[0], "2: ") {
		t.Errorf("%q, want a warning about line 2", got)
	}
}

// TestAllowWait checks that a comment silences a warning about several pods.
func TestAllowWait(t *testing.T) {
	text := "[[pods]]\nname = \"a\"\nwaitFor = [\n  \"pod:x:ready\",\n  \"pod:y:ready\", # podstead: allow wait-unfulfilled\n]\n" +
		"[[pods.containers]]\nname = \"a\"\nimage = \"a:1\"\n[[pods]]\nname = \"b\"\n[[pods.containers]]\nname = \"b\"\nimage = \"b:1\"\n"
	want := []string{`4: pods.a.waitFor[0]: there is no pod "x" in these files or on this host (wait-unfulfilled)`}
	got, _ := lint(t, "/pods/web.toml", text, spec.Lint{})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
