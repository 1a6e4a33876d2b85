package view

import (
	"fmt"
	"strings"

	"github.com/podstead/podstead/api"
)

// Applied returns the line that reports what applying a pod file has done.
func Applied(a *api.Applied) string { return fmt.Sprintf("pod/%s %s", a.Pod, a.Outcome) }

// Planned returns the lines that report what applying a pod file would do: one for the pod, and one for each field.
func Planned(a *api.Applied) []string {
	if a.Outcome == api.PodUnchanged {
		return []string{Applied(a)}
	}
	lines := []string{fmt.Sprintf("pod/%s would be %s", a.Pod, a.Outcome)}
	if len(a.Changes) > 0 {
		lines[0] += ":"
	}
	for _, c := range a.Changes {
		if c.Diff == "" {
			lines = append(lines, fmt.Sprintf("  %v", c))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s (%s):", c.Path, c.Consequence()))
		for line := range strings.SplitSeq(c.Diff, "\n") {
			lines = append(lines, "    "+line)
		}
	}
	return lines
}
