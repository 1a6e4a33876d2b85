package spec

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a Pod manifest in YAML or JSON and flattens it: the fields of
// metadata and spec become fields of the root and keep their paths. Warnings
// name the fields that it ignores.
func readYAML(data []byte) (*node, Problems, *syntaxError) {
	doc, err := yamlDocument(data)
	if err != nil {
		return nil, nil, err
	}
	r := &yamlReader{}
	manifest := &node{}
	if err := r.read(manifest, doc); err != nil {
		return nil, nil, err
	}
	if manifest.kind != kindTable {
		return nil, nil, &syntaxError{at: manifest.at, message: "not a Pod manifest: must be a mapping, found " + manifest.kind.String()}
	}
	return flatten(manifest)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func yamlDocument(data []byte) (*yaml.Node, *syntaxError) {
	start := &syntaxError{at: position{1, 1}}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		start.message = "file is empty"
		return nil, start
	} else if err != nil {
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			start.at.line, _ = strconv.Atoi(m[1]) // digits by the pattern
			start.at.line = max(start.at.line, 1)
			message = strings.Replace(message, m[0], "", 1)
		}
		start.message = "invalid YAML: " + printable(message)
		return nil, start
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		start.message, start.hint = "file has more than one document", "write one Pod per file"
		start.at = position{max(second.Line, 1), max(second.Column, 1)}
		return nil, start
	}
	if len(doc.Content) == 0 {
		start.message = "file is empty"
		return nil, start
	}
	return doc.Content[0], nil
}

type yamlReader struct{ nodes int }

func (r *yamlReader) read(n *node, y *yaml.Node) *syntaxError {
	// An alias counts at every use, at the depth of the use, so that the limits
	// hold for the expanded document.
	for y.Kind == yaml.AliasNode {
		y = y.Alias
	}
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
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		at := position{max(key.Line, 1), max(key.Column, 1)}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return &syntaxError{at: at, message: "key must be a plain string"}
		}
		if n.child(key.Value) != nil {
			return &syntaxError{at: at, message: "duplicate key " + quote(key.Value)}
		}
		if value.ShortTag() == "!!null" { // the same as unset, as in Kubernetes
			continue
		}
		c := &node{keyAt: at}
		n.add(key.Value, c)
		if err := r.read(c, value); err != nil {
			return err
		}
	}
	return nil
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
	}
	if err != nil {
		return &syntaxError{at: n.at, message: "invalid YAML: cannot read " + quote(y.Value)}
	}
	return nil
}

// flatten returns a Pod manifest in the form of a pod file.
func flatten(manifest *node) (*node, Problems, *syntaxError) {
	if err := isPod(manifest); err != nil {
		return nil, nil, err
	}
	root := newTable(nil)
	root.at, root.keyAt = manifest.at, manifest.at
	var problems Problems
	for _, c := range manifest.items {
		switch c.key {
		case "apiVersion", "kind":
		case "metadata", "spec":
			if c.kind != kindTable {
				return nil, nil, &syntaxError{at: c.at, message: fmt.Sprintf("%s: must be a mapping, found %s", c.key, c.describe())}
			}
		case "status":
			problems = append(problems, warnAt(c, "ignored: status is read-only"))
		default:
			problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, manifestKeys)))
		}
	}
	for _, c := range items(manifest.child("metadata")) {
		switch c.key {
		case "name", "labels", "annotations":
			adopt(root, c)
		case "namespace":
			if c.value != "default" {
				problems = append(problems, warnAt(c, `ignored: the only namespace is "default"`))
			}
		default:
			if objectMetaKeys[c.key] {
				problems = append(problems, warnAt(c, ignoredField))
			} else {
				problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, metadataKeys)))
			}
		}
	}
	if pod := manifest.child("spec"); pod != nil {
		pod.fields = fieldsOf(reflect.TypeFor[Pod]())
	}
	for _, c := range items(manifest.child("spec")) {
		switch c.key {
		case "name", "labels", "annotations":
			problems = append(problems, problemAt(c, unknownField, "move it to metadata"))
		default:
			adopt(root, c)
		}
	}
	return root, problems, nil
}

// adopt adds c to the fields of the root. Its path stays that of its parent.
func adopt(root, c *node) {
	root.items = append(root.items, c)
	root.index[c.key] = c
}

func items(n *node) []*node {
	if n == nil {
		return nil
	}
	return n.items
}

var (
	manifestKeys = []string{"apiVersion", "kind", "metadata", "spec", "status"}
	metadataKeys = []string{"name", "labels", "annotations", "namespace"}
)

// objectMetaKeys are the fields of ObjectMeta that have no effect without an API server.
var objectMetaKeys = setOf("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
	"generateName", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid")

func isPod(manifest *node) *syntaxError {
	var kind, version any
	if c := manifest.child("kind"); c != nil {
		kind = c.value
	}
	if c := manifest.child("apiVersion"); c != nil {
		version = c.value
	}
	switch {
	case kind == "Pod" && version == "v1":
		return nil
	case kind == "Pod":
		return &syntaxError{at: manifest.at, message: "not a Pod manifest: apiVersion must be v1"}
	case kind == nil:
		return &syntaxError{at: manifest.at, message: "not a Pod manifest: kind: Required value", hint: "begin the manifest with apiVersion: v1 and kind: Pod"}
	default:
		name, _ := kind.(string) // empty if it is not a string
		return &syntaxError{at: manifest.child("kind").at, message: fmt.Sprintf(`not a Pod manifest: kind: Unsupported value: %s: supported values: "Pod"`, quote(name))}
	}
}
