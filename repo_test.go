// Package podstead_test holds the repository against its own rules: what it says about itself, who may import whom, and what must
// not be in it. It needs no root and no network.
package podstead_test

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
	path    string // from the root, with slashes
	dir     string // its package's folder; "." is the root
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

// walk calls visit for each file that belongs to the repository.
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

// TestPackageDocs: a package says what it is for before anyone reads its code.
func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range goFiles(t) {
		if strings.HasSuffix(s.file.Name.Name, "_test") && s.dir != "." {
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

// arrows are the imports that must not be. A path ends with "$" where its sub-packages are not meant.
var arrows = []struct {
	from   string // folders, separated by spaces
	never  string // imports, separated by spaces
	reason string
}{
	{"spec", module, "spec is the bottom: it imports nothing of ours"},
	{"supervisor", ours("runtime probes hooks"), "the supervisor owns its interfaces; cmd joins them with the edges"},
	{"supervisor/admission", ours("supervisor$ supervisor/explain internal"), "policy is a pure function of a pod's definition"},
	{"supervisor", ours("api"), "api imports the supervisor, not the reverse"},
	{"api", ours("runtime probes hooks"), "api speaks of the supervisor only; cmd wires the edges"},
	{"runtime probes hooks", ours("supervisor$ api"), "edges know spec and lifecycle, not who calls them"},
	{"runtime probes hooks", ours("runtime probes hooks"), "no arrow between the edges"},
	{"internal", ours("spec supervisor runtime probes hooks api"), "internal serves all and knows none of them"},
	{"spec supervisor runtime probes hooks api internal", ours("cmd"), "nothing imports cmd"},
	{"spec supervisor probes hooks api cmd internal", "github.com/containerd/", "only runtime knows containerd"},
	{"supervisor runtime probes hooks api", "github.com/BurntSushi/ github.com/pelletier/", "only spec knows TOML"},
}

func ours(folders string) string {
	return module + "/" + strings.ReplaceAll(folders, " ", " "+module+"/")
}

// TestArrows is depguard's twin: it needs no linter, and its reasons are for people.
func TestArrows(t *testing.T) {
	for _, s := range goFiles(t) {
		if s.isTest {
			continue
		}
		for _, arrow := range arrows {
			for from := range strings.FieldsSeq(arrow.from) {
				if !within(s.dir, from) {
					continue
				}
				for _, imported := range s.imports {
					for never := range strings.FieldsSeq(arrow.never) {
						if reaches(imported, never) && !within(imported, module+"/"+from) {
							t.Errorf("%s imports %s: %s", s.path, imported, arrow.reason)
						}
					}
				}
			}
		}
	}
}

func within(dir, tree string) bool {
	return dir == tree || strings.HasPrefix(dir, tree+"/")
}

func reaches(imported, pattern string) bool {
	if exact, ok := strings.CutSuffix(pattern, "$"); ok {
		return imported == exact
	}
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(imported, pattern)
	}
	return within(imported, pattern)
}

// TestLifecycleIsPure: the core decides; it reads no clock, no file and no environment, and so it imports almost nothing.
func TestLifecycleIsPure(t *testing.T) {
	allowed := []string{"cmp", "errors", "fmt", "maps", "math", "slices", "strconv", "strings", "time", module + "/spec"}
	found := false
	for _, s := range goFiles(t) {
		if s.dir != "supervisor/lifecycle" || s.isTest {
			continue
		}
		found = true
		for _, imported := range s.imports {
			if !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s: lifecycle takes values and gives values; it may import %s", s.path, imported, strings.Join(allowed, ", "))
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if name := selectorName(selector); slices.Contains([]string{"time.Now", "time.Since", "time.Until", "time.After", "time.NewTimer", "time.NewTicker"}, name) {
				t.Errorf("%s: %s: lifecycle is told the time", fset.Position(n.Pos()), name)
			}
			return true
		})
	}
	if !found {
		t.Error("supervisor/lifecycle has no files")
	}
}

func selectorName(s *ast.SelectorExpr) string {
	if id, ok := s.X.(*ast.Ident); ok {
		return id.Name + "." + s.Sel.Name
	}
	return ""
}

// TestNoReplace: a replace directive holds for this repository and for nobody who installs from it.
func TestNoReplace(t *testing.T) {
	for _, name := range []string{"go.mod", "tools/go.mod"} {
		for n, line := range strings.Split(readFile(t, name), "\n") {
			if words := strings.Fields(line); len(words) > 0 && words[0] == "replace" || strings.Contains(line, " => ") {
				t.Errorf("%s:%d: %s", name, n+1, line)
			}
		}
	}
}

// TestRootTests: a test on real containers fails where it cannot run. Skipped, it would be green everywhere and run nowhere.
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
				t.Errorf("%s: %s in a test that needs root: fail and say what is missing", fset.Position(n.Pos()), name)
			}
			return true
		})
	}
}

// TestNoSleep: whoever sleeps waits too long or not long enough. In a synctest bubble sleeping costs nothing and is exact.
func TestNoSleep(t *testing.T) {
	for _, s := range goFiles(t) {
		if slices.Contains(s.imports, "testing/synctest") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && selectorName(selector) == "time.Sleep" {
				t.Errorf("%s: time.Sleep: wait for the condition itself", fset.Position(n.Pos()))
			}
			return true
		})
	}
}

// TestSize: a file or a function that has grown past these is several.
func TestSize(t *testing.T) {
	const fileLines, testLines, functionLines = 500, 900, 90
	for _, s := range goFiles(t) {
		limit := fileLines
		if s.isTest {
			limit = testLines
		}
		if lines := strings.Count(s.text, "\n"); lines > limit {
			t.Errorf("%s: %d lines, want at most %d", s.path, lines, limit)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || s.isTest {
				continue
			}
			if lines := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; lines > functionLines {
				t.Errorf("%s: %s has %d lines, want at most %d", fset.Position(f.Pos()), f.Name.Name, lines, functionLines)
			}
		}
	}
}

// TestNames: such a name says that nobody knows what belongs into the package.
func TestNames(t *testing.T) {
	for _, s := range goFiles(t) {
		for name := range strings.SplitSeq(s.dir, "/") {
			if slices.Contains([]string{"util", "utils", "common", "types", "pkg", "helper", "helpers", "misc", "base"}, name) {
				t.Errorf("%s: a package is named for what it provides, not %q", s.path, name)
			}
		}
	}
}

// TestNoLeftovers: what is unfinished is an issue, not a comment; and no file tells of the machine that it was written on.
func TestNoLeftovers(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	unfinished := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	for _, s := range goFiles(t) {
		for _, group := range s.file.Comments {
			for _, comment := range group.List {
				if s.path != "repo_test.go" && unfinished.MatchString(strings.ReplaceAll(comment.Text, "context.TODO", "")) {
					t.Errorf("%s: %s", fset.Position(comment.Pos()), comment.Text)
				}
			}
		}
	}
	err = walk(func(name string) error {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), here+"/") {
			err = fmt.Errorf("%s names the folder of this checkout, %s", name, here)
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
