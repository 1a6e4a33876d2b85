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

// readYAML reads a Pod manifest and flattens it: the keys of metadata and spec
// become keys of the root, with paths that still say where they are written.
// JSON is read by the same rules. The warnings are about what it leaves out.
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
		return nil, nil, &syntaxError{at: manifest.at, message: "is not a Pod manifest: want a mapping, found " + manifest.kind.String()}
	}
	return flatten(manifest)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func yamlDocument(data []byte) (*yaml.Node, *syntaxError) {
	start := &syntaxError{at: position{1, 1}}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		start.message = "is empty"
		return nil, start
	} else if err != nil {
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			start.at.line, _ = strconv.Atoi(m[1]) // digits by the pattern
			start.at.line = max(start.at.line, 1)
			message = strings.Replace(message, m[0], "", 1)
		}
		start.message = "is not YAML: " + printable(message)
		return nil, start
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		start.message = "holds more than one document; write one Pod a file"
		start.at = position{max(second.Line, 1), max(second.Column, 1)}
		return nil, start
	}
	if len(doc.Content) == 0 {
		start.message = "is empty"
		return nil, start
	}
	return doc.Content[0], nil
}

type yamlReader struct{ nodes int }

func (r *yamlReader) read(n *node, y *yaml.Node) *syntaxError {
	// An alias counts again wherever it is used, and is as deep as its use:
	// both limits hold for what a few lines of aliases can blow up to.
	for y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	n.at = position{max(y.Line, 1), max(y.Column, 1)}
	if n.keyAt.line == 0 {
		n.keyAt = n.at
	}
	if r.nodes++; r.nodes > maxNodes {
		return &syntaxError{at: n.at, message: fmt.Sprintf("has more than %d keys and values", maxNodes)}
	}
	if n.depth > maxDepth {
		return &syntaxError{at: n.at, message: fmt.Sprintf("is nested more than %d levels deep", maxDepth)}
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
			return &syntaxError{at: at, message: "a key is not a plain string"}
		}
		if n.child(key.Value) != nil {
			return &syntaxError{at: at, message: fmt.Sprintf("the key %s is written twice", quote(key.Value))}
		}
		if value.ShortTag() == "!!null" { // the same as not written, as in Kubernetes
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
	default: // dates too are strings in a manifest
		n.kind, n.value = kindString, y.Value
	}
	if err != nil {
		return &syntaxError{at: n.at, message: "is not YAML: cannot read " + quote(y.Value)}
	}
	return nil
}

// flatten makes the root of a pod file of a Pod manifest.
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
				return nil, nil, &syntaxError{at: c.at, message: fmt.Sprintf("%s: want a table, found %s", c.key, c.describe())}
			}
		case "status":
			problems = append(problems, warnAt(c, "is what a cluster observed; it is left out"))
		default:
			problems = append(problems, problemAt(c, "is not a field of a manifest", didYouMean(c.key, manifestKeys)))
		}
	}
	for _, c := range items(manifest.child("metadata")) {
		switch c.key {
		case "name", "labels", "annotations":
			adopt(root, c)
		case "namespace":
			if c.value != "default" {
				problems = append(problems, warnAt(c, "is left out: there is one namespace, \"default\""))
			}
		default:
			if objectMetaKeys[c.key] {
				problems = append(problems, warnAt(c, "means nothing on one machine; it is left out"))
			} else {
				problems = append(problems, problemAt(c, "unknown key", didYouMean(c.key, metadataKeys)))
			}
		}
	}
	if pod := manifest.child("spec"); pod != nil {
		pod.fields = fieldsOf(reflect.TypeFor[Pod]())
	}
	for _, c := range items(manifest.child("spec")) {
		switch c.key {
		case "name", "labels", "annotations":
			problems = append(problems, problemAt(c, "unknown key", "this line belongs to metadata"))
		default:
			adopt(root, c)
		}
	}
	return root, problems, nil
}

// adopt makes c reachable from the root, while its path stays that of its own
// parent.
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

// objectMetaKeys are the fields of Kubernetes metadata that only an API server uses.
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
		return &syntaxError{at: manifest.at, message: `is not a Pod of apiVersion "v1"`}
	case kind == nil:
		return &syntaxError{at: manifest.at, message: "is not a Pod manifest: it has no kind", hint: `a manifest begins with apiVersion: v1 and kind: Pod`}
	default:
		name, _ := kind.(string) // what is no string is told as an empty one
		return &syntaxError{at: manifest.child("kind").at, message: fmt.Sprintf("is a %s, not a Pod: a pod file or a manifest of kind Pod is needed", clip(name))}
	}
}
