package spec

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fix is a file whose only problem has a hint. Lines are the text by lines, at is the index of that of the problem, column that in it.
type fix struct {
	lines      []string
	at, column int
}

// replace replaces the first match of a pattern at the problem or after it in its line.
func (f *fix) replace(pattern, by string) {
	line := f.lines[f.at]
	found := regexp.MustCompile(pattern).FindStringIndex(line[f.column:])
	f.lines[f.at] = line[:f.column+found[0]] + by + line[f.column+found[1]:]
}

// value replaces the value at the problem.
func (f *fix) value(by string) { f.replace(`"[^"]*"|[\w.+-]+`, by) }

// whole replaces the line of the problem, but not its indentation.
func (f *fix) whole(by string) {
	line := f.lines[f.at]
	f.lines[f.at] = line[:len(line)-len(strings.TrimLeft(line, " "))] + by
}

// remove removes the line of the problem and returns it.
func (f *fix) remove() string {
	line := strings.TrimSpace(f.lines[f.at])
	f.lines = slices.Delete(f.lines, f.at, f.at+1)
	return line
}

// insert inserts a line above or below the first line that is equal to another one, but for its indentation.
func (f *fix) insert(line, other string, below int) {
	i := slices.IndexFunc(f.lines, func(l string) bool { return strings.TrimSpace(l) == other })
	f.lines = slices.Insert(f.lines, i+below, line)
}

// top inserts a line at the top of a pod file, or of the spec of a manifest.
func (f *fix) top(line string) {
	if slices.Contains(f.lines, "spec:") {
		f.insert("  "+line, "spec:", 1)
		return
	}
	f.lines = slices.Insert(f.lines, 0, line)
}

// correction does what hints say that match a pattern.
type correction struct {
	hint   string
	follow func(f *fix, m []string)
}

var corrections = []correction{
	{`^write (\S+) without quotes$`, func(f *fix, m []string) { f.value(m[1]) }},
	{`^write \[\[(.+)\]\] instead of \[(.+)\]$`, func(f *fix, m []string) { f.whole("[[" + m[1] + "]]") }},
	{`^write (\w[\w.]* = .+|\w[\w.]*: .+)$`, func(f *fix, m []string) { f.whole(m[1]) }},
	{`^write (\{.+\}|".+"|\[.+\])$`, func(f *fix, m []string) { f.value(m[1]) }},
	{`^write octal numbers .*, such as (\w+)`, func(f *fix, m []string) { f.value(m[1]) }},
	{`^write a number of (?:CPUs|bytes)(?: with a unit)?, such as ("\w+")`, func(f *fix, m []string) { f.value(m[1]) }},
	{`^write each word as an element: (\[.+\])$`, func(f *fix, m []string) { f.whole("command = " + m[1]) }},
	{`^write an entry for each port$`, func(f *fix, _ []string) { f.value(`"8000:80", "8001:81"`) }},
	{`^write the fields of metadata and spec at the top level$`, func(f *fix, _ []string) {
		f.lines[f.at] = strings.TrimPrefix(f.lines[f.at], "metadata.")
	}},
	{`^put it in quotes$`, func(f *fix, _ []string) { f.replace(`[\w.+-]+`, `"1"`) }},
	{`^put strings in quotes: (.+)$`, func(f *fix, m []string) { f.whole(m[1]) }},
	{`^did you mean "(.+)"\?$`, func(f *fix, m []string) { f.replace(`[\w.-]+`, m[1]) }},
	{`^(?:move it|set it for the pod) (?:to|at) the top of the file`, func(f *fix, _ []string) { f.top(f.remove()) }},
	{`^move it above the header (\[.+\])$`, func(f *fix, m []string) { f.insert(f.remove(), m[1], 0) }},
	{`^move it to (\w+)$`, func(f *fix, m []string) { f.insert("  "+f.remove(), m[1]+":", 1) }},
	{`^(remove it for the default|delete this line)$`, func(f *fix, _ []string) { f.remove() }},
	{`^set it in (\w+)`, func(f *fix, m []string) { f.whole(m[1] + "." + strings.TrimSpace(f.lines[f.at])) }},
	{`^set (name|metadata\.name)`, func(f *fix, m []string) {
		if m[1] == "name" {
			f.top(`name = "web"`)
			return
		}
		f.insert("  name: web", "metadata:", 1)
	}},
	{`^set (.+) to make it a sidecar$`, func(f *fix, m []string) {
		line := f.lines[f.at]
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		f.lines = slices.Insert(f.lines, f.at, indent+m[1])
	}},
	{`^set (.+) in the spec$`, func(f *fix, m []string) { f.top(m[1]) }},
	{`^set restartPolicy to ("OnFailure")`, func(f *fix, m []string) {
		i := slices.IndexFunc(f.lines, func(l string) bool { return strings.HasPrefix(l, "restartPolicy") })
		f.lines[i] = "restartPolicy = " + m[1]
	}},
	{`^use (127\.0\.0\.1)$`, func(f *fix, m []string) { f.value(`"` + m[1] + `"`) }},
	{`^\S+ is .+ thousandths of a byte, (\S+) are mebibytes$`, func(f *fix, m []string) { f.value(`"` + m[1] + `"`) }},
	{`^begin the manifest with (.+) and (.+)$`, func(f *fix, m []string) { f.lines = append(m[1:], f.lines...) }},
}

