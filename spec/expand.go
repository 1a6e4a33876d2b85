package spec

import "iter"

// expand rewrites the table forms of env and volumeMounts into the Kubernetes
// arrays, in the order of the file:
//
//	env.NAME = "value"                   env[].name, env[].value
//	env.NAME.secretKeyRef = {...}        env[].name, env[].valueFrom.secretKeyRef
//	volumeMounts.VOLUME = "/path"        volumeMounts[].name, volumeMounts[].mountPath
//	volumeMounts.VOLUME = {...}          volumeMounts[].name and the table's keys
func expand(root *node) Problems {
	var problems Problems
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			problems = append(problems, expandContainer(c)...)
		}
	}
	return problems
}

func expandContainer(c *node) Problems {
	var problems Problems
	if env := c.child("env"); env != nil && env.kind == kindTable {
		for e, value := range toArray(env) {
			expandVariable(e, value)
		}
	}
	if mounts := c.child("volumeMounts"); mounts != nil && mounts.kind == kindTable {
		for e, value := range toArray(mounts) {
			problems = append(problems, expandMount(e, value)...)
		}
	}
	return problems
}

// toArray turns a table into an array. It yields the new element and the value
// of each key.
func toArray(n *node) iter.Seq2[*node, *node] {
	values := n.items
	n.kind, n.items, n.index = kindArray, nil, nil
	return func(yield func(e, value *node) bool) {
		for _, value := range values {
			e := newTable(n)
			e.at, e.keyAt = value.at, value.keyAt
			n.appendItem(e)
			e.segment = value.segment
			e.put("name", &node{kind: kindString, value: value.key, at: value.keyAt, keyAt: value.keyAt})
			if !yield(e, value) {
				return
			}
		}
	}
}

// put adds a field that is not written in the file. Its path is that of n.
func (n *node) put(key string, c *node) {
	n.add(key, c)
	c.segment = ""
}

func expandVariable(e, value *node) {
	if value.kind == kindTable {
		e.put("valueFrom", value)
		return
	}
	value.label = value.key
	e.put("value", value)
}

func expandMount(e, value *node) Problems {
	if value.kind != kindTable {
		value.label = value.key
		e.put("mountPath", value)
		return nil
	}
	e.at, e.header = value.at, value.header
	var problems Problems
	for _, c := range value.items {
		if c.key == "name" {
			problems = append(problems, problemAt(c, "Forbidden: the key of the table is the name of the volume", "delete this line"))
			continue
		}
		e.add(c.key, c)
	}
	return problems
}
