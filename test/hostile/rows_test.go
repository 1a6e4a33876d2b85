package hostile

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/table"
)

// What is between these lines of the page is made of the table.
const (
	begin = "<!-- hostile:begin -->\n"
	end   = "<!-- hostile:end -->\n"
)

// TestTable: the section of docs/security.md is made of the table, and the table names all tests that there are.
//
//	go test ./test/hostile -run TestTable -update
func TestTable(t *testing.T) {
	var tests []string
	for _, row := range Rows() {
		if row.Test == "" || row.Tries == "" || row.Here == "" {
			t.Errorf("row %q: want what it tries and what comes of it, and a test", row.Tries)
		}
		tests = append(tests, row.Test)
	}
	table.CheckTests(t, tests, table.Tests(t, ".", "e2e"))
	table.CheckPage(t, "../../docs/security.md", func(text string) string {
		before, rest, hasBegin := strings.Cut(text, begin)
		_, after, hasEnd := strings.Cut(rest, end)
		if !hasBegin || !hasEnd {
			t.Fatalf("the page has not both lines %q and %q", begin, end)
		}
		return before + begin + section() + end + after
	})
}

func section() string {
	var b strings.Builder
	b.WriteString("| a container with root inside | here | Docker | kubelet and containerd | test |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range Rows() {
		const same = "the same"
		fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` |\n", row.Tries, row.Here, cmp.Or(row.Docker, same), cmp.Or(row.Kubelet, same), row.Test)
	}
	return b.String()
}