const (
	manifestHead = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n"
	manifestTail = "  containers:\n  - name: app\n    image: busybox\n"
)

// TestCorrections corrects files as the hint of their only problem says, until they have none.
func TestCorrections(t *testing.T) {
	used := map[string]bool{}
	for _, c := range []struct{ file, text string }{
		{"web.toml", pod(`hostNetwork = "true"`)},
		{"web.toml", pod(`activeDeadlineSeconds = "30"`)},
		{"web.toml", "[containers]\nname = \"app\"\nimage = \"busybox\"\n"},
		{"web.toml", pod(`hostname = 1`)},
		{"web.toml", appWith(`command = "sleep 60"`)},
		{"web.toml", appWith(`command = ["sleep", 60]`)},
		{"web.toml", appWith(`command = ["sh -c \"sleep 60; exit\""]`)},
		{"web.toml", pod(`labels = ["a=b"]`)},
		{"web.toml", strings.Replace(pod(""), `"Always"`, `"unless-stopped"`, 1)},
		{"web.toml", appWith(`ports = "8080:80"`)},
		{"web.toml", appWith(`ports = ["127.0.0.1:8080:80/UDP", 81]`)},
		{"web.toml", appWith(`ports = ["8000-8001:80"]`)},
		{"web.yaml", manifestHead + manifestTail + "    ports: [\"8080:80\"]\n"},
		{"web.toml", appWith(`env = ["A=1"]`)},
		{"web.toml", volume("emptyDir = {}\n") + "[[containers]]\nname = \"b\"\nimage = \"b\"\nvolumeMounts = [\"v:/data:ro\"]\n"},
		{"web.toml", volume("secret = { secretName = \"s\", defaultMode = 644 }\n")},
		{"web.yaml", manifestHead + "  volumes:\n  - name: v\n    secret:\n      secretName: s\n      defaultMode: 644\n" + manifestTail},
		{"web.toml", appWith(`resources.limits.memory = "64MB"`)},
		{"web.toml", appWith(`resources.limits.memory = "64m"`)},
		{"web.toml", appWith(`resources.limits.memory = "64 megabytes"`)},
		{"web.toml", appWith(`resources.limits.cpu = "2 cores"`)},
		{"web.toml", appWith(`schedule = "0 3 * * *"`)},
		{"web.toml", "name = web" + podTail},
		{"web.toml", appWith("env.PORT = 80")},
		{"web.toml", appWith(`imagePulPolicy = "Always"`)},
		{"web.toml", appWith(`imagePullPolicy = "always"`)},
		{"web.toml", appWith("hostNetwork = true")},
		{"web.toml", appWith("[containers.lifecycle]\nworkingDir = \"/\"\n")},
		{"web.toml", appWith(`stopSignal = "SIGINT"`)},
		{"web.toml", "name = \"web\"\n" + probeTail + "terminationGracePeriodSeconds = 5\n"},
		{"web.toml", appWith("[containers.volumeMounts.v]\nname = \"v\"\nmountPath = \"/v\"\n[[volumes]]\nname = \"v\"\nemptyDir = {}\n")},
		{"Web.toml", podTail},
		{"web.toml", initWith(`livenessProbe.exec.command = ["a"]`)},
		{"web.yaml", manifestHead + "  initContainers:\n  - name: i\n    image: b\n    lifecycle: {preStop: {exec: {command: [a]}}}\n" +
			manifestTail},
		{"web.toml", "name = \"web\"\nrestartPolicy = \"Never\"\nonUnhealthy = \"reboot\"\n" + podTail},
		{"web.toml", appWith(`ports = [{ containerPort = 80, hostPort = 80, hostIP = "::1" }]`)},
		{"web.toml", appWith(`lifecycle.stopSignal = "INT"`)},
		{"web.toml", appWith(`lifecycle.stopSignal = ""`)},
		{"web.yaml", manifestHead + manifestTail + "    lifecycle: {stopSignal: SIGINT}\n"},
		{"web.toml", "metadata.labels.a = \"b\"\n" + appHead},
		{"web.toml", appWith(`livenessProbe.httpGet.port = "80"`)},
		{"web.yaml", manifestHead + "  namespace: default\n" + manifestTail},
		{"web.yaml", manifestHead + manifestTail + "    hostNetwork: true\n"},
		{"web.yaml", manifestHead + manifestTail + "    command: sleep 60\n"},
		{"web.yaml", manifestHead + "  hostname: 1\n" + manifestTail},
		{"web.yaml", "metadata:\n  name: web\nspec:\n" + manifestTail},
		{"Web.yaml", strings.Replace(manifestHead, "  name: web", "  labels: {a: b}", 1) + manifestTail},
	} {
		f := &fix{lines: strings.Split(strings.TrimSpace(c.text), "\n")}
		for round := 0; ; round++ {
			text := strings.Join(f.lines, "\n") + "\n"
			pod, problems := Parse(c.file, []byte(text))
			if pod != nil && len(problems) == 0 && round > 0 {
				break
			}
			if len(problems) == 0 || round == 3 || !f.follow(problems[0], used) {
				t.Errorf("%s after %d hints:\n%v\n%s", c.file, round, problems, text)
				break
			}
		}
	}
	for _, c := range corrections {
		if !used[c.hint] {
			t.Errorf("no file has a hint that matches %s", c.hint)
		}
	}
}

