package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/table"
)

// TestTable: docs/conformance.md is made of the table, and the tests that it names are there.
//
//	go test ./test/conformance -run TestTable -update
func TestTable(t *testing.T) {
	var tests []string
	for _, row := range Rows() {
		switch {
		case row.Test == "" && row.Comes == "", row.Test != "" && row.Comes != "":
			t.Errorf("row %s %q: want a test, or with what it comes", row.Number, row.Setup)
		case row.Test != "" && row.Number != "" && row.Test != "TestRow"+row.Number:
			t.Errorf("row %s %q: the test is named %s", row.Number, row.Setup, row.Test)
		}
		tests = append(tests, row.Test)
	}
	machine := slices.DeleteFunc(table.Tests(t, "../vm", "vm"), func(name string) bool { return !strings.HasPrefix(name, "TestRow") })
	table.CheckTests(t, tests, append(table.Tests(t, ".", "e2e"), machine...))
	table.CheckPage(t, "../../docs/conformance.md", func(string) string { return page(machine) })
}

// page is the table, with the names of the tests that are in a virtual machine.
func page(machine []string) string {
	var b strings.Builder
	b.WriteString(`# The lifecycle, case by case

Made from the table of [test/conformance](../test/conformance/rows.go), by its tests. Each row is a test on real containers, and its
columns say what the kubelet does and where Podstead differs on purpose. Where nothing is said, Podstead does the same. CI runs
all of them, and ` + "`make soak`" + ` those without a virtual machine twenty times in a row on a machine that is loaded.

| row | case | the kubelet | different here | test |
| --- | --- | --- | --- | --- |
`)
	for _, row := range Rows() {
		test := "`" + row.Test + "`"
		switch {
		case row.Test == "":
			test = "comes " + row.Comes
		case slices.Contains(machine, row.Test):
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
