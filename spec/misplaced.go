package spec

import "fmt"

// misplaced finds fields of a container or a probe that were probably meant for
// the pod: in TOML, a line at the end of a file belongs to the last [header].
// It reports fields that both tables can have, if only the inner one has it.
// Fields that are common in containers are warnings, and only in the last table
// of the file. Inline tables and YAML do not have this problem.
func misplaced(root *node) Problems {
	var problems Problems
	last := lastHeader(root)
	check := func(table *node, owner, key string, warning bool) {
		c := table.child(key)
		if c == nil || c.failed || c.header || !table.header || root.child(key) != nil || warning && table != last {
			return
		}
		p := problemAt(c, fmt.Sprintf("applies to %s, and is not set for the pod", owner), "set it for the pod at the top of the file")
		p.Warning = warning
		problems = append(problems, p)
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			owner := c.path()
			if name := c.child("name"); name != nil && name.kind == kindString {
				owner = fmt.Sprintf("%s %s", owner, quote(fmt.Sprint(name.value)))
			}
			check(c, owner, "restartPolicy", false)
			for _, key := range []string{"securityContext", "resources", "restartBackoff"} {
				check(c, owner, key, true)
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				if t := c.child(probe); t != nil {
					check(t, "the "+probe+" of "+owner, "terminationGracePeriodSeconds", false)
				}
			}
		}
	}
	return problems
}

// lastHeader returns the table of the last [header] of a TOML file.
func lastHeader(root *node) *node {
	last := root
	for _, c := range root.items {
		if l := lastHeader(c); l.header && (!last.header || l.keyAt.line > last.keyAt.line) {
			last = l
		}
	}
	return last
}
