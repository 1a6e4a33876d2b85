package repo_test

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestEventKinds checks that package api has a constant for each kind of event in the table, with its name, and no other ones.
func TestEventKinds(t *testing.T) {
	var want []string
	for _, e := range api.EventEntries() {
		want = append(want, string(e.Kind))
	}
	want = append(want, "EventsMissed") // stands for events, and is not in the table
	var got []string
	for name, value := range constantsOf(t, "api", "EventKind") {
		got = append(got, value)
		if strings.TrimPrefix(name, "Event") != value && name != value {
			t.Errorf("api.%s = %q: want Event%s", name, value, value)
		}
	}
	for _, kind := range want {
		if !slices.Contains(got, kind) {
			t.Errorf("package api has no constant for the event %s", kind)
		}
	}
	for _, kind := range got {
		if !slices.Contains(want, kind) {
			t.Errorf("the constant api.Event%s is no event of the table", kind)
		}
	}
}

// constantsOf returns the string constants of a type in a package, by name.
func constantsOf(t *testing.T, dir, typeName string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, s := range goFiles(t) {
		if s.dir != dir || s.isTest {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != typeName {
				return true
			}
			if literal, ok := v.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[v.Names[0].Name] = value
			}
			return true
		})
	}
	return found
}
