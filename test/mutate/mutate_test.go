package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		"limit = 10 → limit = 11",
		"limit = 10 → limit = 9",
		"n < limit && !ok → false && (n < limit && !ok)",
		"n < limit && !ok → n < limit || !ok",
		"n < limit → n <= limit",
		"n < limit → n >= limit",
		"!ok → ok",
		"return len(s.m), nil → return zero",
		"loop for range n → loop removed",
		`s.m[n] = "a" + s.name → removed`,
		"s.n += 2 → removed",
		"s.n += 2 → s.n += 3",
		"s.n += 2 → s.n += 1",
		"s.n++ → removed",
		"continue → break",
		"s.full() → false && (s.full())",
		"s.full() → !(s.full())",
		"drop(s) → removed",
		"case 7 → case removed",
		"case 7 → case 8",
		"case 7 → case 6",
		"case 8 → case removed",
		"case 8 → case 9",
		"case 8 → case 7",
		"return 0, nil → return 1, nil",
		"return s.next() → return zero",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mutants (-want +got):\n%s", diff)
	}
}

// TestKeys checks that the key of a mutant depends neither on its function and its place in it, nor on the format.
func TestKeys(t *testing.T) {
	keys := func(source string) []string {
		t.Helper()
		mutants, err := fileMutants("p.go", []byte("package p\n\n"+source))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, m := range mutants {
			all = append(all, m.key)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	want := keys("func f(a, b int) bool { return g(a+1) <= 2*b }")
	for _, source := range []string{
		"func (t *T) other(a, b int) bool {\n\treturn g(a + 1) <=\n\t\t2 * b\n}",
		"func one(a, b int) bool { return g(a+1) <= 2*b }\n\nfunc two(a, b int) bool { return g(a+1) <= 2*b }",
	} {
		if diff := cmp.Diff(want, keys(source)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
	for _, key := range []string{"g(a+1) <= 2*b → g(a+2) <= 2*b", "g(a+1) <= 2*b → g(a+1) <= 1*b", "a + 1 → a - 1"} {
		if !slices.Contains(want, key) {
			t.Errorf("no mutant %q in %q", key, want)
		}
	}
}

// TestSample checks that a sample keeps the mutants of functions that a change does not concern.
func TestSample(t *testing.T) {
	source := func(names string) string {
		text := "package p\n"
		for _, name := range names {
			text += fmt.Sprintf("\nfunc %c(a, b int) bool { return a < b && b > 2 }\n", name)
		}
		return text
	}
	sample := func(names string) []string {
		t.Helper()
		mutants, err := fileMutants("p.go", []byte(source(names)))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, m := range pick(mutants, options{sample: 20, seed: 1}) {
			all = append(all, m.function+" "+m.key)
		}
		return all
	}
	before, after := sample("abcdefgh"), sample("xabcdefgh")
	if len(before) != 20 || len(after) != 20 {
		t.Fatalf("samples have %d and %d mutants, want 20", len(before), len(after))
	}
	for _, key := range after {
		if !strings.HasPrefix(key, "x ") && !slices.Contains(before, key) {
			t.Errorf("after a function was added, the sample has another mutant of the others: %s", key)
		}
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
	if !errors.Is(err, errBelow) || !strings.Contains(out, "SURVIVED  "+dir+"/p.go:5: untested: `!ok → ok`") {
		t.Errorf("untested function: %v\n%s", err, out)
	}
	explained := write("mutants.md", "# Survivors\n- `!ok → ok`: equivalent\n- `return !ok → return zero`: equivalent\n")
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
	stale := write("stale.md", "- `a → b`: equivalent\n")
	if _, err = mutate("-explained", stale); err == nil || !strings.Contains(err.Error(), "a → b") {
		t.Errorf("stale explanation: %v", err)
	}
	write("p_test.go", "package p\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { t.Fatal(\"broken\") }\n")
	if _, err = mutate(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("failing tests: %v", err)
	}
}

// TestQuickBuild checks that a mutant takes one compilation and one link, also if the go command trims paths: its export data is that of
// the unchanged package.
func TestQuickBuild(t *testing.T) {
	t.Setenv("GOFLAGS", "-trimpath")
	dir, tmp := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.org/p\n\ngo 1.26.0\n",
		"p.go":      "package p\n\n// F is exported.\nfunc F(ok bool) bool { return !ok }\n",
		"p_test.go": "package p_test\n\nimport (\n\t\"testing\"\n\n\t\"example.org/p\"\n)\n\nfunc Test(*testing.T) { p.F(true) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k, err := newKit(t.Context(), dir, tmp)
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := packageMutants(dir)
	if err != nil {
		t.Fatal(err)
	}
	path, err := k.build(t.Context(), tmp, mutants[0])
	if err != nil || filepath.Base(path) != "mutant.test" {
		t.Errorf("the tests were built as %q: %v", path, err)
	}
}

// TestConstants checks that a changed constant rebuilds the importers.
func TestConstants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/p\n\ngo 1.26.0\n",
		"p.go":   "package p\n\n// Limit is one.\nconst Limit = 3\n",
		"p_test.go": "package p_test\n\nimport (\n\t\"testing\"\n\n\t\"example.org/p\"\n)\n\nfunc Test(t *testing.T) {\n\tif p.Limit != " +
			"3 {\n\t\tt.Fatal(p.Limit)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(t.Context(), &out, []string{"-min-kill", "100", dir}); err != nil ||
		!strings.Contains(out.String(), "2 killed, 0 survived") {
		t.Errorf("%v\n%s", err, &out)
	}
}
