package explain

import (
	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// Redacted stands for the value of a secret.
const Redacted = plain.Redacted

// Redact replaces the values of secrets in everything that an explanation has of containers, hooks, probes and the engine, see package
// redact. It must be called before [Render].
func Redact(e *api.Explanation, r *plain.Redactor) {
	if !r.Empty() {
		visit(e, func(s *string, _ author) { *s = r.Text(*s) })
	}
}

// Withhold replaces all that the containers, hooks and probes of a pod have written. It is for a pod whose secrets cannot be read
// now. Messages of the engine stay: the runtime has removed secrets from them.
func Withhold(e *api.Explanation) {
	const text = "[withheld: the secrets of the pod cannot be read]"
	visit(e, func(s *string, by author) {
		if *s != "" && by == byContainer {
			*s = text
		}
	})
}

// author is who has written a text.
type author int

const (
	byEngine author = iota
	byContainer
)

// visit calls a function for each text that may hold what others have written.
func visit(e *api.Explanation, f func(s *string, by author)) {
	seen := map[*api.Cause]bool{} // the pod, a container and a run may share one
	var cause func(c *api.Cause)
	cause = func(c *api.Cause) {
		if c == nil || seen[c] {
			return
		}
		seen[c] = true
		by := byEngine
		if c.Kind == api.CausePostStartFailed {
			by = byContainer
		}
		f(&c.Message, by)
		f(&c.Output, byContainer)
		cause(c.Earlier)
	}
	entries := func(list []api.TimelineEntry) {
		for i := range list {
			f(&list[i].Message, byEngine)
		}
	}
	cause(e.Cause)
	entries(e.Timeline)
	for i := range e.Containers {
		c := &e.Containers[i]
		cause(c.Cause)
		for r := range c.Runs {
			cause(c.Runs[r].Cause)
			entries(c.Runs[r].Timeline)
		}
		for r := range c.RestartCauses {
			cause(c.RestartCauses[r].Cause)
		}
		if c.Evidence == nil {
			continue
		}
		f(&c.Evidence.TerminationMessage, byContainer)
		f(&c.Evidence.ProbeOutput, byContainer)
		for l := range c.Evidence.Log {
			f(&c.Evidence.Log[l], byContainer)
		}
	}
}
