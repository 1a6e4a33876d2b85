package spec

import "fmt"

// trapped finds keys that TOML put into the last table of the file although
// they may have been meant for the pod: a key has the same name in both, and
// only one of them is written. An inline table is no trap, nor is YAML. For the
// keys that are common in containers it is a warning, and only in the table
// that is the last one indeed: elsewhere nobody appended them.
func trapped(root *node) Problems {
	var problems Problems
	last := lastHeader(root)
	tell := func(table *node, owner, key string, warning bool) {
		c := table.child(key)
		if c == nil || c.failed || c.header || !table.header || root.child(key) != nil || warning && table != last {
			return
		}
		p := problemAt(c, fmt.Sprintf("belongs to %s; the pod's is not set: write it at the top of the file", owner), "")
		p.Warning = warning
		problems = append(problems, p)
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(root.child(list)) {
			owner := c.path()
			if name := c.child("name"); name != nil && name.kind == kindString {
				owner = fmt.Sprintf("%s %s", owner, quote(fmt.Sprint(name.value)))
			}
			tell(c, owner, "restartPolicy", false)
			for _, key := range []string{"securityContext", "resources", "restartBackoff"} {
				tell(c, owner, key, true)
			}
			for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				if t := c.child(probe); t != nil {
					tell(t, "the "+probe+" of "+owner, "terminationGracePeriodSeconds", false)
				}
			}
		}
	}
	return problems
}

// lastHeader is the table that the last line of a TOML file is in.
func lastHeader(root *node) *node {
	last := root
	for _, c := range root.items {
		if l := lastHeader(c); l.header && (!last.header || l.keyAt.line > last.keyAt.line) {
			last = l
		}
	}
	return last
}
