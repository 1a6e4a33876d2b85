package hostile

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the section of docs/security.md anew")

// What is between these lines of the page is made of the table.
const (
	page  = "../../docs/security.md"
	begin = "<!-- hostile:begin -->\n"
	end   = "<!-- hostile:end -->\n"
)

// TestTable: the section of docs/security.md is made of the table, and the table names all tests that there are.
//
//	go test ./test/hostile -run TestTable -update
func TestTable(t *testing.T) {
	tests := testsOf(t)
	for _, row := range Rows() {
		if _, found := tests[row.Test]; !found || row.Tries == "" || row.Here == "" {
			t.Errorf("row %q: want what it tries and what comes of it, and a test, not %q", row.Tries, row.Test)
		}
		tests[row.Test] = true
	}
	for name, used := range tests {
		if !used {
			t.Errorf("no row of the table has the test %s", name)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	got, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has not both lines %q and %q", page, begin, end)
	}
	if *update {
		got = section()
		if err := os.WriteFile(page, []byte(before+begin+got+end+after), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff(section(), got); diff != "" {
		t.Errorf("%s is not what the table says (go test ./test/hostile -run TestTable -update writes it):\n%s", page, diff)
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

func section() string {
	var b strings.Builder
	b.WriteString("| a container with root inside | here | Docker | kubelet and containerd | test |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range Rows() {
		const same = "the same"
		fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` |\n", row.Tries, row.Here, cmp.Or(row.Docker, same), cmp.Or(row.Kubelet, same), row.Test)
	}
	return b.String()
}
