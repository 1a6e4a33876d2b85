package event

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTable expects a row for every kind, and the fields of its sentence in every row.
func TestTable(t *testing.T) {
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
		if kind, is := spec.Type.(*ast.Ident); is && kind.Name == "Kind" {
			kinds++
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if _, known := table[Kind(value)]; err != nil || !known {
				t.Errorf("kind %s has no row", value)
			}
		}
		return true
	})
	if kinds == 0 || kinds != len(Entries()) || len(table) != kinds {
		t.Errorf("%d kinds, %d rows, %d of them different", kinds, len(Entries()), len(table))
	}
	for _, e := range Entries() {
		var named []string
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(e.Sentence, -1) {
			named = append(named, m[1])
		}
		fields := slices.Clone(e.Fields)
		slices.Sort(fields)
		slices.Sort(named)
		if !slices.Equal(fields, named) {
			t.Errorf("%s: the sentence names %v, the fields are %v", e.Kind, named, fields)
		}
		for _, more := range e.More {
			if slices.Contains(fields, more) {
				t.Errorf("%s: the field %s is also in the sentence", e.Kind, more)
			}
		}
		if e.Reason == "" || (e.Level != Normal && e.Level != Warning) {
			t.Errorf("%s has the reason %q and the level %q", e.Kind, e.Reason, e.Level)
		}
	}
}

func TestRing(t *testing.T) {
	r := NewRing(4)
	if events, missed := r.Since(0); len(events) != 0 || missed != 0 {
		t.Errorf("an empty ring holds %v, %d missed", events, missed)
	}
	for range 10 {
		r.Add(Event{})
	}
	for _, tt := range []struct {
		since, missed uint64
		want          []uint64
	}{
		{0, 6, []uint64{7, 8, 9, 10}},
		{5, 1, []uint64{7, 8, 9, 10}},
		{6, 0, []uint64{7, 8, 9, 10}},
		{9, 0, []uint64{10}},
		{10, 0, nil},
		{99, 6, []uint64{7, 8, 9, 10}}, // of a supervisor whose journal was lost
	} {
		events, missed := r.Since(tt.since)
		var got []uint64
		for _, e := range events {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, tt.want) || missed != tt.missed {
			t.Errorf("since %d: %v, %d missed; want %v, %d", tt.since, got, missed, tt.want, tt.missed)
		}
	}
}

func TestRingFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRing(4)
		go func() {
			time.Sleep(time.Minute)
			r.Add(Event{Pod: "p"})
		}()
		events, missed, err := r.Follow(t.Context(), 0)
		if err != nil || len(events) != 1 || events[0].Pod != "p" || missed != 0 {
			t.Errorf("Follow returned %v, %d, %v", events, missed, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if events, _, err := r.Follow(ctx, 1); err == nil {
			t.Errorf("Follow returned %v though nothing happened", events)
		}
	})
}

// TestMessageIDs checks that each reason of the event table has an ID of its own, and a text in the catalog.
func TestMessageIDs(t *testing.T) {
	text, err := os.ReadFile("../../packaging/podstead.catalog")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range Entries() {
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
