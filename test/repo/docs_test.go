package repo_test

import (
	"flag"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

var update = flag.Bool("update", false, "update the generated pages of docs")

// TestReference compares the pages of docs/reference with the code. This updates them:
//
//	go test ./test/repo -run TestReference -update
func TestReference(t *testing.T) {
	pages := map[string]string{
		"docs/reference/pod-file.md": podFilePage(t),
		"docs/reference/scenario.md": scenarioPage(t),
		"docs/reference/warnings.md": warningsPage(t),
		"spec/fields.txt":            fieldsText(t),
		"docs/reference/events.md":   eventsPage(),

		"docs/reference/api.md":       apiPage(t, readFile(t, "docs/reference/api.md")),
		"docs/reference/openapi.json": openAPI(t),
	}
	for name, want := range pages {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, readFile(t, name)); diff != "" {
			t.Errorf("%s is not up to date, run go test ./test/repo -run TestReference -update (-want +got):\n%s", name, diff)
		}
	}
}

// TestExamples checks that every example is a valid pod file without warnings.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := spec.ReadPodFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := spec.Options{Lint: &spec.Lint{ShutdownGracePeriod: time.Minute}}
		if parts, problems := o.ParseParts(file, text); len(parts) == 0 || len(problems) > 0 {
			t.Errorf("%s: %v", file, problems)
		}
	}
}

// TestApplicationIsShort counts the words of a real application. In Compose it has 103, with the long forms of pod files it had 434.
func TestApplicationIsShort(t *testing.T) {
	const limit = 170
	out, err := exec.CommandContext(t.Context(), "wc", "-w", "examples/application.toml").Output()
	if err != nil {
		t.Fatal(err)
	}
	var words int
	if _, err := fmt.Sscan(string(out), &words); err != nil || words > limit {
		t.Errorf("examples/application.toml has %d words, want at most %d: %v", words, limit, err)
	}
	text := readFile(t, "examples/application.toml")
	short, problems := spec.Options{}.Convert("examples/application.toml", []byte(text), true)
	if len(problems) > 0 || string(short) != text {
		t.Errorf("examples/application.toml is not in the short form (-want +got):\n%v%s", problems, cmp.Diff(string(short), text))
	}
}

// TestLinks checks that links between files of the repository are not broken.
func TestLinks(t *testing.T) {
	target := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	err := walk(func(name string) error {
		if path.Ext(name) != ".md" || strings.Contains(name, "/testdata/") {
			return nil
		}
		for _, match := range target.FindAllStringSubmatch(readFile(t, name), -1) {
			to, _, _ := strings.Cut(match[1], "#")
			if to == "" || strings.Contains(to, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(path.Dir(name), to)); err != nil {
				t.Errorf("%s links to %s: %v", name, to, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDependencies checks that docs/dependencies.md has a row for each module that the code imports directly, and no other row.
func TestDependencies(t *testing.T) {
	var required []string
	for line := range strings.SplitSeq(readFile(t, "go.mod"), "\n") {
		if words := strings.Fields(strings.TrimPrefix(line, "require ")); len(words) >= 2 && strings.HasPrefix(words[1], "v") {
			required = append(required, words[0])
		}
	}
	direct := map[string]string{} // module to the first file that imports it
	for _, s := range goFiles(t) {
		for _, imported := range s.imports {
			best := ""
			for _, mod := range required {
				if within(imported, mod) && len(mod) > len(best) {
					best = mod
				}
			}
			if best != "" && direct[best] == "" {
				direct[best] = s.path
			}
		}
	}
	explained := map[string]bool{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(readFile(t,
		"docs/dependencies.md"),
		-1) {
		explained[match[1]] = true
		if direct[match[1]] == "" {
			t.Errorf("docs/dependencies.md has a row for %s, which no file imports", match[1])
		}
	}
	for mod, file := range direct {
		if !explained[mod] {
			t.Errorf("docs/dependencies.md has no row for %s, imported by %s: add its purpose, the alternative and its maintenance", mod,
				file)
		}
	}
}

// TestMakeHelp checks that make help lists every target and that every target is phony.
func TestMakeHelp(t *testing.T) {
	makefile := readFile(t, "Makefile")
	phony := strings.Fields(regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindStringSubmatch(makefile)[1])
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):([^=\n].*)?$`).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, match[1])
		if !strings.Contains(match[2], "## ") {
			t.Errorf("Makefile: target %s has no description after \"## \"", match[1])
		}
	}
	slices.Sort(phony)
	slices.Sort(targets)
	if diff := cmp.Diff(targets, phony); diff != "" {
		t.Errorf("Makefile: targets and .PHONY differ (-targets +phony):\n%s", diff)
	}
}

// TestTestsOfSecurity checks that the tests that docs/security.md names exist.
func TestTestsOfSecurity(t *testing.T) {
	exists := map[string]bool{}
	for _, s := range goFiles(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.isTest {
				exists[f.Name.Name] = true
			}
		}
	}
	for _, name := range regexp.MustCompile("`(Test[A-Z]\\w*)").FindAllStringSubmatch(readFile(t, "docs/security.md"), -1) {
		if !exists[name[1]] {
			t.Errorf("docs/security.md names %s, which does not exist", name[1])
		}
	}
}
