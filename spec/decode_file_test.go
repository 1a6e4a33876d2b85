package spec

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	type config struct {
		Root  string  `json:"root"`
		Idle  Seconds `json:"idleSeconds"`
		Limit int     `json:"limit"`
	}
	c := config{Idle: 60, Limit: 3}
	f := Decode("podstead.toml", []byte("limit = 5\nroot = \"var\"\nrot = 1\n"), &c)
	if want := (config{Root: "var", Idle: 60, Limit: 5}); c != want {
		t.Errorf("decoded %+v, want %+v", c, want)
	}
	if !f.Has(&c.Root) || f.Has(&c.Idle) {
		t.Error("Has: want true for root and false for idleSeconds")
	}
	f.Bad(&c.Idle, "not reported: the file does not set the field", "")
	f.Bad(&c.Root, "must be absolute", "write /var")
	f.Bad(&c.Root, "not reported: the field has a problem already", "")
	want := "podstead.toml:2:8: root: must be absolute\nhint: write /var\npodstead.toml:3:1: rot: unknown field\nhint: did you mean " +
		"\"root\"?\n"
	if got := report(f.Problems()); got != want {
		t.Errorf("problems:\n%s\nwant:\n%s", got, want)
	}
	for text, words := range map[string]string{"a = ": "invalid TOML", strings.Repeat("#", maxFileBytes+1): "larger than"} {
		if got := report(Decode("podstead.toml", []byte(text), &config{}).Problems()); !strings.Contains(got, words) {
			t.Errorf("problems %q, want %q", got, words)
		}
	}
}
