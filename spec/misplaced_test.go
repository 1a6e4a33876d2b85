package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const probeTail = podTail + "[containers.livenessProbe]\nexec.command = [\"true\"]\n"

// TestMisplaced checks that a field of the pod at the end of a file is reported if the last header is that of a probe.
func TestMisplaced(t *testing.T) {
	pod, problems := Parse("web.toml", []byte("name = \"web\"\n"+probeTail+"terminationGracePeriodSeconds = 5\n"))
	if pod == nil || len(problems) != 1 || !problems[0].Warning || problems[0].Line != 8 ||
		problems[0].Path != "containers[0].livenessProbe.terminationGracePeriodSeconds" {
		t.Errorf("want one warning, got:\n%v", problems)
	}
}

// TestNotMisplaced checks files that set a field of a container or of a probe on purpose.
func TestNotMisplaced(t *testing.T) {
	for name, file := range map[string]string{
		"resources":            podTail + "resources = { limits = { memory = \"64Mi\" } }\n",
		"resources, dotted":    podTail + "resources.limits.memory = \"64Mi\"\n",
		"resources, header":    podTail + "[containers.resources]\nlimits.cpu = 1\n",
		"securityContext":      podTail + "securityContext.runAsUser = 1000\n",
		"restartBackoff":       podTail + "restartBackoff.initialSeconds = 1\n",
		"restartPolicy":        podTail + "restartPolicy = \"Never\"\n",
		"restartPolicy inline": "containers = [{ name = \"app\", image = \"busybox\", restartPolicy = \"Never\" }]",
		"sidecar": strings.Replace(podTail, "containers", "initContainers", 1) + "restartPolicy = \"Always\"\n" +
			strings.Replace(podTail, "app", "web", 1),
		"pod sets it too":     "terminationGracePeriodSeconds = 60\n" + probeTail + "terminationGracePeriodSeconds = 5\n",
		"not the last header": probeTail + "terminationGracePeriodSeconds = 5\n[[volumes]]\nname = \"v\"\nemptyDir = {}\n",
		"not the last key":    podTail + "[containers.livenessProbe]\nterminationGracePeriodSeconds = 5\nexec.command = [\"true\"]\n",
		"inline probe":        podTail + "livenessProbe = { exec.command = [\"true\"], terminationGracePeriodSeconds = 5 }\n",
	} {
		t.Run(name, func(t *testing.T) {
			if pod, problems := Parse("web.toml", []byte("name = \"web\"\n"+file)); pod == nil || len(problems) > 0 {
				t.Errorf("%v\n%s", problems, file)
			}
		})
	}
}

