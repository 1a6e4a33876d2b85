package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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

// String is the kind with its article, as messages need it.
func (k kind) String() string {
	return [...]string{"a table", "an array", "a string", "an integer", "a float", "a boolean", "a date", "nothing"}[k]
}

// position counts lines, and bytes within a line, from 1.
type position struct{ line, column int }

// node is one value of a file with its place. TOML and YAML are both read into
// nodes, so that everything after the reading exists once.
type node struct {
	kind   kind
	parent *node
	depth  int

	// key is the field's name in the Pod API, segment what the path shows: the
	// two differ where a + table was expanded.
	key     string
	segment string
	at      position // of the value
	keyAt   position // of its key; the same as at where there is none

	value any    // string, int64, float64 or bool
	text  string // a number or boolean as it was written
	// canonical replaces the value in the hash, for values that have several
	// spellings; empty for none.
	canonical string

	items []*node          // in the order of the file
	index map[string]*node // of a table

	label   string   // of an expanded value, what the file wrote before "="
	fields  fieldSet // of a table that was decoded, its known keys
	header  bool     // opened by a [header]: the lines after it land here
	failed  bool     // told as a problem already; do not tell it again
	ignored bool     // means nothing on one machine; not part of the hash
	meant   []string // known keys that misspelled ones of this table seem to mean
}

// Limits that keep reading linear in the size of the file. The TOML library
// keeps the full path of every key, so the product of the last two bounds its
// memory.
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

// child is nil if the table has no such key.
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

// path is the field as the file wrote it, such as containers[0].env.NAME.
func (n *node) path() string {
	var segments []string
	for ; n != nil; n = n.parent {
		segments = append(segments, n.segment)
	}
	var b strings.Builder
	for _, segment := range slices.Backward(segments) {
		b.WriteString(segment)
	}
	return strings.TrimPrefix(b.String(), ".")
}

// isSecret tells that the value must not be quoted.
func (n *node) isSecret() bool {
	for ; n != nil && n.parent != nil; n = n.parent {
		if n.key == "data" && n.parent.parent != nil && n.parent.parent.key == "secrets" {
			return true
		}
	}
	return false
}

// describe is what the value is, for "want ..., found ...".
func (n *node) describe() string {
	if n.value == nil || n.isSecret() {
		return n.kind.String()
	}
	if s, ok := n.value.(string); ok {
		return "the string " + quote(s)
	}
	if n.text == "" {
		return n.kind.String()
	}
	_, noun, _ := strings.Cut(n.kind.String(), " ")
	return "the " + noun + " " + clip(n.text)
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func printableKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return quote(key)
}

// quote escapes whatever a terminal could take for a command, and clips.
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

// clip shows text that is plain already, or quotes it.
func clip(s string) string {
	if len(s) <= 40 && strconv.Quote(s) == `"`+s+`"` {
		return s
	}
	return quote(s)
}
