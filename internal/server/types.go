package server

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// problems converts the problems of a file.
func problems(list spec.Problems) []api.Problem {
	out := make([]api.Problem, len(list))
	for i, p := range list {
		out[i] = api.Problem(p)
	}
	return out
}