// TestNoFalseAlarms checks that none of the pod files of this repository is reported: those of the examples, of the documentation, of
// the scripts and of the tests.
func TestNoFalseAlarms(t *testing.T) {
	count := 0
	check := func(name, text string) {
		root, err := readTOML([]byte(text))
		if err != nil || root.child("containers") == nil {
			return
		}
		count++
		for _, p := range misplaced(root) {
			t.Errorf("%s:%d: %s: %s", name, p.Line, p.Path, p.Message)
		}
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bad" || d.Name() == ".git" || d.Name() == "bin" || d.Name() == ".cache"):
			return fs.SkipDir
		case d.IsDir() || path == "misplaced_test.go" || path == filepath.Join("..", "spec", "misplaced_test.go"):
			return nil
		}
		texts, err := podFiles(path)
		for _, text := range texts {
			check(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 100 {
		t.Errorf("found %d pod files, want at least 100", count)
	}
}

var (
	tomlBlock  = regexp.MustCompile("(?ms)^```toml\n(.*?)^```$")
	scriptFile = regexp.MustCompile(`(?m)^-- .* --$`)
)

// podFiles returns what can be a pod file: a TOML file, the TOML blocks of a page, the files of a script, and the strings of a Go file.
func podFiles(path string) ([]string, error) {
	extension := filepath.Ext(path)
	switch extension {
	case ".toml", ".md", ".txtar", ".go":
	default:
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var texts []string
	switch extension {
	case ".toml":
		texts = []string{string(data)}
	case ".md":
		for _, block := range tomlBlock.FindAllStringSubmatch(string(data), -1) {
			texts = append(texts, block[1])
		}
	case ".txtar":
		texts = scriptFile.Split(string(data), -1)[1:]
	case ".go":
		file, err := parser.ParseFile(token.NewFileSet(), path, data, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && strings.Contains(literal.Value, "[[containers]]") {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	return texts, nil
}

// TestMisplacedHints writes each field of all tables into the pod and into a container. If that is not its place, the hint names one, or
// there are too many; each place that a hint names has the field.
func TestMisplacedHints(t *testing.T) {
	for table, want := range map[string]map[string]string{
		"": {
			"readyWithinSeconds": "set it in update", "initialSeconds": "set it in restartBackoff",
			"mountPath": "set volumeMounts.mountPath in a container", "hostPort": "set ports.hostPort in a container",
			"progressDeadlineSeconds": "set update.readyWithinSeconds in the pod", "sizeLimit": "set volumes.emptyDir.sizeLimit in the pod",
		},
		"app": {
			"readyWithinSeconds": "set update.readyWithinSeconds in the pod", "minReadySeconds": "set update.minReadySeconds in the pod",
			"onFailure": "set update.onFailure in the pod", "fsGroup": "set securityContext.fsGroup in the pod", "name": "",
		},
	} {
		for key, hint := range want {
			if got := hintOf(table, key); got != hint {
				t.Errorf("%s in %q: hint %q, want %q", key, table, got, hint)
			}
		}
	}
	place := regexp.MustCompile(`^set ([\w., ]+?) in (the pod|a container)$`)
	within := regexp.MustCompile(`^set it in ([\w, ]+)$`)
	tables := map[string]reflect.Type{"": reflect.TypeFor[Pod](), "app": reflect.TypeFor[Container]()}
	tables["the pod"], tables["a container"] = tables[""], tables["app"]
	count := 0
	for key := range allKeys(reflect.TypeFor[Pod](), map[string]bool{}) {
		for _, table := range []string{"", "app"} {
			hint := hintOf(table, key)
			owner, paths := tables[table], ""
			if m := place.FindStringSubmatch(hint); m != nil {
				owner, paths = tables[m[2]], m[1]
			} else if m := within.FindStringSubmatch(hint); m != nil {
				paths = regexp.MustCompile(`\w+`).ReplaceAllString(strings.ReplaceAll(m[1], " or ", ", "), "$0."+key)
			}
			for path := range strings.FieldsSeq(strings.NewReplacer(" or ", " ", ",", " ").Replace(paths)) {
				count++
				if !hasPath(owner, path) {
					t.Errorf("%s in %q: hint %q: there is no %s", key, table, hint, path)
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d places", count)
	}
}

// hintOf is the hint to a key in the pod, or in its container app, that cannot be there.
func hintOf(table, key string) string {
	line := key + " = true\n"
	text := "name = \"web\"\n" + line + podTail
	if table != "" {
		text = "name = \"web\"\n" + podTail + line
	}
	_, problems := Parse("web.toml", []byte(text))
	for _, p := range problems {
		if strings.HasSuffix(p.Path, key) && (p.Message == unknownField || strings.Contains(p.Message, "is not a field of")) {
			return p.Hint
		}
	}
	return ""
}

func allKeys(t reflect.Type, keys map[string]bool) map[string]bool {
	for name, i := range fieldsOf(t) {
		keys[name] = true
		if inner := tableOf(t.Field(i).Type); inner != nil {
			allKeys(inner, keys)
		}
	}
	return keys
}

func hasPath(t reflect.Type, path string) bool {
	key, rest, more := strings.Cut(path, ".")
	i, ok := fieldsOf(t)[key]
	if !ok || !more {
		return ok
	}
	inner := tableOf(t.Field(i).Type)
	return inner != nil && hasPath(inner, rest)
}

// tableOf returns the table in a field; nil: it is none.
func tableOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}
