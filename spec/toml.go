package spec

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	pelletier "github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// syntaxError is a problem after which nothing of a file can be read.
type syntaxError struct {
	at            position
	message, hint string
}

func (e *syntaxError) Error() string { return e.message }

func (e *syntaxError) problems() Problems {
	return Problems{{Line: e.at.line, Column: e.at.column, Message: e.message, Hint: e.hint}}
}

var tooLarge = &syntaxError{at: position{1, 1}, message: fmt.Sprintf("file is larger than %d bytes", maxFileBytes)}

// errShape means that a definition contradicts an earlier one. BurntSushi/toml
// has better messages for most of these cases, but accepts some of them.
var errShape = errors.New("invalid TOML: the key conflicts with an earlier definition")

// readTOML returns the values that BurntSushi/toml decodes at the positions that
// the syntax tree of go-toml has. It parses the file twice, for two reasons:
//
//   - BurntSushi/toml has no public position of a value: MetaData has keys and
//     types only, and ParseError the position of syntax errors only.
//   - BurntSushi/toml has no limits. The tree is read first and has limits for
//     depth, key length and number of values, so that a hostile file does not
//     reach the decoder (TestHostileFiles).
func readTOML(data []byte) (*node, *syntaxError) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, &syntaxError{at: positionAt(lineStarts(data), at), message: "file must be valid UTF-8"}
	}
	r := &tomlReader{data: data, lines: lineStarts(data), root: newTable(nil)}
	r.root.at = position{1, 1}
	r.root.keyAt = r.root.at
	if err := r.read(); err != nil {
		return nil, err
	}
	var values map[string]any
	if _, err := toml.Decode(string(data), &values); err != nil {
		return nil, r.valueError(err)
	}
	if r.shape != nil {
		return nil, r.shape
	}
	mismatch := fill(r.root, values)
	if mismatch != nil {
		mismatch = r.refill()
	}
	if mismatch != nil {
		return nil, &syntaxError{at: mismatch.at, message: "invalid TOML: the value does not match the syntax tree"}
	}
	return r.root, nil
}

// refill fills the tree with the values that go-toml decodes, where those of BurntSushi/toml do not match the tree.
// BurntSushi/toml 1.6.0 loses keys of a table with dotted keys if an earlier element of the same array of tables has an array
// under the name of the table, for example env of two containers (TestArrayAndTableFormInOneFile). This third pass is for such
// files only.
func (r *tomlReader) refill() *node {
	var values map[string]any
	if err := pelletier.Unmarshal(r.data, &values); err != nil {
		return r.root
	}
	return fill(r.root, values)
}

type tomlReader struct {
	data  []byte
	lines []int // offset of each line's first byte
	parse unstable.Parser
	root  *node
	nodes int
	shape *syntaxError
}

func (r *tomlReader) read() *syntaxError {
	r.parse.Reset(r.data)
	current := r.root
	for r.parse.NextExpression() {
		e := r.parse.Expression()
		var err error
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var t *node
			if t, err = r.header(e); err == nil {
				current = t
			}
		case unstable.KeyValue:
			err = r.keyValue(current, e)
		default:
		}
		if err == nil {
			continue
		}
		if limit, ok := errors.AsType[*syntaxError](err); ok {
			return limit
		}
		// Continue: the limits must be checked for the whole file.
		if r.shape == nil {
			key := e.Key()
			key.Next()
			r.shape = &syntaxError{at: r.position(key.Node()), message: err.Error()}
		}
	}
	var syntax *unstable.ParserError
	if err := r.parse.Error(); errors.As(err, &syntax) {
		offset := min(max(cap(r.data)-cap(syntax.Highlight), 0), len(r.data))
		return r.syntaxError(offset, syntax.Message)
	} else if err != nil {
		return &syntaxError{at: position{1, 1}, message: err.Error()}
	}
	return nil
}

var bareString = lazyregexp.New(`^\s*([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z/.][^"'\[\]{}#]*?)\s*(#.*)?$`)

func (r *tomlReader) syntaxError(offset int, message string) *syntaxError {
	e := &syntaxError{at: r.positionAt(offset), message: "invalid TOML: " + message}
	start := r.lines[e.at.line-1]
	line, _, _ := bytes.Cut(r.data[start:], []byte("\n"))
	if m := bareString.FindSubmatch(line); m != nil && len(line) < 200 {
		e.hint = fmt.Sprintf("put strings in quotes: %s = %q", m[1], m[2])
	}
	return e
}

func (r *tomlReader) valueError(err error) *syntaxError {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return &syntaxError{at: position{1, 1}, message: "invalid TOML: " + printable(err.Error())}
	}
	offset := min(max(parse.Position.Start, 0), len(r.data))
	message := strings.TrimSuffix(printable(withoutNumber(parse.Message)), ".")
	return &syntaxError{at: r.positionAt(offset), message: "invalid TOML: " + message}
}

// header returns the table that a [header] or [[header]] opens, and creates it
// if necessary.
func (r *tomlReader) header(e *unstable.Node) (*node, error) {
	t := r.root
	bytes := 0
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		bytes += len(key.Data) + 1
		c, err := r.step(t, key, bytes)
		if err != nil {
			return nil, err
		}
		if !keys.IsLast() {
			t = c
			continue
		}
		return r.open(t, c, key, e.Kind == unstable.ArrayTable)
	}
	return nil, errShape
}

