package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/lazyregexp"
)

var yamlLine = lazyregexp.New(`line (\d+): `)

// yamlDocuments returns the documents of a file, without empty ones.
func yamlDocuments(data []byte) (documents []*yaml.Node, _ *syntaxError) {
	decoder := yaml.NewDecoder(bytes.NewReader(withoutMarks(data)))
	for n := 0; ; n++ {
		var next yaml.Node
		err := decoder.Decode(&next)
		switch {
		case errors.Is(err, io.EOF) && documents == nil:
			return nil, &syntaxError{at: position{1, 1}, message: "file is empty"}
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, yamlError(err)
		case n >= maxDocuments:
			at := position{max(next.Line, 1), 1}
			return nil, &syntaxError{at: at, message: fmt.Sprintf("file has more than %d documents", maxDocuments)}
		case len(next.Content) == 0 || next.Content[0].ShortTag() == "!!null":
		default:
			documents = append(documents, next.Content[0])
		}
	}
}

// maxDocuments is the maximum number of documents of a file, empty ones included.
const maxDocuments = 1000

var byteOrderMark = []byte("\xef\xbb\xbf")

// withoutMarks returns a text without the byte order marks at the begin of its documents. A mark has no column.
func withoutMarks(data []byte) []byte {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if !bytes.Contains(data, byteOrderMark) {
		return data
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := range lines {
		begins := bytes.HasPrefix(bytes.TrimPrefix(lines[i], byteOrderMark), []byte("---"))
		if begins || i > 0 && bytes.HasPrefix(lines[i-1], []byte("---")) {
			lines[i] = bytes.TrimPrefix(lines[i], byteOrderMark)
		}
	}
	return bytes.Join(lines, nil)
}

// yamlError returns an error of the library with its position.
func yamlError(err error) *syntaxError {
	at, message := position{1, 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits by the pattern
		at.line = max(line, 1)
		message = strings.Replace(message, m[0], "", 1)
	}
	return &syntaxError{at: at, message: "invalid YAML: " + printable(message)}
}

// blockErrors are the errors for which the library gives the begin of the mapping or list, not the line that does not belong to it.
var blockErrors = []string{"did not find expected key", "did not find expected '-' indicator"}

// maxSearched is the size of a text in which the line of an error is searched: each step reads a part of the text again.
const maxSearched = 64 << 10

// blockErrorAt returns the position of an error of the library in a text: for one of [blockErrors] that of the first line with which the
// text has the error, since the library reads no further.
func blockErrorAt(data []byte, failed *syntaxError) position {
	ofBlock := func(text string) bool { return strings.HasSuffix(failed.message, text) }
	if len(data) > maxSearched || !slices.ContainsFunc(blockErrors, ofBlock) {
		return failed.at
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	line := 1 + sort.Search(len(lines)-1, func(i int) bool {
		decoder := yaml.NewDecoder(bytes.NewReader(withoutMarks(bytes.Join(lines[:i+1], nil))))
		for {
			if err := decoder.Decode(new(yaml.Node)); err != nil {
				return !errors.Is(err, io.EOF) && yamlError(err).message == failed.message
			}
		}
	})
	text := lines[line-1]
	return position{line, 1 + len(text) - len(bytes.TrimLeft(text, " "))}
}

type yamlReader struct{ nodes int }

func (r *yamlReader) read(n *node, y *yaml.Node) *syntaxError {
	// An alias counts at every use, at the depth of the use, so that the limits
	// hold for the expanded document.
	y = target(y)
	n.at = position{max(y.Line, 1), max(y.Column, 1)}
	if n.keyAt.line == 0 {
		n.keyAt = n.at
	}
	if r.nodes++; r.nodes > maxNodes {
		return tooManyNodes(n)
	}
	if n.depth > maxDepth {
		return tooDeep(n)
	}
	switch y.Kind {
	case yaml.MappingNode:
		return r.readMapping(n, y)
	case yaml.SequenceNode:
		n.kind = kindArray
		for _, item := range y.Content {
			c := &node{}
			n.appendItem(c)
			if err := r.read(c, item); err != nil {
				return err
			}
		}
		return nil
	default:
		return readScalar(n, y)
	}
}

func (r *yamlReader) readMapping(n *node, y *yaml.Node) *syntaxError {
	n.kind, n.index = kindTable, map[string]*node{}
	return r.addKeys(n, y, map[string]bool{}, n.depth)
}

// addKeys adds the keys of a mapping that are not taken, and then those of the
// mappings that it merges (https://yaml.org/type/merge.html). Every key counts,
// so that the limits hold for the expanded document.
func (r *yamlReader) addKeys(n *node, y *yaml.Node, taken map[string]bool, depth int) *syntaxError {
	if depth > maxDepth {
		return tooDeep(n)
	}
	own := map[string]bool{}
	var merged *yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := position{max(key.Line, 1), max(key.Column, 1)}
		isMerge := key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge"
		switch {
		case key.Kind != yaml.ScalarNode:
			return &syntaxError{at: at, message: "key must be a plain string"}
		case own[key.Value], isMerge && merged != nil:
			return &syntaxError{at: at, message: "duplicate key " + quote(key.Value)}
		case isMerge:
			merged = value
			continue
		}
		own[key.Value] = true
		if taken[key.Value] || value.ShortTag() == "!!null" { // null is the same as unset, as in Kubernetes
			if r.nodes++; r.nodes > maxNodes {
				return tooManyNodes(n)
			}
			continue
		}
		c := &node{keyAt: at}
		n.add(key.Value, c)
		if err := r.read(c, value); err != nil {
			return err
		}
	}
	maps.Copy(taken, own)
	return r.merge(n, merged, taken, depth)
}

// merge adds the keys of the value of a merge key: a mapping or an array of
// mappings. The first one takes precedence.
func (r *yamlReader) merge(n *node, y *yaml.Node, taken map[string]bool, depth int) *syntaxError {
	if y == nil {
		return nil
	}
	sources := []*yaml.Node{y}
	if y = target(y); y.Kind == yaml.SequenceNode {
		sources = y.Content
	}
	for _, source := range sources {
		source = target(source)
		if source.Kind != yaml.MappingNode {
			at := position{max(source.Line, 1), max(source.Column, 1)}
			return &syntaxError{at: at, message: "value of << must be a mapping or an array of mappings"}
		}
		if r.nodes++; r.nodes > maxNodes {
			return tooManyNodes(n)
		}
		if err := r.addKeys(n, source, taken, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// target returns the node that an alias refers to.
func target(y *yaml.Node) *yaml.Node {
	for y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	return y
}

func readScalar(n *node, y *yaml.Node) *syntaxError {
	n.text = y.Value
	var err error
	switch y.ShortTag() {
	case "!!int":
		var v int64
		n.kind, err = kindInteger, y.Decode(&v)
		n.value = v
	case "!!float":
		var v float64
		n.kind, err = kindFloat, y.Decode(&v)
		n.value = v
	case "!!bool":
		var v bool
		n.kind, err = kindBool, y.Decode(&v)
		n.value = v
	case "!!null":
		n.kind = kindNull
	default: // in a manifest a date is a string
		n.kind, n.value = kindString, y.Value
		n.plain = y.Style == 0
	}
	if err != nil {
		return &syntaxError{at: n.at, message: "invalid YAML: cannot read the value"} // it may be confidential
	}
	return nil
}
