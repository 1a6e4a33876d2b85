package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/test/internal/table"
)

// TestTable checks that docs/conformance.md is generated from the table, and that the table names exactly the tests that exist.
//
//	go test ./test/conformance -run TestTable -update
func TestTable(t *testing.T) {
	var tests []string
	for _, row := range Rows() {
		tests = append(tests, row.Test)
	}
	inVM := table.Tests(t, "../vm", "vm")
	inVM = slices.DeleteFunc(inVM, func(name string) bool { return !slices.Contains(tests, name) })
	table.CheckTests(t, tests, append(table.Tests(t, ".", "e2e"), inVM...))
	table.CheckPage(t, "../../docs/conformance.md", func(string) string { return page(inVM) })
}

// page renders the table. inVM are the tests that run in a virtual machine.
func page(inVM []string) string {
	var b strings.Builder
	b.WriteString(`# Pod lifecycle conformance

Run the tests of this table as root:

    make e2e     # each test, on real containers
    make vm      # the tests in a virtual machine
    make soak    # those without a virtual machine twenty times in a row, on a loaded host

Each row is a test on real containers. The columns show what the kubelet of Kubernetes ` + spec.KubernetesVersion +
		` does, and where Podstead differs on
purpose. Without a difference, Podstead does the same. The page is generated from
[test/conformance/rows.go](../test/conformance/rows.go); CI runs all rows.

| row | case | kubelet | Podstead differs | test |
| --- | --- | --- | --- | --- |
`)
	for _, row := range Rows() {
		test := "`" + row.Test + "`"
		if slices.Contains(inVM, row.Test) {
			test += ", in a virtual machine"
		}
		differs := row.Differs
		if differs == "" {
			differs = "-"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.Number, row.Setup, row.Kubelet, differs, test)
	}
	return b.String()
}
