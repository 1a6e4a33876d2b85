package conformance

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/conformance.md anew")

// TestTable: docs/conformance.md is made of the table, and the tests that it names are there.
//
//	go test ./test/conformance -run TestTable -update
func TestTable(t *testing.T) {
	tests := testsOf(t)
	for _, row := range Rows() {
		_, found := tests[row.Test]
		switch {
		case row.Test == "" && row.Comes == "", row.Test != "" && row.Comes != "":
			t.Errorf("row %s %q: want a test, or with what it comes", row.Number, row.Setup)
		case row.Test != "" && !found:
			t.Errorf("row %s %q: there is no test %s", row.Number, row.Setup, row.Test)
		case row.Test != "" && row.Number != "" && row.Test != "TestRow"+row.Number:
			t.Errorf("row %s %q: the test is named %s", row.Number, row.Setup, row.Test)
		}
		tests[row.Test] = true
	}
	for name, used := range tests {
		if !used {
			t.Errorf("no row of the table has the test %s", name)
		}
	}
	const name = "../../docs/conformance.md"
	want := page()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the table says (go test ./test/conformance -run TestTable -update writes it):\n%s", name, diff)
	}
}

// testsOf are the names of the tests that need root. None has a row yet.
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

func page() string {
	var b strings.Builder
	b.WriteString(`# The lifecycle, case by case

Made from the table of [test/conformance](../test/conformance/rows.go), by its tests. Each row is a test on real containers, and its
columns say what the kubelet does and where Podstead differs on purpose. Where nothing is said, Podstead does the same. CI runs
all of them, and ` + "`make soak`" + ` twenty times in a row on a machine that is loaded.

| row | case | the kubelet | different here | test |
| --- | --- | --- | --- | --- |
`)
	for _, row := range Rows() {
		test := "`" + row.Test + "`"
		if row.Test == "" {
			test = "comes " + row.Comes
		}
		differs := row.Differs
		if differs == "" {
			differs = "-"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.Number, row.Setup, row.Kubelet, differs, test)
	}
	return b.String()
}
