package spec

// notSupportedYet lists the fields of pods in the Pod API that are refused, because one host has no meaning for them. Each value is an
// error, never ignored.
var notSupportedYet = []string{
	"runtimeClassName",
}

// unsupportedWhy is why the fields of notSupportedYet are refused.
var unsupportedWhy = refusal{"all pods run with one OCI runtime", "set engine.runtime in podstead.toml"}

// unsupported reports every field of notSupportedYet that a file sets.
func unsupported(root *node) (problems Problems) {
	for _, field := range notSupportedYet {
		if n := root.child(field); n != nil && !n.ignored && !n.failed {
			problems = append(problems, problemAt(n, "not supported: "+unsupportedWhy.why, unsupportedWhy.hint))
		}
	}
	return problems
}
