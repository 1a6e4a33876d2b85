package spec

import (
	"bytes"
	"slices"
	"strings"
)

// comment is a comment of a TOML or YAML file, from its "#" to the end of the line.
type comment struct {
	line  int
	text  string
	alone bool // on a line of its own
}

// commentsOf returns the comments of a valid TOML file in order.
func commentsOf(data []byte) []comment {
	var comments []comment
	line, start := 1, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '\n':
			line, start = line+1, i+1
		case '#':
			end := len(data)
			if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
				end = i + n
			}
			text := strings.TrimRight(string(data[i:end]), " \t\r")
			alone := len(bytes.TrimSpace(data[start:i])) == 0
			comments = append(comments, comment{line, text, alone})
			i = end - 1
		case '"', '\'':
			end := stringEnd(data, i)
			for ; i < end-1; i++ {
				if data[i] == '\n' {
					line, start = line+1, i+1
				}
			}
		}
	}
	return comments
}

// stringEnd returns the offset behind a string of a valid TOML file.
func stringEnd(data []byte, begin int) int {
	quote := data[begin : begin+1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(data[begin:], triple) {
		for i := begin + 3; i < len(data); i++ {
			switch {
			case data[i] == '\\' && quote[0] == '"':
				i++
			case bytes.HasPrefix(data[i:], triple):
				i += 3
				for i < len(data) && data[i] == quote[0] { // up to two quotes are part of the string
					i++
				}
				return i
			}
		}
		return len(data)
	}
	for i := begin + 1; i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote[0] == '"':
			i++
		case data[i] == quote[0]:
			return i + 1
		}
	}
	return len(data)
}

// attach gives the comments of a file to the values that they belong to: those on lines of their own to the next value, the others to
// the value of their line. The tree may have been changed: what counts is where its values were written.
func attach(root *node, data []byte, comments []comment) {
	first := map[int]*node{} // by line
	var lines []int
	var walk func(n *node)
	walk = func(n *node) {
		for _, c := range n.items {
			at := c.keyAt.line
			if n.kind == kindArray {
				at = c.at.line
			}
			if first[at] == nil && !c.ignored {
				first[at] = c
				lines = append(lines, at)
			}
			walk(c)
		}
	}
	walk(root)
	slices.Sort(lines)
	text := bytes.Split(data, []byte("\n"))
	isEmpty := func(line int) bool { return line > 0 && line <= len(text) && len(bytes.TrimSpace(text[line-1])) == 0 }
	for _, c := range comments {
		i, found := slices.BinarySearch(lines, c.line)
		switch {
		case !c.alone && found:
			n := innermost(first[c.line])
			n.beside = strings.TrimSpace(n.beside + " " + c.text)
		case i < len(lines):
			n := first[lines[i]]
			if len(n.above) == 0 && isEmpty(c.line-1) {
				n.above = append(n.above, "")
			}
			n.above = append(n.above, c.text)
			if isEmpty(c.line + 1) {
				n.above = append(n.above, "")
			}
		default:
			root.after = append(root.after, c.text)
		}
	}
}

// innermost returns the value that a dotted key, which begins with that of n, sets, or the first table of a header.
func innermost(n *node) *node {
	for len(n.items) > 0 && n.items[0].keyAt.line == n.keyAt.line && (n.kind == kindTable && n.at == n.keyAt || n.items[0].header) {
		n = n.items[0]
	}
	return n
}
