package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/hostile"
	"github.com/podstead/podstead/test/internal/table"
)

// TestChanges checks that each change can be made: what it changes is in the package once.
func TestChanges(t *testing.T) {
	for _, d := range defences() {
		if _, err := d.overlay("../..", t.TempDir()); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if len(d.edits) == 0 || len(d.attacks) == 0 {
			t.Errorf("%s has no change or no attack", d)
		}
	}
	for _, e := range []edit{
		never("spec", "isReserved", "noSuchName"), replaced("spec", "isReserved", "noSuchName", ""),
		without("spec", "isReserved", "noSuchName"),
		constant("spec", "noSuchName", ""),
	} {
		_, err := defence{edits: []edit{e}}.overlay("../..", t.TempDir())
		if err == nil || !strings.HasPrefix(err.Error(), "package spec, function ") || !strings.Contains(err.Error(), "found 0 times") {
			t.Errorf("%s that does not exist: error %v", e.what, err)
		}
	}
}

// TestCheck checks how the result of a test is judged.
func TestCheck(t *testing.T) {
	d := defence{attacks: []attack{{"a", "TestX/a", "is open"}}}
	failed := fmt.Errorf("exit status 1")
	for _, test := range []struct {
		output string
		result error
		ok     bool
	}{
		{"--- FAIL: TestX/a (0.00s)\n is open\n--- FAIL: TestX/b (0.00s)\n", failed, true},
		{"--- FAIL: TestX/a (0.00s)\n--- FAIL: TestX/b (0.00s)\n is open\n", failed, false},
		{"--- FAIL: TestX/ab (0.00s)\n is open\n", failed, false},
		{"panic: unrelated", failed, false},
		{"PASS", nil, false},
	} {
		if err := d.check(test.output, test.result); (err == nil) != test.ok {
			t.Errorf("output %q: %v, want ok: %v", test.output, err, test.ok)
		}
	}
}

const begin, end = "<!-- defences:begin -->\n", "<!-- defences:end -->\n"

// TestTable checks that the page has the table.
//
//	go test ./test/defences -run TestTable -update
func TestTable(t *testing.T) {
	table.CheckPage(t, "../../docs/design/defences.md", func(text string) string {
		before, rest, hasBegin := strings.Cut(text, begin)
		_, after, hasEnd := strings.Cut(rest, end)
		if !hasBegin || !hasEnd {
			t.Fatalf("the page lacks the lines %q and %q", begin, end)
		}
		return before + begin + page() + end + after
	})
}

var words = map[string]string{
	accepted: "accepted", allocates: "too much memory is allocated", remains: "content remains", unpacks: "all of it is unpacked",
	refusedElsewhere: "refused by another check, with another message",
}

func page() string {
	var b strings.Builder
	b.WriteString("| attack | defence | test | without the defence |\n| --- | --- | --- | --- |\n")
	found := map[string]bool{}
	for _, d := range defences() {
		for _, a := range d.attacks {
			for _, row := range hostile.Rows() {
				found[row.Test] = found[row.Test] || strings.HasPrefix(row.Tries, a.tries)
			}
			shows := cmp.Or(words[a.shows], "shows `` "+a.shows+" ``")
			fmt.Fprintf(&b, "| %s | %s | `%s`, %s | %s |\n", a.tries, d.name, strings.TrimPrefix(d.pkg, "./"),
				strings.ReplaceAll(cmp.Or(a.subtest, d.test), "|", ", "), shows)
		}
	}
	var missing []string
	for _, row := range hostile.Rows() {
		if !found[row.Test] && !slices.Contains(missing, row.Test) {
			missing = append(missing, row.Test)
		}
	}
	fmt.Fprintf(&b, "\nTests of [security](../security.md) without a row here: %s.\n", strings.Join(missing, ", "))
	return b.String()
}
