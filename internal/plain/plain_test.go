package plain

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"plain é 漢字 👩\u200d💻\ttab":       "plain é 漢字 👩\u200d💻\ttab",
		"\x1b[2Jx":                       `\x1b[2Jx`,
		"a\nb\r\x07\x7f\x00":             `a\nb\r\a\x7f\x00`,
		"\u0085\u009b31m":                `\u0085\u009b31m`,
		"user\u202enimda\u202c":          `user\u202enimda\u202c`,
		"\u2066\u2067\u2068\u2069":       `\u2066\u2067\u2068\u2069`,
		"\u200e\u200f\u061c":             `\u200e\u200f\u061c`,
		"\u200b\u2060\ufeff\u00ad":       `\u200b\u2060\ufeff\u00ad`,
		"\u2028\u2029":                   `\u2028\u2029`,
		"\xff\x9b1m":                     `\xff\x9b1m`,
		"\U000e0041tag":                  `\U000e0041tag`,
		"replaced \ufffd is a character": "replaced \ufffd is a character",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q): got %s, want %s", in, got, want)
		}
	}
}

// FuzzDocuments checks that any text survives JSON and YAML unchanged, apart from bytes that are not UTF-8, and that neither document has
// a hidden character. Keys are cut to what YAML accepts.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		"", "\x7f", "\u0085", "\u009b", "\u2028\u2029", "\ufeff", "\u202e\u2066", "\xff\xfe", "\x00\x01\x07\x1b", "\\a0000202E\\a",
		"\a0000202E\a",
		strings.Repeat("\u202e", 100), "- a: b\n# c\n", "yes", "0x1f", "'\"\\", "a\n\u200b\nb ", "\U000e0041\U0010ffff\ufffe",
		"\ud7ff\ue000", strings.Repeat("long word \u202e ", 40),
		strings.Repeat("x", 300) + "\x7f", "\u0080\a", "{[&*!|>%@`", "\t", " \u00a0", "\\u0007", `\\u0007`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key := []rune(s)
		v := map[string]any{
			"kind": "Pod", "list": []any{s, "x" + s}, "key" + string(key[:min(len(key), maxKey-len("key"))]): map[string]any{"message": s},
		}
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		safe := JSON(text)
		if err := json.Unmarshal(safe, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("JSON of %q: %v\n%s", s, err, safe)
		}
		visible(t, safe)
		doc, err := YAML(text)
		if err != nil {
			t.Fatalf("YAML of %q: %v", s, err)
		}
		visible(t, doc)
		back, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatalf("YAML of %q: %v\n%s", s, err, doc)
		}
		got = nil
		if err := json.Unmarshal(back, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("YAML of %q: %v\n%s\n%s", s, err, doc, back)
		}
	})
}

func visible(t *testing.T, doc []byte) {
	t.Helper()
	if !utf8.Valid(doc) {
		t.Fatalf("invalid UTF-8: %q", doc)
	}
	if i := bytes.IndexFunc(doc, func(r rune) bool { return r != '\n' && Hidden(r) }); i >= 0 {
		t.Fatalf("a hidden character at %d of %q", i, doc)
	}
}
