package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// maxOwnBytes is the maximum size of the text of one pod.
const maxOwnBytes = maxFileBytes

// writePod returns the text of a pod file from the values of the pod, without those that have no effect. It has no comments.
func writePod(f format, root *node) ([]byte, error) {
	if size := root.textSize(); size > maxOwnBytes {
		return nil, fmt.Errorf("its definition is larger than %d bytes", maxOwnBytes)
	}
	manifest := asManifest(root)
	if f == formatJSON {
		var b bytes.Buffer
		writeJSON(&b, manifest, "\n")
		return append(b.Bytes(), '\n'), nil
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(yamlNode(manifest)), e.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// textSize is about the size of the text of a value.
func (n *node) textSize() int {
	size := len(n.key) + 8 + n.depth
	if text, is := n.value.(string); is {
		size += len(text)
	}
	for _, c := range n.items {
		if size += c.textSize(); size > maxOwnBytes {
			break
		}
	}
	return size
}

// asManifest returns a pod file as a manifest. The values are shared.
func asManifest(root *node) *node {
	manifest, metadata, pod := newTable(nil), newTable(nil), newTable(nil)
	for _, c := range root.items {
		if slices.Contains(metadataKeys, c.key) {
			metadata.items = append(metadata.items, c)
		} else {
			pod.items = append(pod.items, c)
		}
	}
	for _, field := range []struct {
		key string
		n   *node
	}{
		{"apiVersion", &node{kind: kindString, value: "v1"}},
		{"kind", &node{kind: kindString, value: "Pod"}},
		{"metadata", metadata},
		{"spec", pod},
	} {
		field.n.key = field.key
		manifest.items = append(manifest.items, field.n)
	}
	return manifest
}

// written returns the values of a table or an array that have an effect.
func (n *node) written() []*node {
	return slices.DeleteFunc(slices.Clone(n.items), func(c *node) bool { return c.ignored })
}

var jsonNumber = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number returns a number as YAML and JSON have it, as it is written if possible: quantities depend on it.
func (n *node) number() string {
	if jsonNumber.MatchString(n.text) {
		return n.text
	}
	if f, is := n.value.(float64); is {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(n.value)
}

// safeBlock are texts of several lines that are written as a block.
var safeBlock = lazyregexp.New(`^([!-~][ -~]*)?[!-~]\n([!-~][ -~]*[!-~]\n|[!-~]\n|\n| +[!-~]([ -~]*[!-~])?\n)*$`)

func yamlNode(n *node) *yaml.Node {
	switch n.kind { //nolint:exhaustive // the rest are scalars
	case kindTable:
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, c := range n.written() {
			key, value := &yaml.Node{}, yamlNode(c)
			key.SetString(c.key)
			if !plainKey.MatchString(c.key) || oldBool.MatchString(c.key) {
				key.Style = yaml.DoubleQuotedStyle
			}
			switch { // yaml.v3 writes comments beside plain values only
			case c.beside == "":
				key.HeadComment = yamlComments(c)
			case value.Kind == yaml.ScalarNode && value.Style != yaml.LiteralStyle:
				key.HeadComment, value.LineComment = yamlComments(c), yamlComment(c.beside)
			default:
				key.HeadComment = yamlComments(c, c.beside)
			}
			y.Content = append(y.Content, key, value)
		}
		return y
	case kindArray:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		for _, c := range n.written() {
			value := yamlNode(c)
			value.HeadComment = yamlComments(c, c.beside)
			y.Content = append(y.Content, value)
		}
		return y
	case kindInteger, kindFloat:
		tag := "!!int"
		if n.kind == kindFloat {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: n.number()}
	case kindBool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(n.value)}
	}
	text, _ := n.value.(string) // the other values are null, which the reader has left out
	y := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch {
	case safeBlock.MatchString(text):
		y.Style = yaml.LiteralStyle
	case !plainText.MatchString(text) || oldBool.MatchString(text):
		y.Style = yaml.DoubleQuotedStyle
	}
	return y
}

// plainText are texts, and plainKey keys, without quotes, unless they mean something else in YAML, which the library knows.
var (
	plainText = lazyregexp.New(`^[A-Za-z/][A-Za-z0-9_./@:-]*[A-Za-z0-9_/]$|^[A-Za-z/]$`)
	plainKey  = lazyregexp.New(`^[A-Za-z./][A-Za-z0-9_./-]*$`)
)

// oldBool are the booleans of YAML 1.1, which Kubernetes reads.
var oldBool = lazyregexp.New(`^(?i:y|n|yes|no|on|off)$`)

func writeJSON(b *bytes.Buffer, n *node, line string) {
	open, closing := "{", "}"
	switch n.kind { //nolint:exhaustive // the rest are scalars
	case kindInteger, kindFloat:
		b.WriteString(n.number())
		return
	case kindBool:
		fmt.Fprint(b, n.value)
		return
	case kindArray:
		open, closing = "[", "]"
	case kindTable:
	default:
		b.WriteString(jsonText(fmt.Sprint(n.value)))
		return
	}
	b.WriteString(open)
	for i, c := range n.written() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(line + "  ")
		if n.kind == kindTable {
			b.WriteString(jsonText(c.key) + ": ")
		}
		writeJSON(b, c, line+"  ")
	}
	if len(n.written()) > 0 {
		b.WriteString(line)
	}
	b.WriteString(closing)
}

func jsonText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // a string has no error
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
