package plain

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestRedactor(t *testing.T) {
	std, raw := base64.StdEncoding.EncodeToString, base64.RawURLEncoding.EncodeToString
	for _, test := range []struct{ name, value, text, want string }{
		{"value", "hunter22", "user=me password=hunter22.", "user=me password=[redacted]."},
		{"one line of several", "first-line\nsecond-line\n", "got second-line", "got [redacted]"},
		{"quoted value", "tab\tand \"quotes\"", `error "tab\tand \"quotes\""`, `error "[redacted]"`},
		{"value in JSON", "a<b>&c", `{"v":"a\u003cb\u003e\u0026c"}`, `{"v":"[redacted]"}`},
		{"value in a URL", "p@ss/word", "postgres://me:p%40ss%2Fword@db", "postgres://me:[redacted]@db"},
		{"value that was cut off", "a-very-long-password", "it is a-very-long-pass…", "it is [redacted]"},
		{"longer value that contains a shorter one", "pass\npassword", "password pass", "[redacted] [redacted]"},
		{"base64", "hunter22", "data: " + std([]byte("hunter22")), "data: [redacted]="},
		{"base64 with a newline", "hunter22", std([]byte("hunter22\n")), "[redacted]K"},
		{"short value", "no!", "no!", "no!"},
		{"other text", "hunter22", "hunt for 22", "hunt for 22"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := NewRedactor([]string{test.value}).Text(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	// Encoded together with other text, at each position of a group of three bytes.
	for _, value := range []string{"secret-of-16-by!", "secret-of-17-byt?", "secret-of-18-byte>"} {
		r := NewRedactor([]string{value})
		for _, before := range []string{"", "u", "me", "me:", "user:"} {
			for _, after := range []string{"", "\n", "@h", "@db/x"} {
				for _, encoded := range []string{std([]byte(before + value + after)), raw([]byte(before + value + after))} {
					got := r.Text(encoded)
					if left := strings.Replace(got, Redacted, "", 1); left == got ||
						len(left) > len(std([]byte(before)))+len(std([]byte(after)))+3 {
						t.Errorf("%q before %q after %q: %q becomes %q", value, before, after, encoded, got)
					}
				}
			}
		}
	}
	if !NewRedactor([]string{"", "a", "\n"}).Empty() || NewRedactor([]string{"abcd"}).Empty() {
		t.Error("only values that are too short are nothing to replace")
	}
}
