package spec

import (
	"fmt"
	"slices"
)

// misplaced warns about a grace period that was probably meant for the pod: in
// TOML, a line at the end of a file belongs to the last [header]. A probe can
// have terminationGracePeriodSeconds too, but pods set it more often. The warning
// is limited to the last line of a file whose last header is that of a probe.
//
// Fields in the block of a container, such as resources, are set on purpose.
// Other fields of the pod are unknown fields in the tables of a container.
// Inline tables and YAML do not have this problem.
func misplaced(root *node) Problems {
	const key = "terminationGracePeriodSeconds"
	last := lastHeader(root)
	if !last.header || root.child(key) != nil || !slices.Contains([]string{"livenessProbe", "startupProbe"}, last.key) {
		return nil
	}
	c := last.child(key)
	if c == nil || c.failed || c != last.items[len(last.items)-1] {
		return nil
	}
	owner := last.parent.path()
	if name := last.parent.child("name"); name != nil && name.kind == kindString {
		owner = fmt.Sprintf("%s %s", owner, quote(fmt.Sprint(name.value)))
	}
	hint := "set it for the pod at the top of the file"
	if root.parent != nil {
		hint = "set it for the pod below its header [[pods]]"
	}
	p := problemAt(c, fmt.Sprintf("applies to the %s of %s, and is not set for the pod", last.key, owner), hint)
	p.Warning = true
	return Problems{p}
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
