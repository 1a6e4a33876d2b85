package spec

import "strings"

// notSupportedYet lists the fields whose behaviour is not built yet, as
// field=value, where the value is one that asks for nothing and is let through.
// Container fields stand for those of init containers too. The list shrinks
// until it is empty; nothing on it is read and ignored.
var notSupportedYet = []string{
	"imagePullSecrets=[]",
	"priority=0",
	"runtimeClassName",
	"waitFor=[]",

	"containers[].stdin=false",
	"containers[].stdinOnce=false",
	"containers[].tty=false",
}

var unsupportedHints = map[string]string{
	"containers[].stdin":     "there is no attach",
	"containers[].stdinOnce": "there is no attach",
	"containers[].tty":       "there is no attach",
}

// unsupported refuses every field of the list that a file sets.
func unsupported(root *node) Problems { return unsupportedBelow(root, "") }

// unsupportedBelow is unsupported of the part of a pod file that stands at a path of the list.
func unsupportedBelow(root *node, at string) Problems {
	inert := make(map[string]string, len(notSupportedYet))
	for _, line := range notSupportedYet {
		field, value, _ := strings.Cut(line, "=")
		inert[field] = value
	}
	var problems Problems
	var walk func(n *node, path string)
	walk = func(n *node, path string) {
		if value, listed := inert[path]; listed && !n.failed {
			var b strings.Builder
			canonical(&b, n)
			if b.String() != value {
				problems = append(problems, problemAt(n, "not supported yet", unsupportedHints[path]))
			}
			return
		}
		for _, c := range n.items {
			switch {
			case c.ignored:
			case n.kind == kindArray:
				walk(c, path+"[]")
			case path == "" && c.key == "initContainers":
				walk(c, "containers")
			case path == "":
				walk(c, c.key)
			default:
				walk(c, path+"."+c.key)
			}
		}
	}
	walk(root, at)
	return problems
}
