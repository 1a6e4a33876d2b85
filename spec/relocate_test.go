package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const relocatable = `# A shop. "data"
imageArchives = ["shop.tar", 'lib/b.tar', "/abs/c.tar"] # "shop.tar"

[[containers]]
name = "c"
image = "i:1"
env.DATA = "data"

[[volumes]]
name = "v" # hostPath = "data"
hostPath = { path = "data", type = "Directory" }

[[volumes]]
name = "w"
hostPath.path = """
../w"""

[[configMaps]]
name = "conf"
envFile = 'conf.env'

[[secrets]]
name = "db"
	envFile   =   "\u0064b.env"   # "db.env"
`

const relocated = `# A shop. "data"
imageArchives = ["/srv/shop/shop.tar", "/srv/shop/lib/b.tar", "/abs/c.tar"] # "shop.tar"

[[containers]]
name = "c"
image = "i:1"
env.DATA = "data"

[[volumes]]
name = "v" # hostPath = "data"
hostPath = { path = "/srv/shop/data", type = "Directory" }

[[volumes]]
name = "w"
hostPath.path = "/srv/w"

[[configMaps]]
name = "conf"
envFile = "/srv/shop/conf.env"

[[secrets]]
name = "db"
	envFile   =   "/srv/shop/db.env"   # "db.env"
`

// manifestWith returns a manifest with volumes.
func manifestWith(volumes string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: c\n    image: i:1\n    command: [data]\n" +
		volumes
}

// TestRelocate checks that paths become absolute, and that everything else is unchanged.
func TestRelocate(t *testing.T) {
	for _, test := range []struct{ name, file, in, want string }{
		{"TOML", "/srv/shop/web.toml", relocatable, relocated},
		{"already absolute", "/elsewhere/web.toml", relocated, relocated},
		{
			"spaces and quotes", `/srv/a "b" \c/web.toml`, "imageArchives = [\"x\"]\n[[containers]]\nname = \"c\"\nimage = \"i:1\"\n",
			"imageArchives = [\"/srv/a \\\"b\\\" \\\\c/x\"]\n[[containers]]\nname = \"c\"\nimage = \"i:1\"\n",
		},
		{
			"carriage returns", "/srv/web.toml",
			"imageArchives = [\r\n\t\"x\",\r\n]\r\n[[containers]]\r\nname = \"c\"\r\nimage = \"i:1\"\r\n",
			"imageArchives = [\r\n\t\"/srv/x\",\r\n]\r\n[[containers]]\r\nname = \"c\"\r\nimage = \"i:1\"\r\n",
		},
		{
			"plain YAML", "/srv/shop/web.yaml",
			manifestWith("  volumes: # data\n  - {name: v, hostPath: {path: data}} # data\n  imageArchives:\n  - ä.tar # x\n"),
			manifestWith("  volumes: # data\n  - {name: v, hostPath: {path: /srv/shop/data}} # data\n  imageArchives:\n  - " +
				"\"/srv/shop/ä.tar\" # x\n"),
		},
		{
			"quoted YAML", "/srv/shop/web.yml",
			manifestWith("  imageArchives: [\"it's \\\"x\\\"\", 'it''s', ! 'y']\n"),
			manifestWith("  imageArchives: [\"/srv/shop/it's \\\"x\\\"\", \"/srv/shop/it's\", ! \"/srv/shop/y\"]\n"),
		},
		{
			"characters before the value", "/srv/web.yaml",
			manifestWith("  volumes: [{name: v, \"hostPath\": {type: \"\", 'path': x}}]\n  hostname: h\n  imageArchives: [ä, b]\n"),
			manifestWith("  volumes: [{name: v, \"hostPath\": {type: \"\", 'path': /srv/x}}]\n  hostname: h\n  imageArchives: " +
				"[\"/srv/ä\", /srv/b]\n"),
		},
		{
			"an anchor for two paths", "/srv/web.yaml",
			manifestWith("  volumes: [{name: v, hostPath: {path: &a x}}, {name: w, hostPath: {path: *a}}]\n"),
			manifestWith("  volumes: [{name: v, hostPath: {path: &a /srv/x}}, {name: w, hostPath: {path: *a}}]\n"),
		},
		{
			"JSON", "/srv/web.json",
			`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"imageArchives": ["x"], "containers": [{"name": ` +
				`"c", "image": "i:1"}]}}`,
			`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"imageArchives": ["/srv/x"], "containers": ` +
				`[{"name": "c", "image": "i:1"}]}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Relocate(test.file, []byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkRelocated(t, test.file, []byte(test.in), got)
		})
	}
}

// checkRelocated checks that a text defines the same pod in another directory.
func checkRelocated(t *testing.T, file string, before, after []byte) {
	t.Helper()
	want, _ := Parse(file, before)
	got, problems := Parse(filepath.Join("/other", filepath.Base(file)), after)
	if want == nil || got == nil {
		t.Fatalf("%v\n%s", problems, after)
	}
	got.Dir = want.Dir
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, after)
	}
}

// TestRelocateGenerateName checks that the text of a manifest with generateName defines the same pod each time.
func TestRelocateGenerateName(t *testing.T) {
	for _, in := range []string{
		strings.Replace(manifestWith(""), "name: web", "generateName: web- # a name", 1),
		strings.Replace(manifestWith(""), "name: web", `"generateName": 'web-'`, 1),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-"},"spec":{"containers":[{"name":"c","image":"i:1"}]}}`,
	} {
		got, err := Relocate("web.yaml", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		name := regexp.MustCompile(`"web-[a-z0-9]{5}"`).FindString(string(got))
		want := strings.NewReplacer("generateName", "name", "'web-'", name, `"web-"`, name, ": web-", ": "+name).Replace(in)
		if name == "" || string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
		pod, problems := Parse("other.yaml", got)
		if pod == nil || `"`+pod.Name+`"` != name {
			t.Errorf("name of %v, want %s: %v", pod, name, problems)
		}
	}
}

// TestRelocateImpossible checks that a value that cannot be replaced is an error with its position, never another pod.
func TestRelocateImpossible(t *testing.T) {
	for name, test := range map[string]struct{ file, in, want string }{
		"invalid": {"/srv/web.toml", "name = 1\n", "web.toml:1:8: name: must be a string"},
		"block": {
			"/srv/web.yaml", manifestWith("  imageArchives:\n  - |-\n    x\n"),
			`web.yaml:11:5: spec.imageArchives[0]: cannot be replaced by "/srv/x"`,
		},
		"several lines": {
			"/srv/web.yaml", manifestWith("  imageArchives:\n  - x\n    y\n"),
			`web.yaml:11:5: spec.imageArchives[0]: cannot be replaced by "/srv/x y"`,
		},
		"shared anchor": {
			"/srv/web.yaml", manifestWith("  hostname: &x data\n  imageArchives: [*x]\n"),
			`web.yaml:10:13: spec.imageArchives[0]: cannot be replaced by "/srv/data"`,
		},
		"two names": {
			"/srv/web.yaml", strings.Replace(manifestWith(""), "name: web", "generateName: web-\n  name:", 1), "cannot be replaced by",
		},
		"directory name": {
			"/srv/\xff/web.toml", "imageArchives = [\"x\"]\n[[containers]]\nname = \"c\"\nimage = \"i:1\"\n", "cannot be replaced by",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Relocate(test.file, []byte(test.in))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q, %v, want %s", got, err, test.want)
			}
			if problems, ok := err.(Problems); !ok || len(problems.Errors()) == 0 { //nolint:errorlint // it is documented
				t.Errorf("error %T without a problem", err)
			}
		})
	}
}

