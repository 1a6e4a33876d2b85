package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// readYAML reads a file strictly.
func readYAML(t *testing.T, name string, v any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(readFile(t, name)), v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestWorkflow checks that the workflow runs all suites, with enough history and time.
func TestWorkflow(t *testing.T) {
	var w struct {
		Name        string
		On          map[string]any
		Permissions map[string]string
		Concurrency map[string]any
		Jobs        map[string]struct {
			RunsOn  []string `json:"runs-on"`
			Timeout int      `json:"timeout-minutes"`
			Steps   []struct {
				Uses, Name, Run, If string
				With                map[string]any
			}
		}
	}
	text := strings.Replace(readFile(t, ".github/workflows/ci.yml"), "\non:\n", "\n\"on\":\n", 1) // YAML 1.1 reads on as true
	if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	for _, trigger := range []string{"push", "pull_request", "schedule"} {
		if _, ok := w.On[trigger]; !ok {
			t.Errorf("no trigger %s", trigger)
		}
	}
	job, runs := w.Jobs["check"], false
	for _, s := range job.Steps {
		runs = runs || strings.Contains(s.Run, " .ci/run ")
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["fetch-depth"] != float64(0) {
			t.Error("the checkout has no history, which the tests of upgrades require")
		}
	}
	if !runs || job.Timeout < 90 || w.Permissions["contents"] != "read" {
		t.Errorf("the job runs .ci/run: %v; timeout %d minutes, permissions %v", runs, job.Timeout, w.Permissions)
	}
}

// TestIssueForms checks the structure that GitHub requires of issue forms.
func TestIssueForms(t *testing.T) {
	forms, err := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) == 0 {
		t.Fatal(forms, err)
	}
	for _, name := range forms {
		if filepath.Base(name) == "config.yml" {
			continue
		}
		var form struct {
			Name, Description string
			Labels            []string
			Body              []struct {
				Type, ID    string
				Attributes  struct{ Label, Description, Value, Render string }
				Validations struct{ Required bool }
			}
		}
		readYAML(t, name, &form)
		ids := map[string]bool{}
		for _, field := range form.Body {
			if field.Type == "markdown" {
				continue
			}
			if field.ID == "" || ids[field.ID] || field.Attributes.Label == "" {
				t.Errorf("%s: field %q has no unique ID, or no label", name, field.ID)
			}
			ids[field.ID] = true
		}
		if form.Name == "" || form.Description == "" || len(ids) == 0 {
			t.Errorf("%s: name %q, description %q, %d fields", name, form.Name, form.Description, len(ids))
		}
	}
}

// TestDependencyUpdates checks that every module is updated.
func TestDependencyUpdates(t *testing.T) {
	var d struct {
		Version int
		Updates []struct {
			Ecosystem   string `json:"package-ecosystem"`
			Directory   string
			Directories []string
			Schedule    map[string]string
			Groups      map[string]map[string][]string
		}
	}
	readYAML(t, ".github/dependabot.yml", &d)
	updated := map[string]bool{}
	for _, u := range d.Updates {
		if u.Ecosystem == "gomod" {
			for _, dir := range u.Directories {
				updated[strings.TrimPrefix(dir, "/")] = true
			}
		}
	}
	err := walk(func(name string) error {
		if filepath.Base(name) == "go.mod" && !updated[strings.TrimPrefix(filepath.Dir(name), ".")] {
			t.Errorf("%s is not updated", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReleaseProcedure checks that the procedure names targets that exist.
func TestReleaseProcedure(t *testing.T) {
	makefile, targets := readFile(t, "Makefile"), 0
	page := readFile(t, "docs/releasing.md")
	if commit := strings.Index(page, "\ngit commit "); commit < 0 ||
		strings.LastIndex(page[:strings.Index(page, "\nmake release")], ">test/") > commit {
		t.Error("docs/releasing.md: a file is changed after the commit, the version would end with -dirty")
	}
	for line := range strings.Lines(page) {
		if target, ok := strings.CutPrefix(line, "make "); ok {
			targets++
			if name := strings.Fields(target)[0]; !strings.Contains(makefile, "\n"+name+": ") {
				t.Errorf("docs/releasing.md: there is no target %s", name)
			}
		}
	}
	if targets == 0 {
		t.Error("docs/releasing.md names no targets")
	}
	for _, name := range []string{"SECURITY.md", "CODE_OF_CONDUCT.md", ".editorconfig", ".github/pull_request_template.md"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}
