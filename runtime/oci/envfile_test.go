package oci

import (
	"strings"
	"testing"
)

// TestEnvFile checks the format by the rules of the kubelet (ParseEnv).
func TestEnvFile(t *testing.T) {
	long := strings.Repeat("x", 60<<10)
	for _, test := range []struct{ name, text, want, err string }{
		{"empty file", "", "", ""},
		{"other keys", "A='1'\nKEYS='2'\n", "", ""},
		{"the first of two", "KEY='a'\nKEY='b'\n", "a", ""},
		{"without a newline", "KEY='a'", "a", ""},
		{"blanks, comments, and a comment after the value", "\n \t\n# KEY='c'\n \tKEY='a b' \t# c\n", "a b", ""},
		{"literal", `KEY='$HOME "\n" =#'`, `$HOME "\n" =#`, ""},
		{"several lines", "A='1\nKEY=2'\nKEY='a\n\n  # b\n'\n", "a\n\n  # b\n", ""},
		{"CRLF", "KEY='a\r\nb'\r\n", "a\nb", ""},
		{"empty", "KEY=''\nKEY='a'\n", "", ""},
		{"blank before the quote", "KEY= 'a'\nKEY='b'\n", "", ""},
		{"blank before the quote of another key", "A=\t'x\nKEY='b'\n", "b", ""},
		{"large", "KEY='" + long + "\n" + long + "'\n", long + "\n" + long, ""},
		{"what follows is not read", "KEY='a'\n???\n", "a", ""},
		{"any name", "A.b-c d='1'\nKEY='a'\n", "a", ""},
		{"no assignment", "A='1'\n\nexport\nKEY='a'\n", "", "invalid environment variable format at line 3: missing '='"},
		{"no name", "='1'\n", "", "invalid environment variable format at line 1: empty variable name"},
		{"blank before =", "KEY ='a'\n", "", "invalid environment variable format at line 1: whitespace before '=' is not allowed"},
		{"no quotes", "KEY=a\n", "", "invalid environment variable format at line 1: value must be enclosed in single quotes"},
		{"double quotes", "KEY=\"a\"\n", "", "invalid environment variable format at line 1: value must be enclosed in single quotes"},
		{"nothing", "KEY=\n", "", "invalid environment variable format at line 1: value must be enclosed in single quotes"},
		{"after the quote", "A='\n'b\n", "", "invalid environment variable format at line 2: unexpected content after closing quote"},
		{"two strings", "KEY='a''b'\n", "", "invalid environment variable format at line 1: unexpected content after closing quote"},
		{"not closed", "\nKEY='a\nb\n", "", "invalid environment variable format starting at line 2: unclosed single quote"},
		{"line too long", "\nA='" + long + long + "'\nKEY='a'\n", "", "line 2: bufio.Scanner: token too long"},
		{"null character", "KEY='a\x00b'\n", "", "line 1: the value is not UTF-8 text without null characters"},
		{"not UTF-8", "A='\xff'\nKEY='a\xff'\n", "", "line 2: the value is not UTF-8 text without null characters"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := NewEnvFile([]byte(test.text), map[string]bool{"KEY": true})
			for range 2 {
				value, err := f.Value("KEY")
				if value != test.want || (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
					t.Errorf("%.100q, %v, want %.100q, %q", value, err, test.want, test.err)
				}
			}
		})
	}
}

// TestEnvFileValues checks that the values of several keys do not depend on the order in which they are taken.
func TestEnvFileValues(t *testing.T) {
	const invalid = "invalid environment variable format at line 5: missing '='"
	text := []byte("A='1'\nB='\xff'\nA='2'\nC='3'\nexport\nD='4'\n")
	type result struct{ value, err string }
	want := map[string]result{
		"A": {"1", ""}, "B": {"", "line 2: " + errNotText.Error()}, "C": {"3", ""}, "D": {"", invalid}, "E": {"", invalid},
	}
	for _, keys := range []string{"ABCDE", "EDCBA", "CACBDA"} {
		f := NewEnvFile(text, map[string]bool{"A": true, "B": true, "C": true, "D": true, "E": true})
		for key := range strings.SplitSeq(keys, "") {
			var got result
			value, err := f.Value(key)
			if got.value = value; err != nil {
				got.err = err.Error()
			}
			if got != want[key] {
				t.Errorf("%s of %s: %q, want %q", key, keys, got, want[key])
			}
		}
	}
}
