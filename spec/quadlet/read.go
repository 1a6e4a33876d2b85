package quadlet

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/podstead/podstead/spec"
)

// maxBytes is the maximum size of the Kubernetes files of a unit, maxKubeBytes that of those of all units.
const (
	maxBytes     = 1 << 20
	maxKubeBytes = 4 << 20
)

// place is where an assignment begins. Lines and columns count from 1.
type place struct {
	file         string
	line, column int
}

// entry is an assignment of a unit file.
type entry struct {
	section, key string
	value        string   // without the spaces around it, continuation lines joined by spaces
	argument     []string // of an option in PodmanArgs=, which has no quotes left; then value is for people
	at           place
}

// parse reads a unit file as systemd.syntax(7) describes it. It keeps empty assignments, see unit.all. All lines that are no assignments
// are problems.
func parse(file string, data []byte) (entries []entry, problems spec.Problems) {
	bad := func(line int, message string) {
		problems = append(problems, spec.Problem{File: file, Line: line, Column: 1, Message: message})
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	section := ""
	var joined strings.Builder
	start := 0 // line of the assignment that is continued
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		if bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw) {
			bad(number, "must be UTF-8 text")
			return nil, problems
		}
		line := strings.TrimRight(string(raw), "\r\n")
		if first := strings.TrimLeftFunc(line, unicode.IsSpace); first != "" && (first[0] == '#' || first[0] == ';') {
			continue // also between continuation lines
		}
		if start == 0 {
			start = number
		}
		if continues(line) {
			joined.WriteString(line[:len(line)-1] + " ")
			continue
		}
		joined.WriteString(line)
		text := strings.TrimSpace(joined.String())
		at := place{file, start, 1 + indentation(joined.String())}
		joined.Reset()
		start = 0
		if text == "" {
			continue
		}
		if text[0] == '[' {
			name, rest, closed := strings.Cut(text[1:], "]")
			if !closed || rest != "" || name == "" {
				bad(at.line, "invalid section header: must be [NAME]")
				continue
			}
			section = name
			continue
		}
		key, value, found := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		switch {
		case !found || key == "":
			bad(at.line, "must be KEY=VALUE, a section header or a comment")
		case section == "":
			bad(at.line, "the assignment is before the first section header")
		default:
			entries = append(entries, entry{section: section, key: key, value: strings.TrimSpace(value), at: at})
		}
	}
	if start > 0 {
		bad(start, "the last line ends with a backslash")
	}
	return entries, problems
}

// indentation returns the number of spaces before a text.
func indentation(line string) int {
	return len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
}

// continues reports whether a line is continued by the next one: a backslash at its end is not escaped.
func continues(line string) bool { return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1 }
