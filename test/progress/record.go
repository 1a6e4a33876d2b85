package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// record is what is kept of the last run of a suite, in a file of its own.
type record struct {
	Suite      string     `json:"suite"`
	Seconds    float64    `json:"seconds"`
	Processors string     `json:"processors"` // what they did, for people
	Failed     bool       `json:"failed,omitempty"`
	Tests      []measured `json:"tests"`
}

// measured are the seconds of a test, or of a package if Test is empty. Tests that run side by side wait for each other.
type measured struct {
	Package string  `json:"package"`
	Test    string  `json:"test,omitempty"`
	Seconds float64 `json:"seconds"`
}

func (r record) path(dir string) string { return filepath.Join(dir, r.Suite+".json") }

func (r record) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(dir), text, 0o644)
}

func readRecord(dir, suite string) (record, error) {
	r := record{Suite: suite}
	text, err := os.ReadFile(r.path(dir))
	if err != nil {
		return record{}, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return record{}, fmt.Errorf("%s: %w", r.path(dir), err)
	}
	return r, nil
}

// count returns the number of tests, without subtests.
func (r record) count() int {
	n := 0
	for _, m := range r.Tests {
		if m.Test != "" && !strings.Contains(m.Test, "/") {
			n++
		}
	}
	return n
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// printSummary prints a line for each suite. Suites that were not run have none.
func printSummary(out io.Writer, dir string, suites []string) error {
	for _, suite := range suites {
		r, err := readRecord(dir, suite)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		result := "ok"
		if r.Failed {
			result = "FAIL"
		}
		if _, err := fmt.Fprintf(out, "%-12s %-5s %6s  %5d tests\n", suite, result, minutes(duration(r.Seconds)), r.count()); err != nil {
			return err
		}
	}
	return nil
}

// The lines of a page around the table.
const (
	begin = "<!-- minutes:begin -->\n"
	end   = "<!-- minutes:end -->\n"
)

// writePage writes the table of all records into a page.
func writePage(page, dir string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s: lacks the lines %q and %q", page, begin, end)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	var records []record
	for _, file := range files {
		r, err := readRecord(dir, strings.TrimSuffix(filepath.Base(file), ".json"))
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	return os.WriteFile(page, []byte(before+begin+tables(records)+end+after), 0o644)
}

// tables returns a table of the suites, and one of the packages and tests that take longest.
func tables(records []record) string {
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(b.Seconds, a.Seconds) })
	var b strings.Builder
	b.WriteString("| suite | min:s | tests | processors |\n| --- | --- | --- | --- |\n")
	for _, r := range records {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s |\n", r.Suite, minutes(duration(r.Seconds)), r.count(), r.Processors)
	}
	b.WriteString("\n| suite | package | seconds | slowest tests |\n| --- | --- | --- | --- |\n")
	for _, r := range records {
		for _, p := range slowest(r.Tests, func(m measured) bool { return m.Test == "" }, packagesShown) {
			tests := slowest(r.Tests, func(m measured) bool {
				return m.Test != "" && m.Package == p.Package && !isParent(r.Tests, m)
			}, testsShown)
			names := make([]string, len(tests))
			for i, m := range tests {
				names[i] = fmt.Sprintf("%s %.0f", m.Test, m.Seconds)
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %.0f | %s |\n", r.Suite, cmp.Or(p.Package, "."), p.Seconds, strings.Join(names, ", "))
		}
	}
	return b.String()
}

// What the second table shows of each suite, and of each package.
const (
	packagesShown = 8
	testsShown    = 4
)

// isParent reports whether a test has subtests in the record, which say more.
func isParent(all []measured, m measured) bool {
	return slices.ContainsFunc(all, func(o measured) bool { return o.Package == m.Package && strings.HasPrefix(o.Test, m.Test+"/") })
}

// slowest returns at most n of the tests that have at least a second.
func slowest(all []measured, matches func(measured) bool, n int) []measured {
	var found []measured
	for _, m := range all {
		if m.Seconds >= 1 && matches(m) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b measured) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return found[:min(n, len(found))]
}
