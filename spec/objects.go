package spec

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// configMap adds a ConfigMap, in the form of an entry of configMaps.
func (s *stream) configMap(x *object) {
	entry, problems := s.values(x, []string{"data", "binaryData", "immutable"}, func(data *node, c *node, key string) Problems {
		if key == "binaryData" {
			return addDecoded(data, c)
		}
		return addText(data, c)
	})
	s.put(s.configMaps, x, entry, problems)
}

// secret adds a Secret, in the form of an entry of secrets. As in the API server, stringData takes precedence.
func (s *stream) secret(x *object) {
	entry, problems := s.values(x, []string{"data", "stringData", "immutable", "type"}, func(data *node, c *node, key string) Problems {
		if key == "data" {
			return addDecoded(data, c)
		}
		data.remove(c.key)
		return addText(data, c)
	})
	s.put(s.secrets, x, entry, problems)
}

// put records an object that pods can use. The error of one that is defined twice has the position of the second one.
func (s *stream) put(all map[string]*node, x *object, entry *node, problems Problems) {
	s.problems = append(s.problems, problems...)
	switch {
	case x.file != "" && all[x.name] != nil: // this file takes precedence
		if first := all[x.name]; s.foreign[first] != "" && !sameValues(first, entry) {
			s.ambiguous[first] = x.file
		}
	case x.name == "":
		s.fail(x.n, x.kind+": metadata.name: Required value")
	case all[x.name] != nil:
		s.fail(x.n, fmt.Sprintf("Duplicate value: %s %s is already defined in this file", x.kind, quote(x.name)))
	default:
		all[x.name] = entry
		s.foreign[entry] = x.file
	}
}

// sameValues reports whether two entries have the same keys and values.
func sameValues(a, b *node) bool {
	x, y := items(a.child("data")), b.child("data")
	return len(x) == len(items(y)) && !slices.ContainsFunc(x, func(c *node) bool {
		other := y.child(c.key)
		return other == nil || other.value != c.value
	})
}

// values returns the entry of a list of a pod file with the values of an object. The function add takes one value of the table with a key.
func (s *stream) values(x *object, keys []string, add func(data, c *node, key string) Problems) (*node, Problems) {
	entry := newTable(nil)
	entry.at, entry.keyAt = x.n.at, x.n.at
	data := newTable(entry)
	data.at, data.keyAt = x.n.at, x.n.at
	problems := s.metadata(x, keys)
	for _, key := range keys {
		table := x.n.child(key)
		if table == nil || key == "immutable" || key == "type" {
			continue
		}
		if table.kind != kindTable {
			problems = append(problems, problemAt(table, "must be a mapping, found "+table.kind.String(), ""))
			continue
		}
		for _, c := range table.items {
			problems = append(problems, add(data, c, key)...)
		}
	}
	if name := x.n.child("metadata").child("name"); name != nil {
		entry.add("name", &node{kind: name.kind, value: name.value, at: name.at, keyAt: name.keyAt, segment: ".metadata.name"})
	}
	entry.add("data", data)
	return entry, problems
}

// metadata checks the fields of an object that is not a pod.
func (s *stream) metadata(x *object, keys []string) Problems {
	var problems Problems
	for _, c := range x.n.items {
		switch {
		case c.key == "apiVersion" || c.key == "kind" || slices.Contains(keys, c.key):
		case c.key == "status":
			problems = append(problems, s.o.dropped(c)...)
		case c.key != "metadata":
			problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, append(slices.Clone(keys), "metadata"))))
		case c.kind != kindTable:
			problems = append(problems, problemAt(c, "must be a mapping, found "+c.kind.String(), ""))
		}
	}
	for _, c := range items(x.n.child("metadata")) {
		switch {
		case objectMetaKeys[c.key]:
			problems = append(problems, s.o.dropped(c)...)
		case !slices.Contains(metadataKeys, c.key):
			problems = append(problems, problemAt(c, unknownField, didYouMean(c.key, metadataKeys)))
		}
	}
	if c := x.n.child("metadata").child("namespace"); c != nil && c.value != "default" {
		problems = append(problems, warnAt(c, `ignored: the only namespace is "default"`))
	}
	return problems
}

// addText adds a value that is text. Of other values no message has more than the kind, since they may be secret.
func addText(data, c *node) Problems {
	if c.kind != kindString {
		return Problems{problemAt(c, "must be a string, found "+c.kind.String(), "put it in quotes")}
	}
	data.add(c.key, &node{kind: kindString, value: c.value, text: c.text, at: c.at, keyAt: c.keyAt})
	return nil
}

