package oci

import (
	"strings"

	"github.com/podstead/podstead/internal/expand"
	"github.com/podstead/podstead/spec"
)

// defaultPath is the search path of a container whose image sets none.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Expand is [expand.Expand].
func Expand(s string, vars map[string]string) string { return expand.Expand(s, vars) }

// Variables resolves the variables of a container in their order: a value sees those before it, by their latest value,
// and not those of the image. Of two with the same name the later one counts.
func Variables(env []spec.EnvVar) map[string]string {
	vars := make(map[string]string, len(env))
	for _, v := range env {
		vars[v.Name] = Expand(v.Value, vars)
	}
	return vars
}

// environment is the whole environment of a process: what every container has, the image's, the container's, each
// overriding those before it. A variable stays at the place of its first definition.
func environment(hostname string, image []string, env []spec.EnvVar) []string {
	all := append([]string{defaultPath, "HOSTNAME=" + hostname}, image...)
	vars := Variables(env)
	for _, v := range env {
		all = append(all, v.Name+"="+vars[v.Name])
	}
	place := make(map[string]int, len(all))
	merged := make([]string, 0, len(all))
	for _, v := range all {
		name, _, ok := strings.Cut(v, "=")
		if !ok {
			continue // an image may name a variable without a value: it sets nothing
		}
		if i, defined := place[name]; defined {
			merged[i] = v
			continue
		}
		place[name] = len(merged)
		merged = append(merged, v)
	}
	return merged
}

// arguments are the program and its arguments: the container's command replaces the image's entrypoint and drops its
// command; the container's args replace the image's command.
func arguments(c *spec.Container, entrypoint, cmd []string) []string {
	command, args := c.Command, c.Args
	vars := Variables(c.Env)
	expand := func(list []string) []string {
		out := make([]string, len(list))
		for i, s := range list {
			out[i] = Expand(s, vars)
		}
		return out
	}
	command, args = expand(command), expand(args)
	if len(command) == 0 {
		command = entrypoint
		if len(args) == 0 {
			args = cmd
		}
	}
	return append(append([]string(nil), command...), args...)
}
