package view

import (
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// Explanation is an explanation of a pod for a terminal, in the time zone of now. Hidden characters are escaped.
func Explanation(e *api.Explanation, now time.Time) string {
	e.Render(now)
	lines := strings.Split(e.Report(now), "\n")
	for i := range lines {
		lines[i] = plain.Text(lines[i])
	}
	return strings.Join(lines, "\n")
}