// addDecoded adds a value in base64.
func addDecoded(data, c *node) Problems {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' {
			return -1
		}
		return r
	}, textOf(c))
	value, err := base64.StdEncoding.DecodeString(text)
	switch {
	case c.kind != kindString:
		return Problems{problemAt(c, "must be a string in base64, found "+c.kind.String(), "")}
	case err != nil:
		return Problems{problemAt(c, "must be in base64: stringData of a Secret has values in plain text", "")}
	case !utf8.Valid(value) || slices.Contains(value, 0):
		return Problems{problemAt(c, "not supported: the value is not text", "write it as a file into the configuration directory, "+
			"below secrets/NAME or configmaps/NAME")}
	}
	data.remove(c.key)
	data.add(c.key, &node{kind: kindString, value: string(value), at: c.at, keyAt: c.keyAt})
	return nil
}

// claim takes a PersistentVolumeClaim: a volume is created when a pod uses it first, with the space that its file system has.
func (s *stream) claim(x *object) {
	problems := s.metadata(x, []string{"spec"})
	if mode := x.n.child("spec").child("volumeMode"); mode != nil && mode.value == "Block" {
		s.lose(mode, "volumes are directories, not block devices", "")
	}
	for _, c := range items(x.n.child("spec")) {
		switch c.key {
		case "accessModes", "volumeName", "volumeMode", "resources", "storageClassName":
		case "selector", "dataSource", "dataSourceRef", "volumeAttributesClassName":
			s.lose(c, "a volume is created empty", "")
		default:
			problems = append(problems, problemAt(c, unknownField, ""))
		}
	}
	if size := x.n.child("spec").child("resources"); size != nil {
		problems = append(problems, warnAt(size, ignored+"a volume has the space of its file system"))
	}
	if class := x.n.child("spec").child("storageClassName"); class != nil {
		problems = append(problems, warnAt(class, ignored+"there are no storage classes"))
	}
	s.problems = append(s.problems, problems...)
}

// addValues adds the config maps and secrets of the file that a pod uses.
func (s *stream) addValues(p *source) {
	root := p.root
	use := func(list string, all map[string]*node, name string) {
		if name == "" || all[name] == nil {
			return
		}
		entries := root.child(list)
		if entries == nil {
			entries = &node{kind: kindArray, at: root.at, keyAt: root.at}
			root.add(list, entries)
			entries.segment = ""
		}
		if entries.kind != kindArray ||
			slices.ContainsFunc(entries.items, func(e *node) bool { return textOf(e.child("name")) == name }) {
			return
		}
		if second := s.ambiguous[all[name]]; second != "" {
			delete(s.ambiguous, all[name]) // one error is enough
			kind := "ConfigMap "
			if list == "secrets" {
				kind = "Secret "
			}
			s.fail(root, kind+quote(name)+" is defined in "+s.foreign[all[name]]+" and in "+second+", with different values")
			return
		}
		if !s.holds(all[name].count(), all[name]) {
			return
		}
		p.changed = p.changed || s.foreign[all[name]] != ""
		entry := all[name].clone()
		entries.appendItem(entry)
		entry.segment = ""
	}
	for _, list := range []string{"initContainers", "containers", "volumes", "imagePullSecrets"} {
		for config, name := range references(root.child(list)) {
			if config {
				use("configMaps", s.configMaps, textOf(name))
			} else {
				use("secrets", s.secrets, textOf(name))
			}
		}
	}
}

// references yields the values of the names to which a part of a pod refers, and whether they are those of config maps; otherwise of
// secrets. A name may be nil.
func references(n *node) func(yield func(config bool, name *node) bool) {
	return func(yield func(bool, *node) bool) {
		var walk func(n *node) bool
		walk = func(n *node) bool {
			for _, c := range items(n) {
				name := c.child("name")
				again := true
				switch {
				case c.key == "configMapRef" || c.key == "configMapKeyRef" || c.key == "configMap":
					again = yield(true, name)
				case c.key == "secretRef" || c.key == "secretKeyRef" || n.key == "imagePullSecrets":
					again = yield(false, name)
				case c.key == "secret":
					again = yield(false, name) && yield(false, c.child("secretName"))
				}
				if !again || !walk(c) {
					return false
				}
			}
			return true
		}
		walk(n)
	}
}

// clone returns a copy that shares nothing with the node, without its parent.
func (n *node) clone() *node {
	c := *n
	c.parent, c.items, c.meant = nil, nil, nil
	if n.index != nil {
		c.index = make(map[string]*node, len(n.index))
	}
	for _, item := range n.items {
		copied := item.clone()
		copied.parent = &c
		c.items = append(c.items, copied)
		if n.kind == kindTable {
			c.index[copied.key] = copied
		}
	}
	return &c
}
