package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "one", "B": "$(A)", "EMPTY": "", "odd name": "o"}
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"$(A)-$(A)", "one-one"},
		{"$(B)", "$(A)"},
		{"<$(EMPTY)>", "<>"},
		{"$(NONE)", "$(NONE)"},
		{"$$(A)", "$(A)"},
		{"$$$(A)", "$one"},
		{"$(A", "$(A"},
		{"$A $", "$A $"},
		{"$(EMPTY)", ""},
		{"$(odd name)", "o"},
		{"$(NONE)", "$(NONE)"},
		{"$()", "$()"},
		{"$$(A)", "$(A)"},
		{"$$$(A)$$", "$one$"},
		{"$$$$(A)", "$$(A)"},
		{"$", "$"},
		{"$$", "$"},
		{"$A", "$A"},
		{"${A}", "${A}"},
		{"-$(A", "-$(A"},
		{"$(A$(A)", "$(A$(A)"}, // the name ends at the first closing parenthesis
		{"$($$", "$($"},
		{"a$", "a$"},
		{"$$A", "$A"},
		{"é$(A)é", "éoneé"},
	} {
		got, ok := Expand(test.in, vars, len(test.want))
		if !ok || got != test.want {
			t.Errorf("Expand(%q): got %q, %v, want %q", test.in, got, ok, test.want)
		}
		if _, ok := Expand(test.in, vars, len(test.want)-1); ok {
			t.Errorf("Expand(%q) with a limit of %d: got a result", test.in, len(test.want)-1)
		}
	}
}

// doubled returns variables of which each has the one before it twice.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString("env = [{ name = \"V0\", value = \"0123456789abcdef\" }")
	for i := range n {
		fmt.Fprintf(&b, ", { name = \"V%d\", value = \"$(V%d)$(V%d)\" }", i+1, i, i)
	}
	return b.String() + "]\n"
}

// TestProcessTooLarge checks that each field that can expand references is bounded, without using the memory.
func TestProcessTooLarge(t *testing.T) {
	large := "env = [{ name = \"A\", value = \"" + strings.Repeat("a", 300<<10) + "\" }]\n"
	many := "\"" + strings.Repeat("$(A)", 20000) + "\""
	checkRules(t, []rule{
		{appWith(doubled(25)), "containers[0].env[15].value", "may not be more than 1048576 bytes"},
		{appWith(doubled(60)), "containers[0].env[15].value", "in total"},
		{initWith(doubled(40)), "initContainers[0].env[15].value", "Too long"},
		{appWith(large + "args = [\"$(A)\", \"$(A)\", " + many + "]\n"), "containers[0].args[2]", "Too long"},
		{appWith(large + "command = [" + many + "]\n"), "containers[0].command[0]", "Too long"},
		{appWith(large + "command = [\"$(A)\"]\nargs = [\"$(A)\", \"$(A)\", \"$(A)\"]\n"), "containers[0].args[1]", "Too long"},
		{
			appWith(large + "livenessProbe.exec.command = [\"sh\", " + many + "]\n"), "containers[0].livenessProbe.exec.command[1]",
			"Too long",
		},
		{
			appWith(large + "[containers.startupProbe]\nexec.command = [\"$(A)\", \"$(A)\", \"$(A)\", \"$(A)\"]\n"),
			"containers[0].startupProbe.exec.command[3]", "Too long",
		},
	})
	if _, problems := Parse("web.toml", []byte(appWith(doubled(14)))); len(problems.Errors()) > 0 {
		t.Errorf("524,288 bytes: %v", problems)
	}
}
