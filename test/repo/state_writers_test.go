package repo_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// stateWriters are the packages that may write files of state with a format, and those files. docs/reference/state-files.md describes them.
var stateWriters = map[string][]string{
	"supervisor/state":           {"STATE/pods/*.json", "RUN/pods/*.json", "STATE/quarantine/*.json"},
	"supervisor/podfiles":        {"STATE/generations/*.json"},
	"supervisor/event":           {"STATE/events/*.jsonl"},
	"internal/daemon":            {"RUN/daemon.json", "STATE/reboots.json"},
	"internal/daemon/notify":     {"STATE/notify/*.json"},
	"internal/daemon/images":     {"STATE/image-use.json"},
	"internal/daemon/bundleundo": {"STATE/bundle-undo.json"},
	"supervisor/schedule":        {"STATE/schedules/*.json"},
	"runtime/network":            {"STATE/network.json", "RUN/network.json"},
	"runtime/namespace":          {"STATE/users.json"},
	"runtime/engine":             {"STATE/engine/images.json", "STATE/engine/images-lost.json", "STATE/engine/damaged/reports.json"},
}

// TestStateWriters checks that each file of state has one package that writes it: no package uses the format of another one, except that
// the doctor reads versions.
func TestStateWriters(t *testing.T) {
	formats := map[string]bool{} // packages that have a format
	for _, s := range goFiles(t) {
		if s.isTest || s.dir == "internal/statefile" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if name, ok := n.Type.(*ast.SelectorExpr); ok && name.Sel.Name == "Format" && isNamed(name.X, "statefile") {
					formats[s.dir] = true
				}
			case *ast.SelectorExpr:
				format, ok := n.X.(*ast.SelectorExpr)
				if !ok || !strings.HasSuffix(format.Sel.Name, "Format") || n.Sel.Name == "Check" {
					return true
				}
				if of, ok := format.X.(*ast.Ident); ok && of.Obj == nil { // a package, no variable
					t.Errorf("%s uses %s.%s: call a function of that package", s.path, of.Name, format.Sel.Name)
				}
			}
			return true
		})
	}
	if want := slices.Sorted(maps.Keys(stateWriters)); !slices.Equal(slices.Sorted(maps.Keys(formats)), want) {
		t.Errorf("packages with formats of files of state: %v, want those of stateWriters: %v", slices.Sorted(maps.Keys(formats)), want)
	}
	var written, listed []string
	for _, files := range stateWriters {
		written = append(written, files...)
	}
	for line := range strings.Lines(readFile(t, "docs/reference/state-files.md")) {
		if cells := strings.Split(line, " | "); len(cells) == 4 && strings.TrimSpace(cells[2]) != "" && strings.HasPrefix(line, "| `") {
			listed = append(listed, strings.Trim(cells[0], "|` "))
		}
	}
	slices.Sort(written)
	slices.Sort(listed)
	if !slices.Equal(written, listed) {
		t.Errorf("stateWriters has %v, docs/reference/state-files.md has %v", written, listed)
	}
}

func isNamed(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}
