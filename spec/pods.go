package spec

import "fmt"

// podsKey is the key of a TOML file with several pods: [[pods]], each with all fields of a pod file.
const podsKey = "pods"

// readPods returns the pods of a file with [[pods]].
func readPods(root *node, data []byte) ([]source, Problems) {
	pods := root.child(podsKey)
	var problems Problems
	fail := func(n *node, at position, message, hint string) {
		problems = append(problems, Problem{Line: at.line, Column: at.column, Path: n.path(), Message: message, Hint: hint})
	}
	for _, c := range root.items {
		if c != pods {
			fail(c, c.keyAt, "is not in a table [[pods]]: a file with pods has no other fields",
				"move it below the header [[pods]] of a pod")
		}
	}
	switch {
	case pods.kind == kindTable && pods.header:
		fail(pods, pods.keyAt, "must be an array of tables, found table", "write [[pods]] instead of [pods]")
		return nil, problems
	case pods.kind != kindArray:
		fail(pods, pods.at, "must be an array of tables, found "+pods.describe(), "begin each pod with a header [[pods]]")
		return nil, problems
	case len(pods.items) == 0:
		fail(pods, pods.at, "must not be empty", "begin each pod with a header [[pods]]")
	case len(pods.items) > maxParts:
		fail(pods, pods.items[maxParts].at, fmt.Sprintf("file defines more than %d pods", maxParts), "")
	}
	var sources []source
	for _, pod := range pods.items {
		if pod.kind != kindTable {
			fail(pod, pod.at, "must be a table, found "+pod.describe(), "")
			continue
		}
		switch name := pod.child("name"); {
		case name == nil:
			fail(pod, pod.at, "name: Required value", "")
		case name.kind == kindString && len(dnsSubdomain(str(name))) == 0:
			pod.segment = "." + printableKey(str(name))
		}
		sources = append(sources, source{root: pod})
	}
	if len(problems) == 0 {
		written := root.clone()
		attach(written, data, commentsOf(data))
		list := written.child(podsKey)
		for i, pod := range list.items {
			sources[i].written = pod
		}
		list.items[0].above = append(list.above, list.items[0].above...)
		last := sources[len(sources)-1].written
		last.after = written.after
	}
	return sources, problems
}
