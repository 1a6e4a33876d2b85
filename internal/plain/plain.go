// Package plain makes text harmless before somebody reads it. Text of containers, images and registries must not control a terminal,
// reorder or hide what is printed around it, or make a document invalid: this is the one place that decides which characters are escaped.
// And no text may contain the value of a secret: a [Redactor] replaces the values that it was given. The package does not read secrets.
package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// Hidden reports whether a character is not visible as itself: control characters of C0 (also line breaks and tabs) and C1, DEL, line and
// paragraph separators, and format characters such as bidirectional marks and zero-width spaces. The joiners U+200C and U+200D, and the
// visible signs among the format characters, which texts in several scripts need, are not hidden. Noncharacters are: YAML forbids them.
func Hidden(r rune) bool {
	switch {
	case r == '\u200c', r == '\u200d', r >= 0x600 && r <= 0x605, r == 0x6dd, r == 0x70f, r == 0x8e2, r == 0x110bd:
		return false
	}
	return unicode.IsControl(r) || r&0xfffe == 0xfffe || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Text escapes hidden characters as Go does, such as \x1b and \u202e, and bytes that are not UTF-8. Tabs are kept.
func Text(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || r != '\t' && Hidden(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\t' || !Hidden(r):
			b.WriteString(s[:size])
		case r == '\x1b' || r == '\x00':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// JSON escapes hidden characters in the strings of a JSON text. The values stay the same. The text must be valid.
func JSON(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && Hidden(r) } // JSON has none of the others in strings
	if bytes.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if hidden(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.Write(text[:size])
		}
		text = text[size:]
	}
	return b.Bytes()
}

// YAML converts a JSON text to YAML, with hidden characters escaped. The values stay the same. A key longer than
// maxKey is an error if all of its characters are hidden.
func YAML(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	text, err := json.Marshal(marked(v))
	if err != nil {
		return nil, err
	}
	out, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, err
	}
	return mark.ReplaceAllFunc(out, func(m []byte) []byte {
		code := string(m[2 : len(m)-2])
		if strings.HasPrefix(code, "0000") {
			return []byte(`\u` + code[4:])
		}
		return []byte(`\U` + code)
	}), nil
}

// maxKey is the length in characters that YAML accepts for any key. The YAML library refuses keys of more than 1,024 bytes in JSON, and a
// hidden character takes 20 of them while it is marked.
const maxKey = 1024/20 - 1

// mark is a hidden character in a YAML document: its code in eight digits between two bells. The bells make the YAML library quote the
// string with escapes.
var mark = lazyregexp.New(`\\a([0-9A-F]{8})\\a`)

// marked replaces hidden characters in strings by marks, except line breaks. It replaces backslashes too where the text could be taken for
// a mark.
func marked(v any) any {
	switch v := v.(type) {
	case string:
		return markedText(v)
	case []any:
		for i := range v {
			v[i] = marked(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[markedText(key)] = marked(value)
		}
		return out
	}
	return v
}

func markedText(s string) string {
	hidden := func(r rune) bool { return r != '\n' && Hidden(r) }
	if !strings.ContainsFunc(s, hidden) && !mark.MatchString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) || r == '\\' {
			fmt.Fprintf(&b, "\a%08X\a", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// WithoutPath returns the cause of an error of a file, which the caller names.
func WithoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
