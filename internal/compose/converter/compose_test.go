package converter

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/spec"
)

var update = flag.Bool("update", false, "write the expected results")

// writeFiles writes files below a new directory of a project.
func writeFiles(t testing.TB, files []txtar.File) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// request is one for compose.yaml in a directory.
func request(dir string) *compose.Request {
	return &compose.Request{Files: []string{filepath.Join(dir, "compose.yaml")}, Names: []string{"compose.yaml"}, Dir: dir}
}

// convert returns the pods of a project as a pod file, and the problems.
func convert(t testing.TB, q *compose.Request) string {
	t.Helper()
	r := Convert(t.Context(), q)
	var b strings.Builder
	for _, p := range r.Problems {
		b.WriteString(p.String())
		if p.Warning {
			b.WriteString(" (warning)")
		}
		b.WriteString("\n")
		if p.Hint != "" {
			b.WriteString("hint: " + p.Hint + "\n")
		}
	}
	if r.Manifest == nil {
		return b.String()
	}
	text, problems := spec.Options{AllowLoss: q.AllowLoss}.Convert("compose.json", r.Manifest, true)
	if len(problems.Errors()) > 0 {
		t.Fatalf("the manifest is invalid: %v\n%s", problems, r.Manifest)
	}
	return b.String() + string(text)
}

// TestConvert compares the pod files of projects with those in testdata/convert.
func TestConvert(t *testing.T) {
	paths, err := filepath.Glob("testdata/convert/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := len(archive.Files) - 1
			if archive.Files[last].Name != "want" {
				archive.Files = append(archive.Files, txtar.File{Name: "want"})
				last++
			}
			q := request(writeFiles(t, archive.Files[:last]))
			for f := range strings.FieldsSeq(string(archive.Comment)) {
				switch name, value, _ := strings.Cut(f, "="); name {
				case "allow-loss":
					q.AllowLoss = true
				case "profile":
					q.Profiles = append(q.Profiles, value)
				case "env":
					q.Environment = append(q.Environment, value)
				default:
					t.Fatalf("unknown option %s", f)
				}
			}
			got := strings.ReplaceAll(convert(t, q), q.Dir, "/DIR")
			if *update {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[last].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

var verdictLine = regexp.MustCompile(`^# (taken|lossy|refused)(?:: (.+))?\n`)

// TestCorpus checks what becomes of Compose files after facts of public ones. The first line of each says it: taken; lossy and refused with
// a regular expression for the error.
func TestCorpus(t *testing.T) {
	counts := map[string]int{}
	paths, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		projects := map[string][]txtar.File{}
		for _, f := range archive.Files {
			name, file, _ := strings.Cut(f.Name, "/")
			projects[name] = append(projects[name], txtar.File{Name: file, Data: f.Data})
		}
		for _, name := range sortedKeys(projects) {
			t.Run(name, func(t *testing.T) {
				var m [][]byte
				for _, f := range projects[name] {
					if f.Name == "compose.yaml" {
						m = verdictLine.FindSubmatch(f.Data)
					}
				}
				if m == nil {
					t.Fatal("compose.yaml has no verdict")
				}
				verdict, want := string(m[1]), regexp.MustCompile(string(m[2]))
				counts[verdict]++
				q := request(writeFiles(t, projects[name]))
				r := Convert(t.Context(), q)
				errs := r.Problems.Errors()
				if (len(errs) > 0) != (verdict != "taken") {
					t.Fatalf("verdict %s, errors:\n%v", verdict, errs)
				}
				if verdict != "taken" && (len(m[2]) == 0 || !want.MatchString(errs.Error())) {
					t.Errorf("errors do not match %q:\n%v", want, errs)
				}
				q.AllowLoss = true
				r = Convert(t.Context(), q)
				if errs := r.Problems.Errors(); (len(errs) > 0) != (verdict == "refused") {
					t.Fatalf("with --allow-loss: verdict %s, errors:\n%v", verdict, errs)
				}
				if verdict != "refused" {
					convert(t, q)
				}
			})
		}
	}
	t.Logf("verdicts: %v", counts)
}

// TestWords checks that errors of the library have their position, and no words of the library.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"    buidl: .":                 "4:5: services.web.buidl: unknown key",
		"    ports: 80":                "4:5: services.web.ports: must be a list",
		"    environment: 5":           "4:5: services.web.environment: must be a mapping",
		"    dns: {}":                  "4:5: services.web.dns: must be a string",
		"    privileged: maybe":        `4:5: services.web.privileged: must be true or false, found "maybe"`,
		"    deploy: {replicas: many}": `4:14: services.web.deploy.replicas: must be a number, found "many"`,
		"    mem_limit: lots":          `4:5: services.web.mem_limit: must be a size such as 64m, found "lots"`,
		"    stop_grace_period: abc":   `4:5: services.web.stop_grace_period: must be a duration such as 1m30s, found "abc"`,
		"    depends_on: [db]":         `4:5: services.web.depends_on: there is no service "db", or its profile is not selected`,
		"    command: ${A:?the program}": "4:5: services.web.command: variable A is not set: the program\n" +
			"hint: set it, or write it into .env",
		"    command: ${A?}": "4:5: services.web.command: variable A is not set\nhint: set it, or write it into .env",
		"    volumes: [\"data:/data\"]": `4:5: services.web.volumes: there is no volume "data"` +
			"\nhint: define it at the top level of the file",
		"    networks: [front]": `4:5: services.web.networks: there is no network "front"` +
			"\nhint: define it at the top level of the file",
		"  db: {command: a}": "4:3: services.db: image: Required value",
		"  db: nginx":        "4:3: services.db: must be a mapping",
		"    networks: [default]\n    network_mode: host": "2:3: services.web: network_mode and networks cannot be combined",
	} {
		dir := writeFiles(t, []txtar.File{{Name: "compose.yaml", Data: []byte("services:\n  web:\n    image: nginx\n" + text + "\n")}})
		if got := convert(t, request(dir)); got != "compose.yaml:"+want+"\n" {
			t.Errorf("%s:\n%swant:\ncompose.yaml:%s", text, got, want)
		}
	}
}

