package spec

import "strings"

// notSupportedYet lists the fields of the Pod API that are refused, because one host has no meaning for them. Each value is an error, never
// ignored, except one after "=", which has no effect. Fields of containers include those of init containers.
var notSupportedYet = []string{
	"runtimeClassName",
}

// unsupportedWhy is why the fields of notSupportedYet are refused.
var unsupportedWhy = refusal{"all pods run with one OCI runtime", "set engine.runtime in podstead.toml"}

// unsupported reports every field of notSupportedYet that a file sets.
func unsupported(root *node) Problems { return unsupportedBelow(root, "") }

// unsupportedBelow does the same for a part of a pod file; at is its path in notSupportedYet.
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
				problems = append(problems, problemAt(n, "not supported: "+unsupportedWhy.why, unsupportedWhy.hint))
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
