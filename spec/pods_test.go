package spec

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readPodsFile(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/several/pods.toml")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPods checks that each pod of a file is the same as alone, that its text defines it, and keeps its notation and its comments.
func TestPods(t *testing.T) {
	parts, problems := Options{}.ParseParts("/a/shop.toml", readPodsFile(t))
	if len(problems) > 0 || len(parts) != 2 || parts[0].Name != "db" || parts[1].Name != "web" {
		t.Fatalf("%d parts, %v", len(parts), problems)
	}
	want := []string{`# Two pods of one file.

# the database
name = "db"
volumes.data = {}

# It writes to the volume.
[[containers]]
name = "postgres"
image = "docker.io/library/postgres:17"
env.PGDATA = "/data/pg"
volumeMounts.data = "/data"
readinessProbe.exec = ["pg_isready"]
`, `name = "web"
waitFor = ["pod:db:ready"]

[[containers]]
name = "nginx"
image = "docker.io/library/nginx:1.27"
ports = ["8080:80"]
livenessProbe = { httpGet = ":80/", periodSeconds = 5 }

[[volumes]]
name = "page"
configMap.name = "page"

[[configMaps]]
name = "page"
data."index.html" = "hello"
# The end.
`}
	for i := range parts {
		text, err := parts[i].Text()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], string(text)); diff != "" {
			t.Errorf("text of pod %s (-want +got):\n%s", parts[i].Name, diff)
		}
		if diff := cmp.Diff(parts[i].Pod, mustParse(t, "/a/shop.toml", string(text))); diff != "" {
			t.Errorf("pod %s alone (-in the file +alone):\n%s", parts[i].Name, diff)
		}
		own, err := Own("/a/shop.toml", readPodsFile(t), parts[i].Name)
		if err != nil || string(own) != string(text) {
			t.Errorf("own text of pod %s: %v\n%s", parts[i].Name, err, own)
		}
	}
	if pod, problems := Parse("/a/shop.toml", readPodsFile(t)); pod != nil || len(problems) != 1 ||
		problems[0].Message != "file defines several pods: db, web" || problems[0].Line != 15 {
		t.Errorf("%v, %v", pod, problems)
	}
}

// TestConvertPods converts a file with several pods, and a stream of manifests, and reads the result.
func TestConvertPods(t *testing.T) {
	stream := manifestHead + manifestTail + "---\n" + strings.Replace(manifestHead, "web", "db", 1) + manifestTail
	for file, given := range map[string][]byte{"/a/shop.toml": readPodsFile(t), "/a/shop.yaml": []byte(stream)} {
		want, _ := Options{}.ParseParts(file, given)
		for _, short := range []bool{false, true} {
			text, problems := Options{}.Convert(file, given, short)
			got, found := Options{}.ParseParts("/a/shop.toml", text)
			if len(problems) > 0 || len(found) > 0 || len(got) != 2 {
				t.Fatalf("%v%v\n%s", problems, found, text)
			}
			for i := range got {
				if diff := cmp.Diff(want[i].Pod, got[i].Pod); diff != "" {
					t.Errorf("%s: pod %s (-want +got):\n%s", file, want[i].Name, diff)
				}
			}
			again, _ := Options{}.Convert("/a/shop.toml", text, short)
			if diff := cmp.Diff(string(text), string(again)); diff != "" {
				t.Errorf("%s: the text is not stable (-want +got):\n%s", file, diff)
			}
			if short && file == "/a/shop.toml" && !strings.Contains(string(text), "[[pods]]    # the database\n") {
				t.Errorf("no comment:\n%s", text)
			}
		}
	}
}

