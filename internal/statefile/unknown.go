package statefile

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Unknown are the fields of a file that a later version added. The zero value has none. It is immutable.
//
// Fields of an object are written back while the object exists. Some objects are replaced by others of the same type, which the fields
// would say something wrong about. Struct tags tell them apart:
//   - `format:"key"` marks the fields that identify an object. Its unknown fields are dropped when one of them changes.
//   - `format:"whole"` marks an object whose unknown fields are dropped when anything in it changes. So are those of the
//     elements of lists.
type Unknown struct{ root *node }

// IsZero reports whether there are no unknown fields.
func (u Unknown) IsZero() bool { return u.root == nil }

// node has the unknown fields of a JSON value.
type node struct {
	fields   map[string]json.RawMessage // unknown members of an object
	children map[string]*node           // known members
	elements []*node                    // of a list, each with whole set
	key      map[string]string          // JSON of the members that identify the object
	whole    string                     // JSON without unknown fields, if they depend on all of it
}

// collect returns the unknown fields of a value of a type, or nil.
func collect(raw json.RawMessage, t reflect.Type) *node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || raw == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) == nil {
			return object(members, t)
		}
	case reflect.Slice, reflect.Array:
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) == nil {
			return list(elements, t.Elem())
		}
	}
	return nil
}

// object returns the unknown fields of an object of a struct or map type, or nil.
func object(members map[string]json.RawMessage, t reflect.Type) *node {
	n := &node{fields: map[string]json.RawMessage{}, children: map[string]*node{}, key: map[string]string{}}
	fields := map[string]reflect.StructField{}
	if t.Kind() == reflect.Struct {
		fields = fieldsOf(t)
	}
	for lower, field := range fields {
		if field.Tag.Get("format") == "key" {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			n.key[cmp.Or(name, lower)] = string(members[name])
		}
	}
	for name, raw := range members {
		var of reflect.Type
		var tag string
		if t.Kind() == reflect.Struct {
			field, known := fields[strings.ToLower(name)] // encoding/json ignores case
			if !known {
				n.fields[name] = raw
				continue
			}
			of, tag = field.Type, field.Tag.Get("format")
		} else {
			of = t.Elem()
		}
		child := collect(raw, of)
		if child != nil && tag == "whole" {
			child.whole = known(raw, of)
		}
		if child != nil {
			n.children[name] = child
		}
	}
	if len(n.fields) == 0 && len(n.children) == 0 {
		return nil
	}
	return n
}

func list(elements []json.RawMessage, t reflect.Type) *node {
	n := &node{}
	for _, raw := range elements {
		if child := collect(raw, t); child != nil {
			child.whole = known(raw, t)
			n.elements = append(n.elements, child)
		}
	}
	if len(n.elements) == 0 {
		return nil
	}
	return n
}

// fieldsOf returns the fields of a struct by the lower-case name of their member.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			maps.Copy(fields, fieldsOf(field.Type))
		case !field.IsExported():
		case name == "":
			fields[strings.ToLower(field.Name)] = field
		default:
			fields[strings.ToLower(name)] = field
		}
	}
	return fields
}

// known returns the JSON of a value as this binary writes it.
func known(raw json.RawMessage, t reflect.Type) string {
	v := reflect.New(t)
	if json.Unmarshal(raw, v.Interface()) != nil {
		return string(raw)
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return string(raw)
	}
	return string(text)
}

// merge adds unknown fields to a value that this binary wrote.
func merge(raw json.RawMessage, n *node) (json.RawMessage, error) {
	if n.whole != "" && n.whole != string(raw) {
		return raw, nil
	}
	if len(n.elements) > 0 {
		return mergeList(raw, n)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return raw, err
	}
	for name, value := range n.key {
		if string(members[name]) != value {
			return raw, nil
		}
	}
	for name, child := range n.children {
		if _, exists := members[name]; !exists {
			continue
		}
		merged, err := merge(members[name], child)
		if err != nil {
			return nil, err
		}
		members[name] = merged
	}
	for name, value := range n.fields {
		if _, exists := members[name]; !exists {
			members[name] = value
		}
	}
	return json.Marshal(members)
}

func mergeList(raw json.RawMessage, n *node) (json.RawMessage, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, err
	}
	left := slices.Clone(n.elements)
	for i, element := range elements {
		at := slices.IndexFunc(left, func(e *node) bool { return e.whole == string(element) })
		if at < 0 {
			continue
		}
		merged, err := merge(element, left[at])
		if err != nil {
			return nil, err
		}
		elements[i], left = merged, slices.Delete(left, at, at+1)
	}
	return json.Marshal(elements)
}