// follow corrects the file as the hint of a problem says, and reports whether it is known how.
func (f *fix) follow(p Problem, used map[string]bool) bool {
	for _, c := range corrections {
		if m := regexp.MustCompile(c.hint).FindStringSubmatch(p.Hint); m != nil {
			f.at, f.column = p.Line-1, p.Column-1
			used[c.hint] = true
			c.follow(f, m)
			return true
		}
	}
	return false
}

// TestQuantityHint checks that the hint to a quantity in bytes that another program accepts means the same amount.
func TestQuantityHint(t *testing.T) {
	for text, want := range map[string]string{
		"64MB": "64M", "10 MB": "10M", "1.5GB": "1.5G", "64MiB": "64Mi", "2kb": "2k", "1g": "1Gi", "512 mib": "512Mi",
	} {
		if got := quantityHint("memory", text); got != "write "+strconv.Quote(want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestHintsOfKinds follows the hints to manifests of other kinds: a Pod with what the hint names is valid.
func TestHintsOfKinds(t *testing.T) {
	const container = `{"name": "app", "image": "busybox", "ports": [{"containerPort": 80, "hostPort": 8080}]}`
	followed := map[string]string{
		"HorizontalPodAutoscaler": `"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"replicas": 1,
			"selector": {},
			"template": {"spec": {"containers": [` + container + `]}}}`,
		"Ingress": `"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [` + container + `]}`,
		"NetworkPolicy": `"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [` +
			strings.Replace(container, `"hostPort"`, `"hostIP": "127.0.0.1", "hostPort"`, 1) + `]}`,
		"PersistentVolume": `"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [` + container +
			`], "volumes": [{"name": "v", "hostPath": {"path": "/srv"}}]}`,
		"PodTemplate": `"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"containers": [` + container + `]}`,
		"ReplicationController": `"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"selector": {},
			"template": {"spec": {"containers": [` + container + `]}}}`,
	}
	for kind, hint := range kindHints {
		_, problems := Parse("web.json", []byte(`{"apiVersion": "v1", "kind": "`+kind+`", "metadata": {"name": "web"}}`))
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Hint, hint+", or accept") {
			t.Errorf("%s: %v, want the hint %q", kind, problems, hint)
		}
		pod, problems := Parse("web.json", []byte("{"+followed[kind]+"}"))
		if pod == nil || len(problems) > 0 {
			t.Errorf("hint %q of a %s: %v", hint, kind, problems)
		}
	}
}

// TestHintOfEnvFiles follows the hint to an env file with secrets that others can read.
func TestHintOfEnvFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("app.env", []byte("A=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := []byte("secrets = [{ name = \"s\", envFile = \"app.env\" }]\n" + appHead)
	_, problems := Accept(filepath.Join(dir, "web.toml"), text)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Hint, "run chmod ") {
		t.Fatalf("%v, want a warning with a hint", problems)
	}
	if out, err := exec.Command("sh", "-c", strings.TrimPrefix(problems[0].Hint, "run ")).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", problems[0].Hint, err, out)
	}
	if pod, problems := Accept(filepath.Join(dir, "web.toml"), text); pod == nil || len(problems) > 0 {
		t.Errorf("after the hint: %v", problems)
	}
}

// TestHintsOfRelocation follows the hints to values that cannot be replaced.
func TestHintsOfRelocation(t *testing.T) {
	for _, c := range []struct{ text, hint, corrected string }{
		{
			manifestWith("  hostname: &x data\n  imageArchives: [*x]\n"), "write an absolute path, in quotes, without an anchor",
			manifestWith("  hostname: data\n  imageArchives: [\"/srv/data\"]\n"),
		},
		{
			manifestWith("  imageArchives:\n  - |-\n    x\n"), "write an absolute path, in quotes, without an anchor",
			manifestWith("  imageArchives: [\"/srv/x\"]\n"),
		},
		{
			strings.Replace(manifestWith(""), "name: web", "generateName: web-\n  name:", 1), "set metadata.name",
			strings.Replace(manifestWith(""), "name: web", "generateName: web-\n  name: web", 1),
		},
	} {
		_, err := Relocate("/srv/web.yaml", []byte(c.text))
		if problems, ok := errors.AsType[Problems](err); !ok || problems[0].Hint != c.hint {
			t.Errorf("%v, want the hint %q\n%s", err, c.hint, c.text)
		}
		if _, err := Relocate("/srv/web.yaml", []byte(c.corrected)); err != nil {
			t.Errorf("%v\n%s", err, c.corrected)
		}
	}
}

// TestHintsOfBadFiles checks that the hints to each file in testdata/bad are followed by a test of this package.
func TestHintsOfBadFiles(t *testing.T) {
	known := slices.Concat(slices.Collect(maps.Values(composeWords)), slices.Collect(maps.Values(kindHints)),
		[]string{servicesHint, severalHint, envFileShortHint})
	for _, fields := range omitted {
		for _, refused := range fields {
			known = append(known, refused.hint)
		}
	}
	place := regexp.MustCompile(`^set \S+( or \S+)* in (the pod|a container|containers)$`) // TestMisplacedHints
	files, err := filepath.Glob("testdata/bad/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			hint, isHint := strings.CutPrefix(strings.TrimSpace(line), "hint: ")
			matches := func(c correction) bool { return regexp.MustCompile(c.hint).MatchString(hint) }
			if isHint && !slices.ContainsFunc(corrections, matches) && !slices.Contains(known, hint) && !place.MatchString(hint) {
				t.Errorf("%s: no test follows the hint %q", file, hint)
			}
		}
	}
}
