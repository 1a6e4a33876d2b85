package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/admission"
)

func levelFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "policy", "", "Pod Security Standards `level` for the pod files, at least as strict as the host's: "+
		strings.Join(admission.Levels(), ", ")+" (default the host's podSecurity)")
}

// level returns the level of the flag --policy, "" if it is not set. It must not be less strict than that of the host.
func (a *app) level(cmd *cobra.Command, value string) (admission.Level, error) {
	if value == "" {
		return "", nil
	}
	c, err := a.config(cmd)
	if err != nil {
		return "", err
	}
	level, host := admission.Level(value), c.Policy.PodSecurity
	switch {
	case !slices.Contains(admission.Levels(), value):
		return "", usage(cmd, "--policy %q: must be one of %s", value, strings.Join(admission.Levels(), ", "))
	case !level.Includes(admission.Level(host)):
		return "", usage(cmd, "--policy %s: must be at least as strict as podSecurity of this host, %s", value, host)
	}
	return level, nil
}

// checkLevel prints what a pod requests beyond the level baseline, and its violations of the level. It reports whether there are none of
// the latter. Host ports are no news: they are how a single host publishes a port.
func checkLevel(w io.Writer, path string, pod *spec.Pod, level admission.Level) bool {
	requests := slices.DeleteFunc(admission.BeyondBaseline(pod), func(r string) bool { return strings.HasPrefix(r, "hostPort ") })
	if len(requests) > 0 {
		fmt.Fprintf(w, "%s: exceeds the baseline Pod Security Standard: %s\n", plain.Text(path), plain.Text(strings.Join(requests, ", ")))
	}
	violations := admission.CheckLevel(pod, level)
	for i := range violations {
		fmt.Fprintf(w, "%s: %s: %s\n", plain.Text(path), plain.Text(violations[i].Field), plain.Text(violations[i].Message))
	}
	return len(violations) == 0
}
