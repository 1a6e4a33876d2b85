package explain

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// Redacted stands for the value of a secret.
	Redacted = "[redacted]"
	// shortestSecret is the length of the shortest value that is redacted, in bytes. A shorter one, such as a digit, would be
	// found in texts that have nothing to do with it.
	shortestSecret = 4
)

// Redact replaces the values of secrets in everything that an explanation has of containers, hooks, probes and the engine. It
// must be called before [Explanation.Render]. Of a value of several lines each line is replaced, since a log has lines; so is
// the beginning of a value at the end of a text, which may have been cut off.
func (e *Explanation) Redact(values []string) {
	r := newRedactor(values)
	if len(r.parts) > 0 {
		e.visit(func(s *string, _ author) { *s = r.text(*s) })
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

// redactor replaces the parts of secrets.
type redactor struct {
	parts []string // the longest first
}

func newRedactor(values []string) redactor {
	var r redactor
	for _, value := range values {
		quoted := strconv.Quote(value)
		parts := append(strings.Split(value, "\n"), value, quoted[1:len(quoted)-1])
		for _, part := range parts {
			if part = strings.TrimSpace(part); len(part) >= shortestSecret {
				r.parts = append(r.parts, part)
			}
		}
	}
	slices.SortFunc(r.parts, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	r.parts = slices.Compact(r.parts)
	return r
}

func (r *redactor) text(s string) string {
	for _, part := range r.parts {
		s = strings.ReplaceAll(s, part, Redacted)
	}
	body := strings.TrimSuffix(s, "…") // which marks a text that was cut off
	for _, part := range r.parts {
		for n := len(part) - 1; n >= shortestSecret; n-- {
			if strings.HasSuffix(body, part[:n]) {
				return body[:len(body)-n] + Redacted
			}
		}
	}
	return s
}
