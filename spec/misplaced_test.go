package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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
		"sidecar":              strings.Replace(podTail, "containers", "initContainers", 1) + "restartPolicy = \"Always\"\n" + strings.Replace(podTail, "app", "web", 1),
		"pod sets it too":      "terminationGracePeriodSeconds = 60\n" + probeTail + "terminationGracePeriodSeconds = 5\n",
		"not the last header":  probeTail + "terminationGracePeriodSeconds = 5\n[[volumes]]\nname = \"v\"\nemptyDir = {}\n",
		"not the last key":     podTail + "[containers.livenessProbe]\nterminationGracePeriodSeconds = 5\nexec.command = [\"true\"]\n",
		"inline probe":         podTail + "livenessProbe = { exec.command = [\"true\"], terminationGracePeriodSeconds = 5 }\n",
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