// TestResult checks what a result has besides the pods.
func TestResult(t *testing.T) {
	dir := writeFiles(t, []txtar.File{{Name: "compose.yaml", Data: []byte(`
services:
  web: {image: nginx, depends_on: [db]}
  db: {image: postgres, volumes: ["data:/data", "kept:/kept"]}
  queue: {image: rabbit, volumes: ["named:/data", "same:/same"]}
volumes: {data: {}, kept: {external: true}, named: {name: other-data}, same: {name: shop_same}}
`)}})
	r := Convert(t.Context(), request(dir))
	var list struct{ Items []json.RawMessage }
	if err := json.NewDecoder(bytes.NewReader(r.Manifest)).Decode(&list); err != nil || len(list.Items) != 3 {
		t.Fatalf("%v: %v", err, r.Problems)
	}
	want := &compose.Result{
		Project: "shop", Pods: []string{"db", "queue", "web"}, Claims: []string{"other-data", "shop-data", "shop-same"},
		Named: []string{"other-data"}, Manifest: r.Manifest,
		Files: []string{filepath.Join(dir, ".env"), filepath.Join(dir, "compose.yaml")},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

// TestNames checks that names that differ only in characters that are not allowed here stand for what they are.
func TestNames(t *testing.T) {
	dir := writeFiles(t, []txtar.File{{Name: "compose.yaml", Data: []byte(`
services:
  web: {image: nginx, secrets: [a_b, a-b, A.b, a-b-2], configs: [a_b, a.b]}
secrets: {a_b: {environment: A}, a-b: {environment: B}, A.b: {environment: C}, a-b-2: {environment: D}}
configs: {a_b: {content: one}, a.b: {content: two}}
`)}})
	q := request(dir)
	q.Environment = []string{"A=first", "B=second", "C=third", "D=fourth"}
	pod, problems := spec.Parse("web.toml", []byte(convert(t, q)))
	if pod == nil {
		t.Fatal(problems)
	}
	got := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != m.Name {
				continue
			}
			for _, s := range pod.Secrets {
				if v.Secret != nil && s.Name == v.Secret.SecretName {
					got[m.MountPath] = string(s.Data["value"])
				}
			}
			for _, s := range pod.ConfigMaps {
				if v.ConfigMap != nil && s.Name == v.ConfigMap.Name {
					got[m.MountPath] = s.Data["value"]
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]string{
		"/run/secrets/a_b": "first", "/run/secrets/a-b": "second", "/run/secrets/A.b": "third", "/run/secrets/a-b-2": "fourth",
		"/a_b": "one", "/a.b": "two",
	}, got); diff != "" {
		t.Error(diff)
	}
	dir = writeFiles(t, []txtar.File{{Name: "compose.yaml", Data: []byte(`
services: {web: {image: nginx, volumes: ["a_b:/a", "a-b:/b"]}}
volumes:
  a-b: {}
  a_b: {}
`)}})
	const want = "compose.yaml:5:3: volumes.a_b: volumes a-b and a_b have the same name shop-a-b"
	if got := convert(t, request(dir)); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

// TestAliases checks by which names other pods reach a pod. Of several replicas, the first has them.
func TestAliases(t *testing.T) {
	dir := writeFiles(t, []txtar.File{{Name: "compose.yaml", Data: []byte(`
services:
  my_db: {image: db, deploy: {replicas: 2}, networks: {back: {aliases: [db, data]}}}
  Web: {image: web, container_name: shop.web, links: ["my_db:store"], hostname: front, networks: [back]}
  alone: {image: other, container_name: single}
  second: {image: other, container_name: Shop_2, hostname: two, networks: [back]}
networks: {back: }
`)}})
	r := Convert(t.Context(), request(dir))
	parts, problems := spec.Options{}.ParseParts("compose.json", r.Manifest)
	if len(problems.Errors()) > 0 || len(r.Problems.Errors()) > 0 {
		t.Fatal(problems, r.Problems)
	}
	got := map[string]string{}
	for i := range parts {
		got[parts[i].Name] = parts[i].Pod.Hostname + ": " + strings.Join(parts[i].Pod.Aliases(), " ")
	}
	if diff := cmp.Diff(map[string]string{
		"my-db-0": "my-db: my_db store db data", "my-db-1": ": ", "web": "front: Web", "alone": "single: ", "second": "two: Shop_2",
	}, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.Problems.Error(), `services.Web.container_name: other pods do not reach it as "shop.web"`) {
		t.Error(r.Problems)
	}
}

// TestMerges checks that merges into merges take bounded time.
func TestMerges(t *testing.T) {
	const merges = 60
	var b strings.Builder
	b.WriteString("x-0: &a0 {x: 1}\n")
	for i := range 8 {
		fmt.Fprintf(&b, "x-%d: &a%d {%s}\n", i+1, i+1, strings.Repeat(fmt.Sprintf("<<: *a%d, ", i), merges))
	}
	b.WriteString(strings.Repeat("<<: *a8\n", merges) + "services: {}\n")
	if !compose.IsCompose([]byte(b.String())) {
		t.Error("not a Compose file")
	}
}
