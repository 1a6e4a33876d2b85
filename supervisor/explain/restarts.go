package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
)

// same reports whether two causes count as one. Exits with different codes are different causes, and so are requests by different clients.
func same(c, other *api.Cause) bool {
	kind := func(c *api.Cause) api.CauseKind {
		if c.Kind == api.CauseExecFormat { // an exit whose log was read
			return api.CauseExited
		}
		return c.Kind
	}
	code := func(c *api.Cause) int {
		if c.Exit == nil {
			return 0
		}
		return c.Exit.Code
	}
	if c == nil || other == nil {
		return c == other
	}
	return kind(c) == kind(other) && code(c) == code(other) && c.By == other.By && c.ByContainer == other.ByContainer
}

// severities are the ranks of kinds of causes that are worse than an exit with code 0 or a request.
var severities = map[api.CauseKind]int{
	api.CauseOOMKilled: 2,
	api.CauseExited:    1, api.CauseExecFormat: 1, api.CauseExitUnknown: 1, api.CauseKilled: 1, api.CauseLivenessFailed: 1,
	api.CauseStartupFailed: 1, api.CausePostStartFailed: 1, api.CauseStartFailed: 1,
	api.CauseCreateFailed: 1, api.CauseImageFailed: 1, api.CauseSandboxChanged: 1, api.CauseRestartAll: 1, api.CauseUncleanShutdown: 1,
}

func severity(c *api.Cause) int {
	if c.Kind == api.CauseExited && c.Exit != nil && c.Exit.Code == 0 {
		return 0
	}
	return severities[c.Kind]
}

// took is how long the run took that a cause ended, as [after] says it; empty: it ended none, or that is not known.
func took(c *api.Cause) string {
	if c == nil {
		return ""
	}
	return after(c.Exit)
}

// addRestarts adds the restarts of a period to its run: one after the cause of the run, and one after each further failure to start. If the
// container was not started at the end of the period, the last of them is still to come.
func (b *builder) addRestarts(r *run, name string, p *period) {
	if r.Cause != nil && r.Cause.Kind != api.CauseStartFailed {
		r.restarts = append(r.restarts, api.RestartCause{Cause: r.Cause, Count: 1})
	}
	for i := range p.rows {
		if e := p.rows[i].event; e.Kind == api.EventContainerStartFailed {
			r.restarts = append(r.restarts, api.RestartCause{Cause: b.causeOf(e, name, p.started), Count: p.rows[i].Count})
		}
	}
	n := len(r.restarts)
	if n == 0 {
		return
	}
	for i := range r.restarts {
		r.restarts[i].Last = r.restarts[i].Cause.Time
	}
	if r.Restarted {
		r.restarts[n-1].Last = p.rows[len(p.rows)-1].Time
	} else if r.restarts[n-1].Count--; r.restarts[n-1].Count == 0 {
		r.restarts = r.restarts[:n-1]
	}
}

// restartCauses counts the restarts of a container by cause, as far as their events are stored. The cause of the newest restart is the
// first, the others follow by their severity and age. What came before the first start of the container has led to no restart.
func restartCauses(runs []run, restarts int) []api.RestartCause {
	var list []api.RestartCause
	for _, run := range slices.Backward(runs) {
		for _, next := range slices.Backward(run.restarts) {
			next.Count = min(next.Count, restarts)
			restarts -= next.Count
			at := slices.IndexFunc(list, func(known api.RestartCause) bool { return same(known.Cause, next.Cause) })
			switch {
			case next.Count == 0:
			case at < 0:
				list = append(list, next)
			default:
				list[at].Count += next.Count
				list[at].Varies = list[at].Varies || next.Varies || took(next.Cause) != took(list[at].Cause)
			}
		}
	}
	if len(list) > 2 {
		order.Sort(list[1:], func(a, b api.RestartCause) int { return severity(b.Cause) - severity(a.Cause) })
	}
	return list
}

