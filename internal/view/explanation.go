package view

import (
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/supervisor/explain"
)

// Explanation is an explanation of a pod for a terminal, in the time zone of now. Hidden characters are escaped.
func Explanation(e *api.Explanation, now time.Time) string {
	explain.Render(e, now)
	lines := strings.Split(explain.Report(e, now), "\n")
	for i := range lines {
		lines[i] = plain.Text(lines[i])
	}
	return strings.Join(lines, "\n")
}

// Headline is the first line of an explanation, with times in the time zone of now. Hidden characters are escaped.
func Headline(e *api.Explanation, now time.Time) string {
	explain.Render(e, now)
	return plain.Text(e.Text)
}
