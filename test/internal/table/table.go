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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the page anew that is made of the table")

// CheckTests fails the test unless the tests that rows name are just those of the folder that need root. A row may have none, "".
func CheckTests(t *testing.T, named []string) {
	t.Helper()
	tests := testsOf(t)
	for _, name := range named {
		if _, found := tests[name]; !found && name != "" {
			t.Errorf("there is no test %s", name)
		}
		tests[name] = true
	}
	for name, used := range tests {
		if !used {
			t.Errorf("no row of the table has the test %s", name)
		}
	}
}

// testsOf are the names of the folder's tests that need root. None has a row yet.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if len(file.Comments) == 0 || !strings.HasPrefix(file.Comments[0].List[0].Text, "//go:build e2e") {
			continue
		}
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[f.Name.Name] = false
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
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not what the table says (go test -run %s -update writes it):\n%s", page, t.Name(), diff)
	}
}
