package spec

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podstead/podstead/internal/lazyregexp"
)

const generateNameKey = "generateName"

// edit replaces a value of a file, and the key of generateName.
type edit struct {
	node  *node
	value string
	// key is the new key; empty: it is not changed.
	key string

	replaced []replacement
}

// replacement replaces the bytes from begin to end.
type replacement struct {
	begin, end int
	text       string
}

func (e *edit) problem() Problems {
	hint := "write an absolute path, in quotes, without an anchor"
	if e.key != "" {
		hint = "set metadata.name"
	}
	return Problems{{
		Line: e.node.at.line, Column: e.node.at.column, Path: e.node.path(), Message: "cannot be replaced by " + quote(e.value), Hint: hint,
	}}
}

// inTOML finds the value in a TOML file.
func (e *edit) inTOML(data []byte) bool {
	begin := offsetOf(lineStarts(data), e.node.at)
	text, ok := quoteValue(e.value)
	e.replaced = []replacement{{begin, begin + e.node.size, text}}
	return ok && begin+e.node.size <= len(data)
}

// plainPath are paths that need no quotes in YAML.
var plainPath = lazyregexp.New(`^/[A-Za-z0-9._/-]*[A-Za-z0-9_/-]$`)

// inYAML finds the value, and the key if it changes, in a manifest in YAML or
// JSON.
func (e *edit) inYAML(data []byte) bool {
	begin, end, ok := yamlScalar(data, e.node.at, e.node.text)
	if !ok {
		return false
	}
	text, ok := quoteValue(e.value)
	if isPlain := data[begin] != '"' && data[begin] != '\''; isPlain && plainPath.MatchString(e.value) {
		text = e.value
	}
	e.replaced = []replacement{{begin, end, text}}
	if e.key == "" || !ok {
		return ok
	}
	begin, end, ok = yamlScalar(data, e.node.keyAt, generateNameKey)
	if ok {
		text = strings.ReplaceAll(string(data[begin:end]), generateNameKey, e.key)
		e.replaced = append(e.replaced, replacement{begin, end, text})
	}
	return ok
}

// yamlScalar returns the bytes of a scalar on one line, without its tag and its
// anchor. It does not find other scalars.
func yamlScalar(data []byte, at position, value string) (begin, end int, ok bool) {
	begin = yamlOffset(data, at)
	for begin < len(data) && (data[begin] == '&' || data[begin] == '!') {
		rest := bytes.TrimLeftFunc(bytes.TrimLeftFunc(data[begin:], func(r rune) bool { return !unicode.IsSpace(r) }), unicode.IsSpace)
		begin = len(data) - len(rest)
	}
	if begin >= len(data) {
		return 0, 0, false
	}
	switch data[begin] {
	case '"':
		for i := begin + 1; i < len(data); i++ {
			switch data[i] {
			case '\\':
				i++
			case '"':
				return begin, i + 1, true
			}
		}
	case '\'':
		for i := begin + 1; i < len(data); i++ {
			if data[i] != '\'' {
				continue
			}
			if i+1 == len(data) || data[i+1] != '\'' {
				return begin, i + 1, true
			}
			i++
		}
	default:
		return begin, begin + len(value), value != "" && bytes.HasPrefix(data[begin:], []byte(value))
	}
	return 0, 0, false
}

// yamlOffset returns the offset of a position whose column counts characters.
// YAML has more line breaks than TOML.
func yamlOffset(data []byte, at position) int {
	line, column := 1, 1
	for i := 0; i < len(data); {
		if line == at.line && column == at.column {
			return i
		}
		r, size := utf8.DecodeRune(data[i:])
		i += size
		switch {
		case r == '\r' && i < len(data) && data[i] == '\n':
		case strings.ContainsRune("\n\r\u0085\u2028\u2029", r):
			line, column = line+1, 1
		default:
			column++
		}
	}
	return len(data)
}

func offsetOf(lines []int, at position) int { return lines[at.line-1] + at.column - 1 }

// quoteValue returns a string in double quotes that TOML, YAML and JSON accept,
// and whether that is possible.
func quoteValue(s string) (string, bool) {
	if !utf8.ValidString(s) {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case !unicode.IsPrint(r) && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case !unicode.IsPrint(r): // JSON has no escape for it that TOML has too
			return "", false
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String(), true
}
