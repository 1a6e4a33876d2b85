package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxWidth is the length up to which a table or an array is written on one line.
const maxWidth = 100

// blocks are the arrays of a pod that are written with headers, such as [[containers]], in their order.
var blocks = []string{"initContainers", "containers", "volumes", "configMaps", "secrets"}

// writeTOML returns the text of a pod file with the values of a tree. They have the order of the tree, but blocks come last, so that no
// value gets into the table of another one.
func writeTOML(root *node) []byte {
	w := &writer{}
	w.before(root)
	if root.beside != "" {
		w.comment(root.beside)
	}
	w.pod(root, "")
	for _, c := range root.after {
		w.comment(c)
	}
	return []byte(w.b.String())
}

type writer struct{ b strings.Builder }

// pod writes the keys of a pod, whose headers begin with a prefix.
func (w *writer) pod(root *node, prefix string) {
	for _, c := range root.items {
		if !slices.Contains(blocks, c.key) {
			w.assign(printableTOMLKey(c.key), c)
		}
	}
	for _, key := range blocks {
		if c := root.child(key); c != nil && !isBlock(c) {
			w.assign(key, c)
		}
	}
	for _, key := range blocks {
		c := root.child(key)
		if c == nil || !isBlock(c) {
			continue
		}
		for i, e := range c.items {
			if i == 0 && len(c.above) > 0 {
				e.above = append(c.above, e.above...)
			}
			w.header(e, prefix+key)
			for _, field := range e.items {
				w.assign(printableTOMLKey(field.key), field)
			}
		}
	}
}

// header writes the header of an element, and an empty line above it.
func (w *writer) header(e *node, name string) {
	w.comment("")
	w.before(e)
	w.b.WriteString("[[" + name + "]]")
	w.behind(e)
}

// isBlock reports whether an array can be written with headers.
func isBlock(n *node) bool { return n.kind == kindArray && len(n.items) > 0 }

// before writes the comments above a value.
func (w *writer) before(n *node) {
	for _, c := range n.above {
		w.comment(c)
	}
}

// comment writes a line. An empty one separates comments from what is above them.
func (w *writer) comment(line string) {
	if text := w.b.String(); line == "" && (text == "" || strings.HasSuffix(text, "\n\n")) {
		return
	}
	w.b.WriteString(line + "\n")
}

// behind ends the line of a value.
func (w *writer) behind(n *node) {
	if n.beside != "" {
		w.b.WriteString("    " + n.beside)
	}
	w.b.WriteString("\n")
}

// namedKeys are tables whose keys are names: each key has a line of its own.
var namedKeys = setOf("env", "volumeMounts", "volumes", "secrets", "data")

// assign writes the line that sets a key, or those that set the keys of a table.
func (w *writer) assign(path string, n *node) {
	if n.ignored {
		return
	}
	w.before(n)
	if n.kind == kindTable && len(n.items) > 0 {
		text := path + " = " + inline(n)
		if len(n.items) == 1 || namedKeys[n.key] || len(text) > maxWidth || nested(n) || hasComments(n) {
			if n.beside != "" {
				w.comment(n.beside)
			}
			for _, c := range n.items {
				w.assign(path+"."+printableTOMLKey(c.key), c)
			}
			return
		}
	}
	w.b.WriteString(path + " = ")
	text := inline(n)
	if n.kind != kindArray || len(n.items) == 0 || !hasComments(n) && len(path)+3+len(text) <= maxWidth {
		w.b.WriteString(text)
		w.behind(n)
		return
	}
	w.b.WriteString("[")
	w.behind(n)
	for _, e := range n.items {
		for _, c := range e.above {
			w.comment(indented(c))
		}
		w.b.WriteString("  " + inline(e) + ",")
		w.behind(e)
	}
	w.b.WriteString("]\n")
}

// indented returns a comment in an array. An empty line stays empty.
func indented(c string) string {
	if c == "" {
		return ""
	}
	return "  " + c
}

// nested reports whether a table has values that have keys too, or lists of such.
func nested(n *node) bool {
	return slices.ContainsFunc(n.items, func(c *node) bool {
		return c.kind == kindTable && len(c.items) > 0 ||
			c.kind == kindArray && slices.ContainsFunc(c.items, func(e *node) bool { return e.kind == kindTable })
	})
}

// hasComments reports whether a value below n has comments.
func hasComments(n *node) bool {
	return slices.ContainsFunc(n.items, func(c *node) bool { return len(c.above) > 0 || c.beside != "" || hasComments(c) })
}

// inline returns a value without line breaks, but for those of strings.
func inline(n *node) string {
	var parts []string
	switch n.kind { //nolint:exhaustive // no valid file has the rest
	case kindTable:
		for _, c := range n.items {
			if !c.ignored {
				parts = append(parts, printableTOMLKey(c.key)+" = "+inline(c))
			}
		}
		if len(parts) == 0 {
			return "{}"
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	case kindArray:
		for _, c := range n.items {
			parts = append(parts, inline(c))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case kindString:
		return quoteTOML(str(n))
	case kindInteger:
		if n.key == "mode" || n.key == "defaultMode" {
			if mode, is := n.value.(int64); is && mode >= 0 {
				return fmt.Sprintf("0o%03o", mode)
			}
		}
		return fmt.Sprint(n.value)
	case kindFloat:
		f, _ := n.value.(float64)
		text := strconv.FormatFloat(f, 'g', -1, 64)
		if !strings.ContainsAny(text, ".en") {
			text += ".0"
		}
		return text
	default:
		return fmt.Sprint(n.value)
	}
}

func printableTOMLKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return quoteLine(key)
}

// quoteTOML returns a string of TOML: one on several lines if it has line breaks.
func quoteTOML(s string) string {
	isControl := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == unicode.ReplacementChar)
	}
	isPlain := !strings.ContainsFunc(s, isControl) && !strings.Contains(s, "'''") && !strings.HasSuffix(s, "'")
	switch {
	case isPlain && strings.Contains(s, "\n"):
		return "'''\n" + s + "'''"
	case isPlain && strings.Contains(s, `\`) && !strings.Contains(s, "'") && !strings.Contains(s, "\t"):
		return "'" + s + "'"
	}
	return quoteLine(s)
}

// quoteLine returns a basic string of TOML.
func quoteLine(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !unicode.IsPrint(r) && r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
