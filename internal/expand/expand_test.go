package expand

import "testing"

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "one", "B": "$(A)", "EMPTY": ""}
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
	} {
		if got := Expand(test.in, vars); got != test.want {
			t.Errorf("Expand(%q): got %q, want %q", test.in, got, test.want)
		}
	}
}
