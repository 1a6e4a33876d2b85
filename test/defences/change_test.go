package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEdits checks each operation, in code of another format, in other files, and in other functions.
func TestEdits(t *testing.T) {
	const before = "package p\n\nconst limit = 3\n\n"
	for name, test := range map[string]struct {
		edit           edit
		code, want     string
		another, fails string // code of another function; part of the error
	}{
		"condition of an if": {edit: never("p", "T.f", "a > 1"), code: "if b && a > 1 {}", want: "if false && (b && a > 1) {}"},
		"initialisation of an if": {
			edit: never("p", "T.f", "g()"), code: "if err := g(); err != nil {}", want: "if err := g(); false && (err != nil) {}",
		},
		"condition of a case": {
			edit: always("p", "T.f", "a > 1"), code: "switch { case a > 1: b() }", want: "switch { case true || (a > 1): b() }",
		},
		"format": {
			edit: replaced("p", "T.f", "g(a, b)", "g($)"), code: "_ = g(\n\ta, // why\n\tb,\n)", want: "_ = g(g(\n\ta, // why\n\tb,\n))",
		},
		"statements":                 {edit: replaced("p", "T.f", "a(); b()", "c()"), code: "a()\nb()\nd()", want: "c()\nd()"},
		"without an operand":         {edit: without("p", "T.f", "b"), code: "return a | b | c", want: "return a | c"},
		"without the first operand":  {edit: without("p", "T.f", "a == 1"), code: "return a == 1 || b", want: "return b"},
		"without an argument":        {edit: without("p", "T.f", "g(b)"), code: "h(a, g(b), c)", want: "h(a, c)"},
		"without the first argument": {edit: without("p", "T.f", "a"), code: "h(a, b)", want: "h(b)"},
		"without a statement":        {edit: without("p", "T.f", "g(b)"), code: "a()\ng(b)", want: "a()\n"},
		"constant":                   {edit: constant("p", "limit", "9"), code: "return limit"},
		"one of two functions":       {edit: replaced("p", "T.f", "a", "b"), code: "c(a)", want: "c(b)", another: "c(a)"},
		"moved to another function":  {edit: replaced("p", "T.g", "a", "b"), code: "c(a)", want: "c(b)"},
		"twice in a function": {
			edit: replaced("p", "T.f", "a", "b"), code: "c(a, a)", fails: `package p, function T.f: code "a": found 2 times`,
		},
		"twice in other functions":    {edit: replaced("p", "T.g", "a", "b"), code: "c(a)", another: "c(a)", fails: "found 2 times"},
		"nowhere":                     {edit: without("p", "T.f", "x"), code: "c(a)", fails: "found 0 times"},
		"expression outside of an if": {edit: never("p", "T.f", "a"), code: "return a", fails: `condition "a": found 0 times`},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "p", "any.go")
			text := before + "func (t *T[E]) f() {\n" + test.code + "\n}\n\nfunc another() {\n" + test.another + "\n}\n"
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			changed := map[string]string{}
			err := test.edit.apply(root, changed)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			want := strings.Replace(text, test.code, test.want, 1)
			if test.want == "" {
				want = strings.Replace(text, "limit = 3", "limit = 9", 1)
			}
			if err != nil || changed[file] != want {
				t.Errorf("error %v, changed to\n%s\nwant\n%s", err, changed[file], want)
			}
		})
	}
}
