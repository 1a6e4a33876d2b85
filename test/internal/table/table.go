// Package table holds the table of a suite against the suite's tests, and against the page of the documentation that is made of it.
// It is for the tests of the suites' own folders.
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

var update = flag.Bool("update", false, "write the page anew that is made of the table")

// CheckTests fails the test unless the tests that rows name are just those that are there. A row may have none, "".
func CheckTests(t *testing.T, named, there []string) {
	t.Helper()
	for _, name := range named {
		if name != "" && !slices.Contains(there, name) {
			t.Errorf("there is no test %s", name)
		}
	}
	for _, name := range there {
		if !slices.Contains(named, name) {
			t.Errorf("no row of the table has the test %s", name)
		}
	}
}

// Tests are the names of a folder's tests in files that have the build tag first.
func Tests(t *testing.T, folder, tag string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
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

// CheckPage fails the test unless a page is what made makes of it. With the flag -update it is written anew.
func CheckPage(t *testing.T, page string, made func(text string) string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := made(string(text))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { // a page
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not what the table says (go test -run %s -update writes it):\n%s", page, t.Name(), diff)
	}
}