// TestBadPods checks the problems of files with several pods: they have the line, and name the pod.
func TestBadPods(t *testing.T) {
	const first = "[[pods]]\nname = \"a\"\n[[pods.containers]]\nname = \"app\"\nimage = \"i\"\n"
	second := func(line string) string {
		return first + "[[pods]]\nname = \"b\"\n[[pods.containers]]\nname = \"app\"\n" + line + "\n"
	}
	for _, test := range []struct{ text, problem, hint string }{
		{second("imagee = \"i\""), `web.toml:10:1: pods.b.containers[0].imagee: unknown field`, `did you mean "image"?`},
		{
			second("image = \"i\"\nports = [\"x:y\"]"),
			`web.toml:11:10: pods.b.containers[0].ports[0]: Invalid value: "x:y": must be ` + portForms, "",
		},
		{
			second("image = \"i\"\nhostname = \"x\""),
			`web.toml:11:1: pods.b.containers[0].hostname: ` +
				`"hostname" is a field of pods.b, not of pods.b.containers[0]`,
			"move it above the header [pods.containers]",
		},
		{
			second("image = \"i\"\nvolumeMounts.v = \"/v\""),
			`web.toml:11:14: pods.b.containers[0].volumeMounts.v: Not found: volume "v"`, "",
		},
		{first + "[[pods]]\n[[pods.containers]]\nname = \"app\"\nimage = \"i\"", `web.toml:6:3: pods[1]: name: Required value`, ""},
		{first + "[[pods]]\nname = \"B\"\n[[pods.containers]]\nname = \"app\"\nimage = \"i\"", ``, ""},
		{
			first + first, `web.toml:7:1: pods.a.name: Duplicate value: pod "a" is already defined in this file`, "",
		},
		{
			"labels.a = \"b\"\n" + first, `web.toml:1:1: labels: is not in a table [[pods]]: a file with pods has no other fields`,
			"move it below the header [[pods]] of a pod",
		},
		{
			first + "[[containers]]\nname = \"b\"\nimage = \"i\"\n",
			`web.toml:6:3: containers: is not in a table [[pods]]: a file with pods has no other fields`,
			"move it below the header [[pods]] of a pod",
		},
		{"[pods]\nname = \"a\"\n", `web.toml:1:2: pods: must be an array of tables, found table`, "write [[pods]] instead of [pods]"},
		{"pods = \"a\"\n", `web.toml:1:8: pods: must be an array of tables, found string "a"`, "begin each pod with a header [[pods]]"},
		{"pods = []\n", `web.toml:1:1: pods: must not be empty`, "begin each pod with a header [[pods]]"},
		{"pods = [1]\n", `web.toml:1:9: pods[0]: must be a table, found integer 1`, ""},
		{strings.Repeat("[[pods]]\nname = \"a\"\n", maxParts+1), `web.toml:257:3: pods: file defines more than 128 pods`, ""},
		{
			second("image = \"i\"\n[pods.containers.livenessProbe]\nexec = [\"true\"]\nterminationGracePeriodSeconds = 5"),
			`web.toml:13:1: pods.b.containers[0].livenessProbe.terminationGracePeriodSeconds: applies to the livenessProbe of ` +
				`pods.b.containers[0] "app", and is not set for the pod`, "set it for the pod below its header [[pods]]",
		},
	} {
		_, problems := Options{}.ParseParts("web.toml", []byte(test.text))
		if len(problems) != 1 || test.problem != "" && (problems[0].String() != test.problem || problems[0].Hint != test.hint) {
			t.Errorf("%s\n%s\nwant %s\nhint: %s", test.text, report(problems), test.problem, test.hint)
		}
	}
	// An invalid pod does not keep the others.
	parts, _ := Options{}.ParseParts("web.toml", []byte(second("")))
	if len(parts) != 2 || parts[0].Pod == nil || parts[1].Pod != nil || parts[1].Name != "b" || len(parts[0].Problems) > 0 {
		t.Errorf("%+v", parts)
	}
}

// FuzzPods checks that the text of each pod of a file defines the same pod.
func FuzzPods(f *testing.F) {
	f.Add([]byte("[[pods]]\nname = \"a\"\n[[pods.containers]]\nname = \"b\"\nimage = \"c\"\nsecrets.a = \"b\"\n" +
		"[[pods]]\nname = \"b\"\ncontainers = [{ name = \"a\", image = \"i\", exec = [], ports = [\"80:80\"] }]\n"))
	addFiles(f, func(name string, data []byte) {
		if strings.HasSuffix(name, ".toml") {
			f.Add(data)
			body := strings.NewReplacer("[[", "[[pods.", "\n[", "\n[pods.", "\n[pods.[", "\n[[").Replace(string(data))
			f.Add([]byte("[[pods]]\n" + body + "\n[[pods]]\nname = \"other\"\n[[pods.containers]]\nname = \"a\"\nimage = \"i\"\n"))
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		parts, _ := Options{}.ParseParts("/a/web.toml", data)
		for i := range parts {
			if parts[i].Pod == nil {
				continue
			}
			text, err := parts[i].Text()
			if err != nil {
				t.Fatal(err)
			}
			alone, problems := Parse("/a/web.toml", text)
			if alone == nil || alone.Hash != parts[i].Pod.Hash {
				t.Errorf("%v\n%s\n%s", problems, cmp.Diff(parts[i].Pod, alone), text)
			}
		}
	})
}