// open handles the last key of a header below t: it returns c for a [header] and
// a new element for a [[header]].
func (r *tomlReader) open(t, c *node, key *unstable.Node, array bool) (*node, error) {
	at := r.position(key)
	if !array {
		if t.child(string(key.Data)) != c { // the last element of an array
			return nil, errShape
		}
		c.header, c.at, c.keyAt = true, at, at
		return c, nil
	}
	list := t.child(string(key.Data))
	if list.kind == kindTable { // created by step for this header
		if len(list.items) > 0 {
			return nil, errShape
		}
		list.kind, list.index = kindArray, nil
		list.at, list.keyAt = at, at
	}
	item := newTable(list)
	item.header, item.at, item.keyAt = true, at, at
	list.appendItem(item)
	return item, r.count(item)
}

// step returns the table under a key of t: a new one if the key does not exist,
// the last element if it is an array.
func (r *tomlReader) step(t *node, key *unstable.Node, pathBytes int) (*node, error) {
	at := r.position(key)
	if pathBytes > maxPathBytes {
		return nil, &syntaxError{at: at, message: fmt.Sprintf("key must not be longer than %d bytes", maxPathBytes)}
	}
	c := t.child(string(key.Data))
	if c == nil {
		c = newTable(t)
		c.at, c.keyAt = at, at
		t.add(string(key.Data), c)
		return c, r.count(c)
	}
	if c.kind == kindArray && len(c.items) > 0 {
		c = c.items[len(c.items)-1]
	}
	if c.kind != kindTable {
		return nil, errShape
	}
	return c, nil
}

func (r *tomlReader) keyValue(t *node, e *unstable.Node) error {
	bytes := len(t.path())
	for keys := e.Key(); keys.Next(); {
		key := keys.Node()
		bytes += len(key.Data) + 1
		if !keys.IsLast() {
			c, err := r.step(t, key, bytes)
			if err != nil {
				return err
			}
			t = c
			continue
		}
		at := r.position(key)
		if bytes > maxPathBytes {
			return &syntaxError{at: at, message: fmt.Sprintf("key must not be longer than %d bytes", maxPathBytes)}
		}
		v := &node{at: at, keyAt: at, depth: t.depth + 1}
		if t.child(string(key.Data)) != nil {
			return errShape
		}
		t.add(string(key.Data), v)
		return r.setValue(v, e.Value())
	}
	return errShape
}

// setValue sets the kind and the items of a node. fill sets the scalars later.
func (r *tomlReader) setValue(v *node, n *unstable.Node) error {
	if err := r.count(v); err != nil {
		return err
	}
	switch n.Kind {
	case unstable.Array:
		v.kind = kindArray
		for items := n.Children(); items.Next(); {
			item := &node{at: v.at, keyAt: v.at}
			v.appendItem(item)
			if err := r.setValue(item, items.Node()); err != nil {
				return err
			}
		}
		return nil
	case unstable.InlineTable:
		v.kind, v.index = kindTable, map[string]*node{}
		v.at = r.position(n)
		for items := n.Children(); items.Next(); {
			if err := r.keyValue(v, items.Node()); err != nil {
				return err
			}
		}
		return nil
	case unstable.String:
		v.kind = kindString
		v.size = int(n.Raw.Length)
	default:
		v.kind = kindInteger
		v.text = string(r.parse.Raw(n.Raw))
	}
	v.at = r.position(n)
	return nil
}

func (r *tomlReader) count(n *node) error {
	if r.nodes++; r.nodes > maxNodes {
		return tooManyNodes(n)
	}
	if n.depth > maxDepth {
		return tooDeep(n)
	}
	return nil
}

func tooManyNodes(n *node) *syntaxError {
	return &syntaxError{at: n.at, message: fmt.Sprintf("file must not have more than %d keys and values", maxNodes)}
}

func tooDeep(n *node) *syntaxError {
	return &syntaxError{at: n.at, message: fmt.Sprintf("must not be nested more than %d levels deep", maxDepth)}
}

// fill sets the scalars of a tree. It returns the first node whose shape differs
// from that of the values, or nil.
func fill(n *node, value any) *node {
	switch v := value.(type) {
	case map[string]any:
		if n.kind != kindTable || len(n.items) != len(v) {
			return n
		}
		for _, c := range n.items {
			cv, ok := v[c.key]
			if !ok {
				return c
			}
			if bad := fill(c, cv); bad != nil {
				return bad
			}
		}
		return nil
	case []map[string]any:
		return fillArray(n, v)
	case []any:
		return fillArray(n, v)
	}
	if n.kind == kindTable || n.kind == kindArray {
		return n
	}
	n.value = value
	switch value.(type) {
	case string:
		n.kind = kindString
	case int64:
		n.kind = kindInteger
	case float64:
		n.kind = kindFloat
	case bool:
		n.kind = kindBool
	case time.Time:
		n.kind = kindTime
	default:
		return n
	}
	return nil
}

func fillArray[T any](n *node, values []T) *node {
	if n.kind != kindArray || len(n.items) != len(values) {
		return n
	}
	for i, c := range n.items {
		if bad := fill(c, values[i]); bad != nil {
			return bad
		}
	}
	return nil
}

func (r *tomlReader) position(n *unstable.Node) position {
	return r.positionAt(int(n.Raw.Offset))
}

func (r *tomlReader) positionAt(offset int) position {
	return positionAt(r.lines, offset)
}

func positionAt(lines []int, offset int) position {
	line := sort.SearchInts(lines, offset+1)
	return position{line, offset - lines[line-1] + 1}
}

func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// printable escapes the control characters of a message.
func printable(s string) string {
	q := fmt.Sprintf("%q", s)
	if len(q) == len(s)+2 {
		return s
	}
	return q[1 : len(q)-1]
}
