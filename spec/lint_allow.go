package spec

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// allowComment is a comment that silences warnings, by their codes: "# podstead: allow low-port, millibytes # the reason".
var allowComment = regexp.MustCompile(`^#[ \t]*podstead:[ \t]*allow[ \t]+([^#]*)`)

// allowed are the warnings that the comments of a file silence.
type allowed struct {
	file     map[string]bool         // codes for the whole file
	lines    map[string]map[int]bool // codes for the values that begin on a line
	problems Problems                // of the comments
}

// allowedIn reads the comments of a file. A comment beside a value or above it applies to the value and what it contains; above the first
// value, it applies to the file.
func allowedIn(f format, data []byte) allowed {
	a := allowed{file: map[string]bool{}, lines: map[string]map[int]bool{}}
	if f == formatJSON || !bytes.Contains(data, []byte("podstead:")) {
		return a
	}
	data = withoutMarks(data)
	comments := commentsOf
	if f == formatYAML {
		comments = commentsOfYAML
	}
	lines := bytes.Split(data, []byte("\n"))
	next := func(line int) int { // the first line from a line on that has a value
		for ; line <= len(lines); line++ {
			text := bytes.TrimSpace(lines[line-1])
			if len(text) > 0 && text[0] != '#' && string(text) != "---" {
				return line
			}
		}
		return 0
	}
	first := next(1)
	for _, c := range comments(data) {
		match := allowComment.FindStringSubmatch(c.text)
		if match == nil {
			continue
		}
		line := c.line
		if c.alone {
			line = next(line + 1)
		}
		for _, code := range strings.FieldsFunc(match[1], func(r rune) bool { return strings.ContainsRune(", \t\r", r) }) {
			switch {
			case !slices.Contains(Codes(), code):
				column := bytes.LastIndex(lines[c.line-1], []byte(c.text)) + 1
				a.problems = append(a.problems, Problem{
					Line: c.line, Column: column, Message: "there is no warning " + quote(code), Hint: didYouMean(code, Codes()),
					Warning: true, Code: CodeUnknownCode,
				})
			case c.alone && line == first:
				a.file[code] = true
			case a.lines[code] == nil:
				a.lines[code] = map[int]bool{line: true}
			default:
				a.lines[code][line] = true
			}
		}
	}
	return a
}

// filter removes the warnings of a pod that are silenced.
func (a *allowed) filter(problems Problems, root *node) Problems {
	if len(a.file)+len(a.lines) == 0 {
		return problems
	}
	return slices.DeleteFunc(problems, func(p Problem) bool {
		return p.Code != "" && (a.file[p.Code] || a.lines[p.Code] != nil && isWithin(root, p, a.lines[p.Code]))
	})
}

// isWithin reports whether the value of a problem, or one that contains it, begins on one of the lines.
func isWithin(n *node, p Problem, lines map[int]bool) bool {
	if at := (position{p.Line, p.Column}); (n.at == at || n.keyAt == at) && n.path() == p.Path {
		for ; n != nil; n = n.parent {
			if n.parent != nil && lines[n.begin()] {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(n.items, func(c *node) bool { return isWithin(c, p, lines) })
}

// begin returns the line on which a value begins, with its key; 0: what it contains begins there, such as the first table of an array.
func (n *node) begin() int {
	line := n.keyAt.line
	if n.parent.kind == kindArray {
		line = n.at.line
	}
	if n.kind == kindArray && len(n.items) > 0 && n.items[0].at.line == line {
		return 0
	}
	return line
}
