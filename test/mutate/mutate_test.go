package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFileMutants(t *testing.T) {
	const source = `package p

const limit = 10

func (s *set[T]) add(n int, ok bool) (int, error) {
	if n < limit && !ok {
		return len(s.m), nil
	}
	for range n {
		s.m[n] = "a" + s.name
		s.n += 2
		s.n++
		continue
	}
	switch {
	case s.full():
		drop(s)
	}
	switch n {
	case 7, 8:
		return 0, nil
	}
	return s.next()
}
`
	mutants, err := fileMutants("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, m.key)
		if string(m.source()) == source {
			t.Errorf("%s changes nothing", m)
		}
		if _, err := fileMutants("p.go", m.source()); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	want := []string{
		"limit: 10 → 11",
		"limit: 10 → 9",
		"set.add: n < limit && !ok → false && (n < limit && !ok)",
		"set.add: n < limit && !ok → n < limit || !ok",
		"set.add: n < limit → n <= limit",
		"set.add: n < limit → n >= limit",
		"set.add: !ok → ok",
		"set.add: return len(s.m), nil → return zero",
		"set.add: loop for range n → loop removed",
		`set.add: s.m[n] = "a" + s.name → removed`,
		"set.add: s.n += 2 → removed",
		"set.add: 2 → 3",
		"set.add: 2 → 1",
		"set.add: s.n++ → removed",
		"set.add: continue → break",
		"set.add: s.full() → false && (s.full())",
		"set.add: s.full() → !(s.full())",
		"set.add: drop(s) → removed",
		"set.add: case 7 → case removed",
		"set.add: 7 → 8",
		"set.add: 7 → 6",
		"set.add: case 8 → case removed",
		"set.add: 8 → 9",
		"set.add: 8 → 7",
		"set.add: 0 → 1",
		"set.add: return s.next() → return zero",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mutants (-want +got):\n%s", diff)
	}
}

// TestRun mutates a package with three functions: one is tested, one is not, and the mutants of one loop forever.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("go.mod", "module example.org/p\n\ngo 1.26.0\n")
	write("p.go", `package p

func tested(a, b int) bool { return a < b }

func untested(ok bool) bool { return !ok }

func step(n int) int {
	n++
	return n
}
`)
	write("p_test.go", `package p

import "testing"

func Test(t *testing.T) {
	if !tested(1, 2) || tested(2, 2) || tested(2, 1) {
		t.Fatal("tested")
	}
	for n := 0; n < 9; n = step(n) {
	}
}
`)
	mutate := func(args ...string) (string, error) {
		var out strings.Builder
		err := run(t.Context(), &out, append(args, dir))
		return out.String(), err
	}

	out, err := mutate("-func", "tested", "-min-kill", "100")
	if err != nil || !strings.Contains(out, "3 killed, 0 survived (0 explained), 0 did not compile; 100.0% killed") {
		t.Errorf("tested function: %v\n%s", err, out)
	}
	out, err = mutate("-func", "untested", "-min-kill", "50")
	if !errors.Is(err, errBelow) || !strings.Contains(out, "SURVIVED  "+dir+"/p.go:5: `untested: !ok → ok`") {
		t.Errorf("untested function: %v\n%s", err, out)
	}
	explained := write("mutants.md", "# Survivors\n- `untested: !ok → ok`: equivalent\n- `untested: return !ok → return zero`: equivalent\n")
	out, err = mutate("-func", "untested", "-explained", explained)
	if err != nil || !strings.Contains(out, "2 survived (2 explained)") {
		t.Errorf("explained survivors: %v\n%s", err, out)
	}
	out, err = mutate("-func", "step", "-timeout", "1s")
	if err != nil || !strings.Contains(out, "2 killed, 0 survived") {
		t.Errorf("mutants that loop forever: %v\n%s", err, out)
	}
	for _, last := range []string{"Test", "Nothing"} { // with the killing test last and first
		if out, err = mutate("-func", "tested", "-last", last); err != nil || !strings.Contains(out, "3 killed, 0 survived") {
			t.Errorf("-last %s: %v\n%s", last, err, out)
		}
	}
	if _, err = mutate("-func", "unknown"); err == nil || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("unknown function: %v", err)
	}
	stale := write("stale.md", "- `missing: a → b`: equivalent\n")
	if _, err = mutate("-explained", stale); err == nil || !strings.Contains(err.Error(), "missing: a → b") {
		t.Errorf("stale explanation: %v", err)
	}
	write("p_test.go", "package p\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { t.Fatal(\"broken\") }\n")
	if _, err = mutate(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("failing tests: %v", err)
	}
}

// TestConstants checks that a changed constant rebuilds the importers.
func TestConstants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.org/p\n\ngo 1.26.0\n",
		"p.go":      "package p\n\n// Limit is one.\nconst Limit = 3\n",
		"p_test.go": "package p_test\n\nimport (\n\t\"testing\"\n\n\t\"example.org/p\"\n)\n\nfunc Test(t *testing.T) {\n\tif p.Limit != 3 {\n\t\tt.Fatal(p.Limit)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, []string{"-min-kill", "100", dir}); err != nil || !strings.Contains(out.String(), "2 killed, 0 survived") {
		t.Errorf("%v\n%s", err, &out)
	}
}
