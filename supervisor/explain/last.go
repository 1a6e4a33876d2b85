package explain

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/supervisor/event"
)

// restartedAt is when a container of the pod was last started again; zero if none was, as far as is known.
func (t *teller) restartedAt(s *Story) (at time.Time) {
	for i := range s.Containers {
		if c := &s.Containers[i]; c.Restarts > 0 {
			if start := startOf(c); start.After(at) {
				at = start
			}
		}
	}
	return at
}

// lastRestart is the clause about the container that was restarted last, and how often any was.
func (t *teller) lastRestart(s *Story) (clause string, restarts int) {
	var newest *Container
	for i := range s.Containers {
		c := &s.Containers[i]
		restarts += c.Restarts
		if c.Restarts > 0 && (newest == nil || startOf(c).After(startOf(newest))) {
			newest = c
		}
	}
	if newest == nil {
		return "", restarts
	}
	clause = fmt.Sprintf("%s was restarted %s", newest.Name, often(newest.Restarts))
	if n := len(newest.Told); n > 0 && newest.Told[n-1].Why != "" {
		clause += ", the last time because " + newest.Told[n-1].Why
	}
	return clause, restarts
}

func often(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// startOf is when a container was started again, as far as is told.
func startOf(c *Container) (at time.Time) {
	for _, r := range c.Told {
		for _, s := range r.Steps {
			if s.Kind == string(event.ContainerStarted) {
				at = s.Time
			}
		}
	}
	return at
}
