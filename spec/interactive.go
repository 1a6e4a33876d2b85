package spec

import (
	"slices"
	"strings"
)

// Interactive changes a container of a definition for a client that attaches to
// it when it starts, and ends with it.
type Interactive struct {
	// Container is the name of a container in containers.
	Container string
	// TTY gives the container a terminal. It has standard input in any case.
	TTY bool
	// Name makes the definition that of a pod with this name that runs Command in the container, and nothing else: without the other
	// containers, and without what is for a service, such as ports and probes. Empty: the pod runs what it defines.
	Name    string
	Command []string
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
		if !i.is(c) {
			continue
		}
		c.replace("stdin", kindBool, true)
		c.replace("stdinOnce", kindBool, !i.TTY)
		c.replace("tty", kindBool, i.TTY)
		c.replace("restartPolicy", kindString, string(RestartNever))
		c.remove("restartPolicyRules")
		c.remove("maxRestarts")
	}
	if root.child("restartPolicy") == nil || i.Name != "" {
		root.replace("restartPolicy", kindString, string(RestartNever))
	}
	if i.Name != "" {
		i.oneOff(root)
	}
}

func (i *Interactive) is(c *node) bool {
	name := c.child("name")
	return c.kind == kindTable && name != nil && name.value == i.Container
}

// serviceFields are the fields of a pod, and containerServiceFields those of a container, that a single command does not have.
var (
	serviceFields = []string{
		"activeDeadlineSeconds", "backoffLimit", "hostname", "hostnameOverride", "initContainers", "job", "onUnhealthy",
		"readinessGates", "restartBackoff", "schedule", "setHostnameAsFQDN", "subdomain", "systemd", "unhealthyAfterSeconds", "update",
		"waitFor",
	}
	containerServiceFields = []string{
		"args", "lifecycle", "livenessProbe", "maxRestarts", "ports", "readinessProbe", "resizePolicy", "restartBackoff",
		"startupProbe",
	}
)

// oneOff makes the definition one that runs the command.
func (i *Interactive) oneOff(root *node) {
	root.replace("name", kindString, i.Name)
	for _, key := range serviceFields {
		root.remove(key)
	}
	containers := root.child("containers")
	if containers == nil || containers.kind != kindArray {
		return
	}
	containers.items = slices.DeleteFunc(containers.items, func(c *node) bool { return !i.is(c) })
	for _, c := range containers.items {
		for _, key := range containerServiceFields {
			c.remove(key)
		}
		c.replace("command", kindArray, nil)
		command := c.child("command")
		for _, word := range i.Command {
			word = strings.ReplaceAll(word, "$", "$$") // a person typed it: [Expand] gives back what it was
			command.appendItem(&node{kind: kindString, value: word, at: c.keyAt, keyAt: c.keyAt})
		}
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
