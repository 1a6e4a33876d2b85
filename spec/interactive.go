package spec

import "slices"

// Interactive changes a container of a definition for a client that attaches to
// it when it starts, and ends with it.
type Interactive struct {
	// Container is the name of a container in containers.
	Container string
	// TTY gives the container a terminal. It has standard input in any case.
	TTY bool
}

// set changes the values of the file before they are decoded, so that the hash,
// the defaults and the checks are those of the changed definition, whatever the
// format of the file. A container that the file does not have is left to the
// caller.
//
// The input of a pipe ends with its client. That of a terminal does not. The
// container does not restart, so that its exit is the end of the session.
func (i *Interactive) set(root *node) {
	for _, c := range items(root.child("containers")) {
		if name := c.child("name"); c.kind != kindTable || name == nil || name.value != i.Container {
			continue
		}
		c.replace("stdin", kindBool, true)
		c.replace("stdinOnce", kindBool, !i.TTY)
		c.replace("tty", kindBool, i.TTY)
		c.replace("restartPolicy", kindString, string(RestartNever))
		c.remove("restartPolicyRules")
	}
	if root.child("restartPolicy") == nil {
		root.replace("restartPolicy", kindString, string(RestartNever))
	}
}

// replace sets a field to a value that is not written in the file. A problem of
// it has the position of the table.
func (n *node) replace(key string, k kind, value any) {
	n.remove(key)
	n.add(key, &node{kind: k, value: value, at: n.keyAt, keyAt: n.keyAt})
}

func (n *node) remove(key string) {
	c := n.child(key)
	if c == nil {
		return
	}
	delete(n.index, key)
	n.items = slices.DeleteFunc(n.items, func(item *node) bool { return item == c })
}
