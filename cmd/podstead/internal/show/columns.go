package show

import (
	"errors"
	"fmt"
	"strings"
)

// Columns are the columns of a table, each with the values of an expression.
type Columns struct {
	Header []string
	paths  []Path
}

// ParseColumns parses columns in the form NAME:PATH,NAME:PATH.
func ParseColumns(text string) (*Columns, error) {
	if text == "" {
		return nil, errors.New("no columns are given")
	}
	var c Columns
	for column := range strings.SplitSeq(text, ",") {
		name, expression, ok := strings.Cut(column, ":")
		if !ok {
			return nil, fmt.Errorf("column %q: must have the form NAME:PATH, such as NAME:.metadata.name", column)
		}
		path, err := ParsePath(expression)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", name, err)
		}
		c.Header, c.paths = append(c.Header, name), append(c.paths, path)
	}
	return &c, nil
}

// ParseColumnsFile parses the text of a file with two lines, as in kubectl: the names of the columns, and below each its path.
func ParseColumnsFile(text string) (*Columns, error) {
	var lines [][]string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, words)
		}
	}
	if len(lines) != 2 || len(lines[0]) != len(lines[1]) {
		return nil, errors.New("the file must have two lines: names of columns, and as many paths, such as NAME and .metadata.name")
	}
	columns := make([]string, len(lines[0]))
	for i, name := range lines[0] {
		columns[i] = name + ":" + lines[1][i]
	}
	return ParseColumns(strings.Join(columns, ","))
}

// Row returns the cells for an object. The object is an [Object].
func (c *Columns) Row(object any) ([]string, error) {
	row := make([]string, len(c.paths))
	for i, path := range c.paths {
		values, err := path.Values(object)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Header[i], err)
		}
		texts := make([]string, len(values))
		for j, v := range values {
			texts[j] = fmt.Sprint(v)
		}
		if row[i] = strings.Join(texts, ","); len(values) == 0 {
			row[i] = "<none>"
		}
	}
	return row, nil
}
