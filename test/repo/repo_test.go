// Package repo_test checks the repository: documentation, imports, names, widths and comments. It needs no root and no network.
//
// A check finds code by what it does, not by its place: moving a line, renaming a file or splitting a function
// must not break it.
package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/podstead/podstead"

// source is a Go file of the module.
type source struct {
	path    string // relative to the root, with slashes
	dir     string // directory of its package; "." is the root
	isTest  bool
	isE2E   bool // needs root
	text    string
	file    *ast.File
	imports []string
}

var fset = token.NewFileSet()

var sources = sync.OnceValues(func() ([]source, error) {
	var all []source
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "tools/") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		s := source{path: name, dir: path.Dir(name), isTest: strings.HasSuffix(name, "_test.go"), text: string(text), file: file}
		s.isE2E = strings.HasPrefix(s.text, "//go:build e2e")
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

// walk calls visit for each file of the repository.
func walk(visit func(name string) error) error {
	return filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			hidden := name != "." && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".ci"
			if hidden || name == "bin" || name == filepath.FromSlash("examples/images") {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular():
			return nil
		}
		return visit(filepath.ToSlash(name))
	})
}

func goFiles(t *testing.T) []source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s source) bool { return strings.Contains(s.path, "/testdata/") })
}

// TestPackageDocs checks that every package has a package comment.
func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range goFiles(t) {
		if strings.HasSuffix(s.file.Name.Name, "_test") {
			continue
		}
		doc := s.file.Doc.Text()
		documented[s.dir] = documented[s.dir] || strings.HasPrefix(doc, "Package "+s.file.Name.Name+" ") ||
			s.file.Name.Name == "main" && strings.HasPrefix(doc, "Command ")
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no file has a package comment (\"Package %s ...\" or, for a main package, \"Command ...\")", dir, path.Base(dir))
		}
	}
}

func selectorName(s *ast.SelectorExpr) string {
	if id, ok := s.X.(*ast.Ident); ok {
		return id.Name + "." + s.Sel.Name
	}
	return ""
}

// TestNoReplace checks that go.mod has no replace directives: go install ignores them for users.
func TestNoReplace(t *testing.T) {
	for _, name := range []string{"go.mod", "tools/go.mod"} {
		for n, line := range strings.Split(readFile(t, name), "\n") {
			if words := strings.Fields(line); len(words) > 0 && words[0] == "replace" || strings.Contains(line, " => ") {
				t.Errorf("%s:%d: %s", name, n+1, line)
			}
		}
	}
}

// TestRootTests checks that tests on real containers fail, instead of being skipped, if they cannot run.
func TestRootTests(t *testing.T) {
	for _, s := range goFiles(t) {
		if !s.isE2E {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if name := selector.Sel.Name; name == "Skip" || name == "Skipf" || name == "SkipNow" {
				t.Errorf("%s: %s in a test that needs root: fail with the missing requirement", fset.Position(n.Pos()), name)
			}
			return true
		})
	}
}