// lastRestart is the cause of the newest restart of any container, and whether none was restarted recently, except as expected. A container
// that was has precedence. Both are known only as far as the events are stored.
func (b *builder) lastRestart(e *api.Explanation) (cause *api.Cause, healthy bool) {
	var newest *api.ExplainedContainer
	healthy = true
	for i := range e.Containers {
		c := &e.Containers[i]
		if c.Restarts == 0 {
			continue
		}
		failing := slices.ContainsFunc(c.RestartCauses, func(r api.RestartCause) bool {
			return !expected[r.Cause.Kind] && b.now.Wall.Sub(r.Last) <= recent
		})
		if newest == nil || failing && healthy || failing != healthy && restartedAt(c).After(restartedAt(newest)) {
			newest = c
		}
		healthy = healthy && !failing
	}
	switch {
	case newest == nil:
		return nil, true
	case len(newest.RestartCauses) == 0: // the events are lost
		return &api.Cause{Kind: api.CauseRestarted, Container: newest.Name, Role: newest.Role}, healthy
	}
	return newest.RestartCauses[0].Cause, healthy
}

// restartedAt is when a container was last restarted; zero if that is not known.
func restartedAt(c *api.ExplainedContainer) time.Time {
	if len(c.RestartCauses) == 0 {
		return time.Time{}
	}
	return c.RestartCauses[0].Last
}

// maxRestartCauses is how many causes of restarts a sentence has.
const maxRestartCauses = 5

// restarted says how often the container of a cause was restarted, and why. A pending cause is that of a restart that is still to come.
func (w *writer) restarted(c *api.Cause, pending bool) string {
	because := ""
	if clause := w.clause(c, "it"); clause != "" {
		because = " because " + clause
	}
	container := containerOf(w.e, c.Container)
	if container == nil || container.Restarts == 0 {
		return sentence("is restarting" + because)
	}
	known, alike, varies := 0, true, false
	for _, r := range container.RestartCauses {
		known += r.Count
		alike = alike && same(r.Cause, c)
		varies = varies || r.Varies || took(r.Cause) != took(c)
	}
	times, all := often(container.Restarts), w.restarts(container, container.Restarts-known)
	if alike && varies {
		because = " because " + w.newestOf(c)
	}
	switch {
	case known == 0 || alike && known == container.Restarts:
		return sentence("restarted " + times + because)
	case alike && known == 1:
		return sentence("restarted " + times + ", the last time" + because)
	case alike:
		return sentence(fmt.Sprintf("restarted %s, the last %d times%s", times, known, because))
	case pending:
		if known == container.Restarts && len(container.RestartCauses) == 1 {
			all = strings.Replace(all, " because ", " before because ", 1)
			return sentence("is restarting"+because) + " " + sentence("It was restarted "+all)
		}
		return sentence("is restarting"+because) + " " + sentence("It was restarted "+times+" before: "+all)
	}
	return sentence("restarted " + times + ": " + all)
}

// newestOf is the clause of a cause of several restarts whose runs took different times. It names the time of the newest one as such.
func (w *writer) newestOf(c *api.Cause) string {
	text := w.clause(c, "it")
	if took(c) == "" {
		return text
	}
	cause, exit := *c, *c.Exit
	exit.StartedAt, cause.Exit = time.Time{}, &exit
	if without := w.clause(&cause, "it"); without != text {
		return without + " (the last time" + took(c) + ")"
	}
	return text
}

// restarts are the causes of the restarts of a container, each with its number; those of some restarts are not stored.
func (w *writer) restarts(c *api.ExplainedContainer, lost int) string {
	var parts []string
	others := 0
	for i := range c.RestartCauses {
		r := &c.RestartCauses[i]
		if i >= maxRestartCauses || r.Cause == nil {
			others += r.Count
			continue
		}
		cause := *r.Cause
		if cause.Kind == api.CauseDefinitionChanged && r.Count > 1 {
			cause.Message = "" // each change has its own
		}
		clause := w.clause(&cause, "it")
		if r.Varies {
			clause = w.newestOf(&cause)
		}
		parts = append(parts, often(r.Count)+" because "+clause)
	}
	if others > 0 {
		parts = append(parts, often(others)+" for other causes")
	}
	if lost > 0 {
		parts = append(parts, often(lost)+" for unknown causes (events not kept)")
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}
