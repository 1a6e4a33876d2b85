package hostile

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/table"
)

// The part of the page between these lines is generated from the table.
const (
	begin = "<!-- hostile:begin -->\n"
	end   = "<!-- hostile:end -->\n"
)

// TestTable checks that the table in docs/security.md is generated from the rows, and that the rows name exactly the tests that exist.
//
//	go test ./test/hostile -run TestTable -update
func TestTable(t *testing.T) {
	var tests []string
	for _, row := range Rows() {
		if row.Test == "" || row.Tries == "" || row.Here == "" {
			t.Errorf("row %q: want an attempt, an outcome and a test", row.Tries)
		}
		tests = append(tests, row.Test)
	}
	table.CheckTests(t, tests, table.Tests(t, ".", "e2e"))
	table.CheckPage(t, "../../docs/security.md", func(text string) string {
		before, rest, hasBegin := strings.Cut(text, begin)
		_, after, hasEnd := strings.Cut(rest, end)
		if !hasBegin || !hasEnd {
			t.Fatalf("the page lacks the lines %q and %q", begin, end)
		}
		return before + begin + section() + end + after
	})
}

func section() string {
	var b strings.Builder
	b.WriteString("| attempt of a container with root inside | Podstead | Docker | kubelet and containerd | test |\n| --- | --- | --- | " +
		"--- | --- |\n")
	for _, row := range Rows() {
		const same = "the same"
		fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` |\n", row.Tries, row.Here, cmp.Or(row.Docker, same), cmp.Or(row.Kubelet, same),
			row.Test)
	}
	return b.String()
}
