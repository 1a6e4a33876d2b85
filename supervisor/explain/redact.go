package explain

import "github.com/podstead/podstead/internal/redact"

// Redacted stands for the value of a secret.
const Redacted = redact.Mark

// Redact replaces the values of secrets in everything that an explanation has of containers, hooks, probes and the engine, see package
// redact. It must be called before [Explanation.Render].
func (e *Explanation) Redact(r *redact.Redactor) {
	if !r.Empty() {
		e.visit(func(s *string, _ author) { *s = r.Text(*s) })
	}
}

// Withhold replaces all that the containers, hooks and probes of a pod have written. It is for a pod whose secrets cannot be read
// now. Messages of the engine stay: the runtime has removed secrets from them.
func (e *Explanation) Withhold() {
	const text = "[withheld: the secrets of the pod cannot be read]"
	e.visit(func(s *string, by author) {
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
func (e *Explanation) visit(f func(s *string, by author)) {
	seen := map[*Cause]bool{} // the pod, a container and a run may share one
	var cause func(c *Cause)
	cause = func(c *Cause) {
		if c == nil || seen[c] {
			return
		}
		seen[c] = true
		by := byEngine
		if c.Kind == PostStartFailed {
			by = byContainer
		}
		f(&c.Message, by)
		f(&c.Output, byContainer)
		cause(c.Earlier)
	}
	entries := func(list []Entry) {
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
