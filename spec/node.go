package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/podstead/podstead/internal/lazyregexp"
)

type kind int

const (
	kindTable kind = iota
	kindArray
	kindString
	kindInteger
	kindFloat
	kindBool
	kindTime
	kindNull
)

// String is the kind as it appears in messages.
func (k kind) String() string {
	return [...]string{"table", "array", "string", "integer", "float", "boolean", "date", "null"}[k]
}

// position is a line and the byte within the line, both from 1.
type position struct{ line, column int }

// node is one value of a file with its position. TOML and YAML are both read
// into nodes, and everything after that is common to both.
type node struct {
	kind   kind
	parent *node
	depth  int

	// key is the field's name in the Pod API, segment its name in the path. They
	// differ where the table form of an array was expanded, see expand.
	key     string
	segment string
	at      position // of the value
	keyAt   position // of its key; equal to at if it has no key

	value any    // string, int64, float64 or bool
	text  string // source text of a number or boolean; in YAML, of a string without quotes
	plain bool   // of a string in YAML: without quotes
	size  int    // of a string in TOML: the length of its source text
	// canonical replaces the value in the hash, for values with several
	// spellings; empty means the value itself.
	canonical string

	items []*node          // in the order of the file
	index map[string]*node // of a table

	above  []string // comments on the lines above, with "#"; empty: an empty line
	beside string   // comment on the same line
	after  []string // of the root: comments at the end of the file

	label     string   // of an expanded value, its key in the file
	movedFrom string   // of an expanded value that moved to another table, its path in the file
	twins     []*node  // values of the file that this one stands for too
	fields    fieldSet // of a decoded table, its known keys
	header    bool     // opened by a [header]: the lines after it belong to it
	failed    bool     // has a problem; suppresses further ones
	broken    bool     // expand has reported that it is no short form; the decoder skips it
	ignored   bool     // only a cluster uses it; not part of the hash
	meant     []string // known keys nearest to the misspelled keys of this table
}

// Limits that bound the cost of reading a hostile file. BurntSushi/toml keeps
// the full path of every key, so maxNodes*maxPathBytes bounds its memory.
const (
	maxFileBytes = 1 << 20
	maxDepth     = 32
	maxNodes     = 20000
	maxPathBytes = 1024
)

func newTable(parent *node) *node {
	t := &node{kind: kindTable, parent: parent, index: map[string]*node{}}
	if parent != nil {
		t.depth = parent.depth + 1
	}
	return t
}

// child returns the value of a key, or nil if the table does not have the key.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	return n.index[key]
}

func (n *node) add(key string, c *node) {
	c.parent, c.key, c.depth = n, key, n.depth+1
	if c.segment == "" {
		c.segment = "." + printableKey(key)
	}
	n.items = append(n.items, c)
	n.index[key] = c
}

func (n *node) appendItem(c *node) {
	c.parent, c.depth = n, n.depth+1
	c.segment = "[" + strconv.Itoa(len(n.items)) + "]"
	n.items = append(n.items, c)
}

// path is the field as written in the file, such as containers[0].env.NAME.
func (n *node) path() string {
	var segments []string
	for ; n != nil; n = n.parent {
		if n.movedFrom != "" {
			segments = append(segments, n.movedFrom)
			break
		}
		segments = append(segments, n.segment)
	}
	var b strings.Builder
	for _, segment := range slices.Backward(segments) {
		b.WriteString(segment)
	}
	return strings.TrimPrefix(b.String(), ".")
}

// isConfidential reports whether the value is secret data or part of an
// environment variable, which no message may contain.
func (n *node) isConfidential() bool {
	for ; n != nil && n.parent != nil; n = n.parent {
		if n.key == "env" || n.key == "data" && n.parent.parent != nil && n.parent.parent.key == "secrets" {
			return true
		}
	}
	return false
}

// describe returns the kind and the value, for "must be ..., found ...".
func (n *node) describe() string {
	if n.value == nil || n.isConfidential() {
		return n.kind.String()
	}
	if s, ok := n.value.(string); ok {
		return "string " + quote(s)
	}
	if n.text == "" {
		return n.kind.String()
	}
	return n.kind.String() + " " + clip(n.text)
}

var bareKey = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

func printableKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return quote(key)
}

// quote returns s in quotes, with control characters escaped, and clipped.
func quote(s string) string {
	const limit = 80
	if len(s) <= limit {
		return fmt.Sprintf("%q", s)
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q...", s[:cut])
}

// clip returns s as it is if it is short and plain, else quoted.
func clip(s string) string {
	if len(s) <= 40 && strconv.Quote(s) == `"`+s+`"` {
		return s
	}
	return quote(s)
}
