package spec

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
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

// readTOML reads a file in one pass over the syntax tree of go-toml, which has the position of every key and value. The limits are
// checked on the way, so that a hostile file costs little (TestHostileFiles).
//
// It is more lenient than TOML in one respect: a table that has one form, such as an inline table, can be continued in another one. A key
// has one value, and a [header] can be there once.
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
	return r.root, nil
}

type tomlReader struct {
	data  []byte
	lines []int // offset of each line's first byte
	parse unstable.Parser
	root  *node
	nodes int
}

func (r *tomlReader) read() (err *syntaxError) {
	r.parse.Reset(r.data)
	current := r.root
	for err == nil && r.parse.NextExpression() {
		switch e := r.parse.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			current, err = r.header(e)
		case unstable.KeyValue:
			err = r.keyValue(current, e)
		default:
		}
	}
	var syntax *unstable.ParserError
	if err := r.parse.Error(); errors.As(err, &syntax) {
		offset := min(max(cap(r.data)-cap(syntax.Highlight), 0), len(r.data))
		return r.syntaxError(offset, syntax.Message)
	} else if err != nil {
		return &syntaxError{at: position{1, 1}, message: err.Error()}
	}
	return err
}

// conflict reports a key that has the value c already.
func (r *tomlReader) conflict(key *unstable.Node, c *node) *syntaxError {
	return &syntaxError{
		at:      r.position(key),
		message: fmt.Sprintf("invalid TOML: key %s is already defined on line %d", c.path(), c.keyAt.line),
	}
}

var bareString = regexp.MustCompile(`^\s*([A-Za-z0-9_.-]+)\s*=\s*([A-Za-z/.][^"'\[\]{}#]*?)\s*(#.*)?$`)

func (r *tomlReader) syntaxError(offset int, message string) *syntaxError {
	e := &syntaxError{at: r.positionAt(offset), message: "invalid TOML: " + message}
	start := r.lines[e.at.line-1]
	line, _, _ := bytes.Cut(r.data[start:], []byte("\n"))
	if m := bareString.FindSubmatch(line); m != nil && len(line) < 200 {
		e.hint = fmt.Sprintf("put strings in quotes: %s = %q", m[1], m[2])
	}
	return e
}

// header returns the table that a [header] or [[header]] opens, and creates it
// if necessary.
func (r *tomlReader) header(e *unstable.Node) (t *node, err *syntaxError) {
	t = r.root
	bytes := 0
	for keys := e.Key(); err == nil && keys.Next(); {
		key := keys.Node()
		bytes += len(key.Data) + 1
		switch last := keys.IsLast(); {
		case last && e.Kind == unstable.ArrayTable:
			t, err = r.element(t, key, bytes)
		case last:
			t, err = r.table(t, key, bytes)
		default:
			t, err = r.step(t, key, bytes)
		}
	}
	return t, err
}

// table opens the table of the last key of a [header] below t.
func (r *tomlReader) table(t *node, key *unstable.Node, pathBytes int) (*node, *syntaxError) {
	if c := t.child(string(key.Data)); c != nil && (c.kind != kindTable || c.header || c.inline) {
		return nil, r.conflict(key, c)
	}
	c, err := r.step(t, key, pathBytes)
	if err != nil {
		return nil, err
	}
	c.header, c.at, c.keyAt = true, r.position(key), r.position(key)
	return c, nil
}

// element opens a new element of the array of the last key of a [[header]] below t.
func (r *tomlReader) element(t *node, key *unstable.Node, pathBytes int) (*node, *syntaxError) {
	at := r.position(key)
	list := t.child(string(key.Data))
	if list == nil {
		list = &node{kind: kindArray, at: at, keyAt: at}
		if err := r.add(t, list, key, pathBytes); err != nil {
			return nil, err
		}
	} else if _, ok := list.lastElement(); !ok {
		return nil, r.conflict(key, list)
	}
	item := newTable(list)
	item.header, item.at, item.keyAt = true, at, at
	list.appendItem(item)
	return item, r.count(item)
}

