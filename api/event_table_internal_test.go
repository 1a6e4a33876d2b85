package api

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEventTable expects a row for every kind, and the fields of its sentence in every row.
func TestEventTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if kind, is := spec.Type.(*ast.Ident); is && kind.Name == "EventKind" && spec.Names[0].Name != "EventsMissed" {
			kinds++
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if _, known := eventTable[EventKind(value)]; err != nil || !known {
				t.Errorf("kind %s has no row", value)
			}
		}
		return true
	})
	if kinds == 0 || kinds != len(EventEntries()) || len(eventTable) != kinds {
		t.Errorf("%d kinds, %d rows, %d of them different", kinds, len(EventEntries()), len(eventTable))
	}
	for _, e := range EventEntries() {
		var named []string
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(e.Sentence, -1) {
			named = append(named, m[1])
		}
		if strings.Count(e.Sentence, "{") != len(named) || strings.Count(e.Sentence, "}") != len(named) {
			t.Errorf("%s: the sentence %q names the fields %v", e.Kind, e.Sentence, named)
		}
		for _, more := range e.More {
			if slices.Contains(named, more) {
				t.Errorf("%s: the field %s is also in the sentence", e.Kind, more)
			}
		}
		if e.Reason == "" || (e.Level != EventNormal && e.Level != EventWarning) {
			t.Errorf("%s has the reason %q and the level %q", e.Kind, e.Reason, e.Level)
		}
	}
}

// TestMessageIDs checks that each reason of the event table has an ID of its own, and a text in the catalog.
func TestMessageIDs(t *testing.T) {
	text, err := os.ReadFile("../packaging/podstead.catalog")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range EventEntries() {
		known[e.Reason] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(messageIDs))); diff != "" {
		t.Errorf("reasons of the table and with an ID (-table +ID)\n%s", diff)
	}
	inCatalog := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# (\w+)\n-- ([0-9a-f]{32})\nSubject: .+\n`).FindAllSubmatch(text, -1) {
		inCatalog[string(m[1])] = string(m[2])
	}
	if diff := cmp.Diff(messageIDs, inCatalog); diff != "" {
		t.Errorf("IDs of the code and of the catalog (-code +catalog)\n%s", diff)
	}
	if n := bytes.Count(text, []byte("\n-- ")); n != len(messageIDs) {
		t.Errorf("%d entries in the catalog for %d reasons", n, len(messageIDs))
	}
	used := map[string]string{}
	for reason, id := range messageIDs {
		if used[id] != "" {
			t.Errorf("%s and %s have the same ID", reason, used[id])
		}
		used[id] = reason
	}
}
