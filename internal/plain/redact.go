package plain

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/order"
)

const (
	// Redacted stands for the value of a secret.
	Redacted = "[redacted]"
	// shortestSecret is the length of the shortest value that is replaced, in bytes. A shorter one, such as a digit, would be found in
	// texts that have nothing to do with it.
	shortestSecret = 4
	// shortestEncoded is the same for the encoded forms of a value.
	shortestEncoded = 5
)

// Redactor replaces values of secrets. It is immutable and safe for concurrent use.
type Redactor struct {
	parts  []string // what is replaced, the longest first
	values []string // those whose beginnings are replaced at the end of a text, the longest first
}

// NewRedactor returns a redactor for values of secrets. Of a value of several lines each line is replaced, since a log has lines. The forms
// of a value in quotes, in JSON, in URLs and in base64 are replaced too, the last one also if the value was encoded together with other
// text.
func NewRedactor(values []string) *Redactor {
	r := &Redactor{}
	for _, value := range values {
		quoted := strconv.Quote(value)
		lines := append(strings.Split(value, "\n"), value, quoted[1:len(quoted)-1])
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) < shortestSecret {
				continue
			}
			r.values = append(r.values, line)
			for _, form := range encodings(line) {
				if len(form) >= shortestEncoded {
					r.parts = append(r.parts, form)
				}
			}
		}
	}
	r.values = longestFirst(r.values)
	r.parts = longestFirst(append(r.parts, r.values...))
	return r
}

func longestFirst(list []string) []string {
	order.Sort(list, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(list)
}

// encodings returns other forms of a value.
func encodings(value string) []string {
	var forms []string
	if text, err := json.Marshal(value); err == nil {
		forms = append(forms, string(text[1:len(text)-1]))
	}
	forms = append(forms, url.QueryEscape(value), url.PathEscape(value))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(value)))
		// Base64 encodes three bytes together. What comes before the value determines with which byte it starts, and with what comes
		// before and after it the first and the last character.
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), value...))
			forms = append(forms, text[(before*8+5)/6:(before+len(value))*8/6])
		}
	}
	return forms
}

// Empty reports whether there is nothing to replace.
func (r *Redactor) Empty() bool { return len(r.parts) == 0 }

// Text replaces values in a text. The beginning of a value at the end of the text, which may have been cut off, is replaced too.
func (r *Redactor) Text(s string) string {
	for _, part := range r.parts {
		s = strings.ReplaceAll(s, part, Redacted)
	}
	body := strings.TrimRight(strings.TrimSuffix(s, "…"), "\uFFFD") // the marks of a text that was cut off, possibly inside a rune
	for _, value := range r.values {
		for n := min(len(value)-1, len(body)); n >= shortestSecret; n-- {
			if strings.HasSuffix(body, value[:n]) {
				return body[:len(body)-n] + Redacted
			}
		}
	}
	return s
}
