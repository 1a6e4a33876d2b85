package repo_test

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 140
	tabColumns = 4
	wideLines  = "test/repo/testdata/wide-lines.txt"
)

// TestWidth checks that lines of code and prose have at most 140 columns. testdata/wide-lines.txt has the number of wider lines in each
// file. Their sum must not grow, and the list must shrink with it. Lines can move between files. This shrinks the list:
//
//	go test ./test/repo -run TestWidth -update
func TestWidth(t *testing.T) {
	wide := map[string][]int{}
	err := walk(func(name string) error {
		text := readFile(t, name)
		if lines := tooWide(name, text); len(lines) > 0 {
			wide[name] = lines
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed, sum := readWideLines(t), 0
	for _, n := range listed {
		sum += n
	}
	now := 0
	for _, lines := range wide {
		now += len(lines)
	}
	switch {
	case now > sum:
		for _, name := range slices.Sorted(maps.Keys(wide)) {
			if n := len(wide[name]); n > listed[name] {
				t.Errorf("%s: %d lines have more than %d columns, want %d: break some of the lines %v",
					name, n, maxColumns, listed[name], wide[name])
			}
		}
	case *update:
		writeWideLines(t, wide)
	case now < sum:
		t.Errorf("%d lines have more than %d columns, %s lists %d: run go test ./test/repo -run TestWidth -update",
			now, maxColumns, wideLines, sum)
	}
}

// readWideLines returns the numbers in the list, by file.
func readWideLines(t *testing.T) map[string]int {
	t.Helper()
	listed := map[string]int{}
	for line := range strings.Lines(readFile(t, wideLines)) {
		var n int
		var name string
		if _, err := fmt.Sscanf(line, "%d %s", &n, &name); err != nil {
			t.Fatalf("%s: line %q: %v", wideLines, line, err)
		}
		listed[name] = n
	}
	return listed
}

func writeWideLines(t *testing.T, wide map[string][]int) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(wide)) {
		fmt.Fprintf(&b, "%d %s\n", len(wide[name]), name)
	}
	if err := os.WriteFile(wideLines, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tooWide returns the numbers of the lines that are too wide and can be broken.
func tooWide(name, text string) []int {
	var fixed map[int]bool
	shorten := func(line string) string { return line }
	switch kind := path.Ext(name); {
	case kind == ".go":
		fixed, shorten = rawStrings(text), withoutDirectives
	case kind == ".md":
		fixed, shorten = tablesAndBlocks(text), withoutTargets
	case kind == ".toml" || kind == ".sh" || path.Base(name) == "Makefile" || strings.HasPrefix(text, "#!"):
	default:
		return nil
	}
	if kind := path.Ext(name); kind == ".go" && generated.MatchString(text) {
		return nil
	}
	var wide []int
	n := 0
	for line := range strings.Lines(text) {
		n++
		if len(line) > maxColumns/tabColumns && columns(line) > maxColumns && !fixed[n] && columns(shorten(line)) > maxColumns {
			wide = append(wide, n)
		}
	}
	return wide
}

func columns(line string) int {
	return utf8.RuneCountInString(strings.TrimRight(line, "\n")) + (tabColumns-1)*strings.Count(line, "\t")
}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	directive = regexp.MustCompile(`//(nolint|go:).*`)
	fieldTag  = regexp.MustCompile("`[a-z]+:\"[^`]*`")
	target    = regexp.MustCompile(`\]\([^)\s]*\)|https?://\S+`)
)

// withoutDirectives removes what must be in the line: comments for tools, and the tags of fields.
func withoutDirectives(line string) string {
	return target.ReplaceAllString(fieldTag.ReplaceAllString(directive.ReplaceAllString(line, ""), ""), "")
}

func withoutTargets(line string) string { return target.ReplaceAllString(line, "") }

// rawStrings returns the lines of Go code that are in a raw string of several lines: they are text.
func rawStrings(text string) map[int]bool {
	lines := map[int]bool{}
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if n := strings.Count(literal, "\n"); kind == token.STRING && n > 0 {
			for first, i := file.Line(pos), 0; i <= n; i++ {
				lines[first+i] = true
			}
		}
	}
}

// tablesAndBlocks returns the lines of a page that are in a table, in a fenced block, or in a part that is generated, between lines such as
// <!-- defences:begin --> and <!-- defences:end -->.
func tablesAndBlocks(text string) map[int]bool {
	lines := map[int]bool{}
	n, fence, isGenerated := 0, "", false
	for line := range strings.Lines(text) {
		n++
		start := strings.TrimSpace(line)
		if strings.HasPrefix(start, "<!-- ") {
			isGenerated = strings.HasSuffix(start, ":begin -->")
		}
		switch {
		case isGenerated:
			lines[n] = true
		case fence != "":
			lines[n] = true
			if start == fence {
				fence = ""
			}
		case strings.HasPrefix(start, "```"):
			fence = start[:len(start)-len(strings.TrimLeft(start, "`"))]
		case strings.HasPrefix(start, "|"), strings.HasPrefix(start, "<"):
			lines[n] = true
		}
	}
	return lines
}

// TestTooWide checks what counts as too wide.
func TestTooWide(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, test := range []struct {
		name, text string
		want       int
	}{
		{"a.go", "// " + long + "\n", 1},
		{"a.go", "\t\t\t\t// " + strings.Repeat("x", 130) + "\n", 1},
		{"a.go", "\t// " + strings.Repeat("ä", 133) + "\n", 0},
		{"a.go", "var a = 1 //nolint:all // " + long + "\n", 0},
		{"a.go", "\tA int `json:\"a\" podfile:\"" + long + "\"`\n", 0},
		{"a.go", "var a = `\n" + long + "\n`\n", 0},
		{"a.go", "// Code generated by a tool. DO NOT EDIT.\n// " + long + "\n", 0},
		{"a.go", "// https://example.org/" + strings.Repeat("x", 140) + "\n", 0},
		{"a.md", long + "\n", 1},
		{"a.md", "| " + long + " |\n", 0},
		{"a.md", "```text\n" + long + "\n```\n" + long + "\n", 1},
		{"a.md", "<!-- a:begin -->\n" + long + "\n<!-- a:end -->\n" + long + "\n", 1},
		{"a.md", "see [a](" + strings.Repeat("x", 140) + ")\n", 0},
		{"Makefile", "a: ## " + long + "\n", 1},
		{"run", "#!/bin/sh\n# " + long + "\n", 1},
		{"a.json", long + "\n", 0},
	} {
		if got := tooWide(test.name, test.text); len(got) != test.want {
			t.Errorf("%s: %q: lines %v, want %d", test.name, test.text, got, test.want)
		}
	}
}