// TestNoSleep checks that nothing waits by time.Sleep, except in a synctest bubble, where the clock is virtual.
func TestNoSleep(t *testing.T) {
	for _, s := range goFiles(t) {
		if slices.Contains(s.imports, "testing/synctest") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selectorName(selector) == "time.Sleep" {
				t.Errorf("%s: time.Sleep: wait for the condition, or for ctx.Done", fset.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestRegexps checks that regular expressions are compiled at their first use, not at the start of the program, and that they are valid.
func TestRegexps(t *testing.T) {
	found := 0
	for _, s := range goFiles(t) {
		if s.isTest || strings.HasPrefix(s.path, "test/") || strings.HasPrefix(s.path, "internal/lazyregexp/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			selector, is := call.Fun.(*ast.SelectorExpr)
			if !is {
				return true
			}
			switch selectorName(selector) {
			case "regexp.MustCompile":
				t.Errorf("%s: use lazyregexp.New", fset.Position(n.Pos()))
			case "lazyregexp.New":
				found++
				literal, is := call.Args[0].(*ast.BasicLit)
				if !is {
					t.Errorf("%s: the expression must be a literal", fset.Position(n.Pos()))
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err == nil {
					_, err = regexp.Compile(text)
				}
				if err != nil {
					t.Errorf("%s: %v", fset.Position(n.Pos()), err)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no regular expression found")
	}
}

// TestPackageNames rejects package names that do not tell what the package provides.
func TestPackageNames(t *testing.T) {
	for _, s := range goFiles(t) {
		for name := range strings.SplitSeq(s.dir, "/") {
			if slices.Contains([]string{"util", "utils", "common", "types", "pkg", "helper", "helpers", "misc", "base"}, name) {
				t.Errorf("%s: name the package after what it provides, not %q", s.path, name)
			}
		}
	}
}

// TestTestNames rejects names of tests that are numbers in another document, and names of subtests that are only clear after the
// subtest before.
func TestTestNames(t *testing.T) {
	number := regexp.MustCompile(`^(Test|Fuzz|Benchmark)(Row|Case|Issue|Bug|Step|Part)?_?[0-9]`)
	context := regexp.MustCompile(`(?i)\b(once|and not (earlier|later|before)|as it should( be)?)$|^(and|then|again|so|but) ` +
		`|^(again|then)$`)
	for _, s := range goFiles(t) {
		if !s.isTest {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && number.MatchString(f.Name.Name) {
				t.Errorf("%s: %s: name the case that is tested", fset.Position(f.Pos()), f.Name.Name)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if name := subtestName(n); context.MatchString(strings.TrimSuffix(name, " at once")) {
				t.Errorf("%s: subtest %q: name the case that is tested", fset.Position(n.Pos()), name)
			}
			return true
		})
	}
}

// subtestName returns the literal name in t.Run(name, ...), or the first string of a row of a table, or "".
func subtestName(n ast.Node) string {
	var first ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if selector, ok := n.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Run" && len(n.Args) == 2 {
			first = n.Args[0]
		}
	case *ast.CompositeLit:
		if n.Type == nil && len(n.Elts) > 1 {
			first = n.Elts[0]
		}
	}
	if pair, ok := first.(*ast.KeyValueExpr); ok {
		if key, ok := pair.Key.(*ast.Ident); !ok || key.Name != "name" {
			return ""
		}
		first = pair.Value
	}
	literal, ok := first.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return name
}

// TestNoLint checks that //nolint is for linters that .golangci.yml enables. nolintlint checks that it has an explanation.
func TestNoLint(t *testing.T) {
	config := readFile(t, ".golangci.yml")
	_, list, _ := strings.Cut(config, "\n  enable:")
	list, _, _ = strings.Cut(list, "\n  settings:")
	var enabled []string
	for _, match := range regexp.MustCompile(`(?m)^    - ([a-z]+)`).FindAllStringSubmatch(list, -1) {
		enabled = append(enabled, match[1])
	}
	if !slices.Contains(enabled, "errcheck") {
		t.Fatalf("enabled linters %q: .golangci.yml has another form than expected", enabled)
	}
	nolint := regexp.MustCompile(`^//nolint:([a-z,]+)`)
	for _, s := range goFiles(t) {
		for _, group := range s.file.Comments {
			for _, comment := range group.List {
				match := nolint.FindStringSubmatch(comment.Text)
				if match == nil {
					continue
				}
				for linter := range strings.SplitSeq(match[1], ",") {
					if !slices.Contains(enabled, linter) {
						t.Errorf("%s: //nolint for %s, which is not enabled", fset.Position(comment.Pos()), linter)
					}
				}
			}
		}
	}
}

// TestComments checks that comments describe no open work, which belongs in issues, and refer to documents of the repository only.
func TestComments(t *testing.T) {
	unfinished := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	page := regexp.MustCompile(`\b[\w./-]+\.md\b`)
	issue := regexp.MustCompile(`(?i)(\w+\s+)?\bissue [0-9]+`)
	for _, s := range goFiles(t) {
		for _, group := range s.file.Comments {
			text := strings.ReplaceAll(group.Text(), "context.TODO", "")
			if unfinished.MatchString(text) {
				t.Errorf("%s: unfinished: %s", fset.Position(group.Pos()), text)
			}
			for _, name := range page.FindAllString(text, -1) {
				if !exists(name) && !exists(path.Join(s.dir, name)) && !exists(path.Join("docs", name)) {
					t.Errorf("%s: the comment refers to %s, which is not in the repository", fset.Position(group.Pos()), name)
				}
			}
			for _, match := range issue.FindAllString(text, -1) {
				if !strings.HasPrefix(strings.ToLower(match), "kubernetes ") {
					t.Errorf("%s: the comment refers to %q: name the project, as in kubernetes#99425", fset.Position(group.Pos()), match)
				}
			}
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// TestNoLocalPaths checks that no file contains the path of this working copy.
func TestNoLocalPaths(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	err = walk(func(name string) error {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), here+"/") {
			err = fmt.Errorf("%s contains the path of this working copy, %s", name, here)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
