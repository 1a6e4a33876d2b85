package spec

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// commentsOfYAML returns the comments of a valid YAML file in order. The library finds comments too, but moves those between values. A file
// with other line breaks than LF and CRLF, by which the library counts lines, has none.
func commentsOfYAML(data []byte) []comment {
	data = withoutMarks(data)
	documents, err := yamlDocuments(data)
	if err != nil || bytes.ContainsAny(data, "\u0085\u2028\u2029") || bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) {
		return nil
	}
	quoted, blocks := map[position]bool{}, map[int]bool{} // where strings in quotes begin, and the lines of | and >
	var walk func(y *yaml.Node)
	walk = func(y *yaml.Node) {
		switch {
		case y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
			quoted[position{y.Line, y.Column}] = true
		case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
			blocks[y.Line] = true
		}
		for _, c := range y.Content {
			walk(c)
		}
	}
	for _, document := range documents {
		walk(document)
	}
	var comments []comment
	at, start, end, indent := position{1, 1}, 0, 0, -1 // end is that of a string in quotes, indent that of the line of a block
	for i := 0; i < len(data); {
		rest := data[i:]
		if at.column == 1 && i >= end {
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			if text := bytes.TrimLeft(line, " "); indent >= 0 && (len(bytes.TrimSpace(text)) == 0 || len(line)-len(text) > indent) {
				i, at.line = i+len(line)+1, at.line+1
				continue
			}
			start, indent = i, -1
		}
		switch {
		case rest[0] == '\n':
			if blocks[at.line] {
				line := data[start:i]
				indent = len(line) - len(bytes.TrimLeft(line, " "))
			}
			i, at = i+1, position{at.line + 1, 1}
			continue
		case i >= end && quoted[at]:
			end = i + quotedEnd(rest)
		case i >= end && rest[0] == '#' && (i == start || strings.ContainsRune(" \t", rune(data[i-1]))):
			text, _, _ := bytes.Cut(rest, []byte("\n"))
			alone := len(bytes.TrimSpace(data[start:i])) == 0
			comments = append(comments, comment{at.line, strings.TrimRight(string(text), " \t\r"), alone})
			i += len(text)
			continue
		}
		_, size := utf8.DecodeRune(rest)
		i, at.column = i+size, at.column+1
	}
	return comments
}

// quotedEnd returns the offset behind a string in quotes, which may follow a tag and an anchor.
func quotedEnd(data []byte) int {
	begin := bytes.IndexAny(data, `"'`)
	if begin < 0 {
		return len(data)
	}
	quote := data[begin]
	for i := begin + 1; i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote == '"':
			i++
		case data[i] == quote && quote == '\'' && i+1 < len(data) && data[i+1] == quote:
			i++
		case data[i] == quote:
			return i + 1
		}
	}
	return len(data)
}
