package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// maxPaths is how many changed fields of a generation are listed in a table.
const maxPaths = 2

// Generations returns the rows of the table of generations, with its header. The one that runs has an asterisk (kubectl config
// get-contexts).
func Generations(r *api.Rollout, now time.Time) [][]string {
	rows := [][]string{{"CURRENT", "GENERATION", "AGE", "OUTCOME", "CHANGES", "BY"}}
	for i := range r.Generations {
		g := &r.Generations[i]
		current := ""
		if g.Generation == r.Running {
			current = "*"
		}
		rows = append(rows, []string{
			current, strconv.Itoa(g.Generation), Age(now.Sub(g.Time)), string(g.Outcome), changedPaths(g.Changes), cmp.Or(g.By, "<none>"),
		})
	}
	return rows
}

// changedPaths lists the fields of changes.
func changedPaths(changes []api.Change) string {
	var paths []string
	for _, c := range changes {
		if !slices.Contains(paths, c.Path) { // a field can have a change for each of several containers
			paths = append(paths, c.Path)
		}
	}
	if more := len(paths) - maxPaths; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:maxPaths], ", "), more)
	}
	return cmp.Or(strings.Join(paths, ", "), "<none>")
}

// Generation returns the lines that describe a generation.
func Generation(pod string, g *api.Generation) []string {
	lines := []string{
		fmt.Sprintf("pod/%s with generation #%d", pod, g.Generation),
		"Time:     " + g.Time.Local().Format(time.RFC3339),
		"By:       " + cmp.Or(g.By, "<none>"),
		"Digest:   sha256:" + g.Digest,
		"Outcome:  " + string(g.Outcome),
	}
	if g.Message != "" {
		lines = append(lines, "Message:  "+g.Message)
	}
	if len(g.Changes) == 0 {
		return append(lines, "Changes:  <none>")
	}
	lines = append(lines, "Changes:")
	for _, c := range g.Changes {
		lines = append(lines, fmt.Sprintf("  %v", c))
	}
	return lines
}
