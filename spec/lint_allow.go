package spec

import (
	"bytes"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// allowComment is a comment that silences warnings, by their codes: "# podstead: allow low-port, millibytes # the reason".
var allowComment = lazyregexp.New(`^#[ \t]*podstead:[ \t]*allow[ \t]+([^#]*)`)

// allowed are the warnings that the comments of a file silence.
type allowed struct {
	file      map[string]bool         // codes for the whole file
	documents map[string]map[int]bool // codes for documents of a stream, by the line of their first value
	lines     map[string]map[int]bool // codes for the values that begin on a line
	first     []int                   // the lines of the first values of the documents
	problems  Problems                // of the comments
}

// allowedIn reads the comments of a file. A comment beside a value or above it applies to the value and what it contains; above the first
// value, it applies to the file; above the first value of a further document of a stream, it applies to the document.
func allowedIn(f format, data []byte) allowed {
	a := allowed{file: map[string]bool{}, documents: map[string]map[int]bool{}, lines: map[string]map[int]bool{}}
	if f == formatJSON || !bytes.Contains(data, []byte("podstead:")) {
		return a
	}
	data = withoutMarks(data)
	comments := commentsOf
	if f == formatYAML {
		comments = commentsOfYAML
		documents, _ := yamlDocuments(data) // a file with an error has no warnings
		for _, document := range documents {
			a.first = append(a.first, document.Line)
		}
	}
	lines := bytes.Split(data, []byte("\n"))
	marks := func(line int) bool { // a directive, or the begin or end of a document, without a value
		text := lines[line-1]
		return f == formatYAML && !slices.Contains(a.first, line) && (bytes.HasPrefix(text, []byte("%")) ||
			bytes.HasPrefix(text, []byte("---")) || bytes.HasPrefix(text, []byte("...")))
	}
	next := func(line int) int { // the first line from a line on that has a value
		for ; line <= len(lines); line++ {
			if text := bytes.TrimSpace(lines[line-1]); len(text) > 0 && text[0] != '#' && !marks(line) {
				return line
			}
		}
		return 0
	}
	if a.first == nil {
		a.first = []int{next(1)}
	}
	for _, c := range comments(data) {
		match := allowComment.FindStringSubmatch(c.text)
		if match == nil {
			continue
		}
		line, above := c.line, c.alone || marks(c.line)
		if above {
			line = next(line + 1)
		}
		to := a.lines
		if above && slices.Contains(a.first, line) {
			to = a.documents
		}
		for _, code := range strings.FieldsFunc(match[1], func(r rune) bool { return strings.ContainsRune(", \t\r", r) }) {
			switch {
			case !slices.Contains(Codes(), code):
				column := bytes.LastIndex(lines[c.line-1], []byte(c.text)) + 1
				a.problems = append(a.problems, Problem{
					Line: c.line, Column: column, Message: "there is no warning " + quote(code), Hint: didYouMean(code, Codes()),
					Warning: true, Code: CodeUnknownCode,
				})
			case above && line == a.first[0]:
				a.file[code] = true
			case to[code] == nil:
				to[code] = map[int]bool{line: true}
			default:
				to[code][line] = true
			}
		}
	}
	return a
}

// filter removes the warnings of a pod that are silenced.
func (a *allowed) filter(problems Problems, root *node) Problems {
	if len(a.file)+len(a.documents)+len(a.lines) == 0 {
		return problems
	}
	return slices.DeleteFunc(problems, func(p Problem) bool {
		return p.Code != "" && (a.file[p.Code] || a.documents[p.Code][a.document(p.Line)] ||
			a.lines[p.Code] != nil && isWithin(root, p, a.lines[p.Code]))
	})
}

// document returns the line of the first value of the document that has a line; 0: no document has it.
func (a *allowed) document(line int) int {
	i, found := slices.BinarySearch(a.first, line)
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return a.first[i]
}

// isWithin reports whether the value of a problem, or one that contains it, begins on one of the lines.
func isWithin(n *node, p Problem, lines map[int]bool) bool {
	if at := (position{p.Line, p.Column}); (n.at == at || n.keyAt == at) && n.path() == p.Path {
		if lines[p.Line] {
			return true
		}
		for ; n != nil; n = n.parent {
			if n.parent != nil && lines[n.begin()] {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(n.items, func(c *node) bool { return isWithin(c, p, lines) })
}

// begin returns the line on which a value begins, with its key; 0: what it contains begins there, such as the first table of an array or
// the first key of a table that only dotted keys create.
func (n *node) begin() int {
	if n.isImplicit() {
		return 0
	}
	line := n.keyAt.line
	if n.parent.kind == kindArray {
		line = n.at.line
	}
	if n.kind == kindArray && len(n.items) > 0 && n.items[0].at.line == line {
		return 0
	}
	return line
}

// isImplicit reports whether only the keys of its values create a table, as in resources.limits.memory = "64Mi".
func (n *node) isImplicit() bool {
	isElement := n.parent.kind == kindArray && strings.HasPrefix(n.segment, "[") // otherwise a table of the file, see toArray
	return n.kind == kindTable && n.at == n.keyAt && !n.header && !isElement
}