// TestAcceptRelocated checks that a file that was accepted once has, at each path, the definition and the problems that its text has there.
func TestAcceptRelocated(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db.env"), []byte("K=v\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	container := "[[containers]]\nname = \"c\"\nimage = \"i:1\"\nports = [{ containerPort = 80, hostPort = 80 }]\n"
	for _, test := range []struct {
		name, file, text string
		elsewhere        bool // the text defines the same pod under another name of the file
	}{
		{"name of the file", "web.toml", container, false},
		{"name in the text", "web.toml", "name = \"site\"\n" + container, true},
		{"env file", "web.toml", "secrets = [{ name = \"s\", envFile = \"db.env\" }]\n" + container, false},
		{"absolute env file", "web.toml", "configMaps = [{ name = \"s\", envFile = \"" + dir + "/db.env\" }]\n" + container, false},
		{"YAML", "web.yaml", manifestWith("  imageArchives: [x]\n"), true},
		{"generated name", "web.yaml", strings.Replace(manifestWith(""), "name: web", "generateName: web-", 1), true},
		{"invalid", "web.toml", "x = 1\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := filepath.Join(dir, test.file)
			a, found, err := AcceptRelocated(from, []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if _, want := Accept(from, []byte(test.text)); cmp.Diff(want, found) != "" {
				t.Errorf("problems (-want +got):\n%s", cmp.Diff(want, found))
			}
			if want, _ := Accept(from, a.Text); cmp.Diff(want, a.Pod) != "" {
				t.Errorf("pod (-want +got):\n%s", cmp.Diff(want, a.Pod))
			}
			for name, is := range map[string]bool{"web": a.Pod != nil, "other": test.elsewhere} {
				path := "/pods.d/" + name + filepath.Ext(test.file)
				moved, ok := a.At(path)
				if ok != is {
					t.Fatalf("%s: the same pod %v, want %v", path, ok, is)
				}
				if !ok {
					continue
				}
				pod, problems := Accept(path, a.Text)
				if diff := cmp.Diff(pod, moved.Pod) + cmp.Diff(problems, moved.Problems); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

// FuzzRelocate checks that a relocated text defines the same pod in another directory.
func FuzzRelocate(f *testing.F) {
	addFiles(f, func(name string, data []byte) { f.Add(data, uint8(len(name)%3)) })
	f.Add([]byte(relocatable), uint8(0))
	f.Add([]byte(manifestWith("  imageArchives: [&a x, *a, ! 'y', \"z\"]\n")), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, format uint8) {
		if len(data) > 1<<14 {
			return
		}
		file := fmt.Sprintf("/srv/ä b/web.%s", []string{"toml", "yaml", "json"}[format%3])
		before, _ := Parse(file, data)
		after, err := Relocate(file, data)
		switch {
		case before == nil && err == nil:
			t.Fatalf("an invalid file was relocated:\n%s", after)
		case err != nil || strings.Contains(string(data), generateNameKey):
			return
		}
		checkRelocated(t, file, data, after)
	})
}
