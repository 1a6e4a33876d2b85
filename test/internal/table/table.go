// Package table checks the table of a test suite against its tests, and against the documentation page that is generated from it. It is
// for the tests of those suites.
package table

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the page that is generated from the table")

// CheckTests fails the test unless the tests that rows name are exactly those that exist. A row may name none, "".
func CheckTests(t *testing.T, named, existing []string) {
	t.Helper()
	for _, name := range named {
		if name != "" && !slices.Contains(existing, name) {
			t.Errorf("test %s does not exist", name)
		}
	}
	for _, name := range existing {
		if !slices.Contains(named, name) {
			t.Errorf("no row of the table names test %s", name)
		}
	}
}

// Tests returns the names of a directory's tests in files whose build tag begins with tag.
func Tests(t *testing.T, dir, tag string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if len(file.Comments) == 0 || !strings.HasPrefix(file.Comments[0].List[0].Text, "//go:build "+tag) {
			continue
		}
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	return tests
}

// CheckPage fails the test unless a page is up to date. generate returns the new content for the current one. With the flag -update the
// page is written.
func CheckPage(t *testing.T, page string, generate func(text string) string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := generate(string(text))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { // documentation
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not up to date, run go test -run %s -update (-want +got):\n%s", page, t.Name(), diff)
	}
}
