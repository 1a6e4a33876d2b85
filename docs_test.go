package podstead_test

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

var update = flag.Bool("update", false, "write docs/reference anew")

// TestReference: the pages of docs/reference are made from the code.
//
//	go test -run TestReference -update .
func TestReference(t *testing.T) {
	pages := map[string]string{
		"docs/reference/pod-file.md": podFilePage(t),
		"docs/reference/events.md":   eventsPage(),
	}
	for name, want := range pages {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, readFile(t, name)); diff != "" {
			t.Errorf("%s is not what the code says (go test -run TestReference -update . writes it):\n%s", name, diff)
		}
	}
}

// TestExamples: every example is a pod file without a fault or a warning.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("examples/*.toml")
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		if _, problems, err := spec.ParseFile(file); err != nil || len(problems) > 0 {
			t.Errorf("%s: %v%v", file, err, problems)
		}
	}
}

// TestLinks: a link of a page to a file of this repository leads somewhere.
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

// TestDependencies: docs/dependencies.md says of each module that our code imports what it is for, and of no other.
func TestDependencies(t *testing.T) {
	var required []string
	for line := range strings.SplitSeq(readFile(t, "go.mod"), "\n") {
		if words := strings.Fields(strings.TrimPrefix(line, "require ")); len(words) >= 2 && strings.HasPrefix(words[1], "v") {
			required = append(required, words[0])
		}
	}
	direct := map[string]string{} // module to a file that imports it
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
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(readFile(t, "docs/dependencies.md"), -1) {
		explained[match[1]] = true
		if direct[match[1]] == "" {
			t.Errorf("docs/dependencies.md explains %s, which nothing imports", match[1])
		}
	}
	for mod, file := range direct {
		if !explained[mod] {
			t.Errorf("docs/dependencies.md has no line for %s, imported by %s (what for, what instead, how alive)", mod, file)
		}
	}
}

// TestMakeHelp: help lists every target, and every target is phony or said to be.
func TestMakeHelp(t *testing.T) {
	makefile := readFile(t, "Makefile")
	phony := strings.Fields(regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindStringSubmatch(makefile)[1])
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):([^=\n].*)?$`).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, match[1])
		if !strings.Contains(match[2], "## ") {
			t.Errorf("Makefile: %s has no \"## what it does\"", match[1])
		}
	}
	slices.Sort(phony)
	slices.Sort(targets)
	if diff := cmp.Diff(targets, phony); diff != "" {
		t.Errorf("Makefile: targets and .PHONY differ (-targets +phony):\n%s", diff)
	}
}