// lastElement returns the table that the last [[header]] of an array has opened, if the array has headers.
func (n *node) lastElement() (*node, bool) {
	if n.kind != kindArray || len(n.items) == 0 {
		return nil, false
	}
	last := n.items[len(n.items)-1]
	return last, last.header
}

// step returns the table under a key of t: a new one if the key does not exist,
// the last element if it is an array of tables.
func (r *tomlReader) step(t *node, key *unstable.Node, pathBytes int) (*node, *syntaxError) {
	c := t.child(string(key.Data))
	if c == nil {
		c = newTable(t)
		c.at, c.keyAt = r.position(key), r.position(key)
		return c, r.add(t, c, key, pathBytes)
	}
	if last, ok := c.lastElement(); ok {
		return last, nil
	}
	if c.kind != kindTable {
		return nil, r.conflict(key, c)
	}
	return c, nil
}

// add adds the value of a new key to t.
func (r *tomlReader) add(t, c *node, key *unstable.Node, pathBytes int) *syntaxError {
	if pathBytes > maxPathBytes {
		return &syntaxError{at: r.position(key), message: fmt.Sprintf("key must not be longer than %d bytes", maxPathBytes)}
	}
	t.add(string(key.Data), c)
	return r.count(c)
}

func (r *tomlReader) keyValue(t *node, e *unstable.Node) (err *syntaxError) {
	bytes := len(t.path())
	for keys := e.Key(); err == nil && keys.Next(); {
		key := keys.Node()
		bytes += len(key.Data) + 1
		if !keys.IsLast() {
			t, err = r.step(t, key, bytes)
			continue
		}
		if c := t.child(string(key.Data)); c != nil {
			return r.conflict(key, c)
		}
		v := &node{at: r.position(key), keyAt: r.position(key)}
		if err = r.add(t, v, key, bytes); err == nil {
			err = r.setValue(v, e.Value())
		}
	}
	return err
}

// setValue sets the value of a node, and its items.
func (r *tomlReader) setValue(v *node, n *unstable.Node) *syntaxError {
	switch n.Kind {
	case unstable.Array:
		v.kind = kindArray
		for items := n.Children(); items.Next(); {
			item := &node{at: v.at, keyAt: v.at}
			v.appendItem(item)
			err := r.count(item)
			if err == nil {
				err = r.setValue(item, items.Node())
			}
			if err != nil {
				return err
			}
		}
		return nil
	case unstable.InlineTable:
		v.kind, v.inline, v.index = kindTable, true, map[string]*node{}
		v.at = r.position(n)
		for items := n.Children(); items.Next(); {
			if err := r.keyValue(v, items.Node()); err != nil {
				return err
			}
		}
		return nil
	case unstable.String:
		v.kind, v.at = kindString, r.position(n)
		v.value, v.size = string(n.Data), int(n.Raw.Length)
		return nil
	}
	v.at, v.text = r.position(n), string(r.parse.Raw(n.Raw))
	return v.setNumber(n.Kind)
}

// setNumber sets the value of a number, a boolean or a date from its text. The
// error does not have the text, which may be a password without quotes.
func (n *node) setNumber(k unstable.Kind) *syntaxError {
	problem := "the number is out of range"
	switch k {
	case unstable.Integer:
		n.kind = kindInteger
	case unstable.Float:
		n.kind = kindFloat
	case unstable.Bool:
		n.kind = kindBool
	default:
		n.kind, problem = kindTime, "invalid date or time"
	}
	var parsed struct{ V any }
	if err := toml.Unmarshal([]byte("V = "+n.text), &parsed); err != nil {
		return &syntaxError{at: n.at, message: "invalid TOML: " + problem}
	}
	n.value = parsed.V
	return nil
}

func (r *tomlReader) count(n *node) *syntaxError {
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
