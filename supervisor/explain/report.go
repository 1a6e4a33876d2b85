package explain

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/order"
)

// Report is an explanation as text for a person, after [Render]: the root cause, the containers that are worth
// showing with the evidence of their last failure, and one timeline of the pod. Its times are in the time zone of now. Texts of
// containers are in it as they are, control characters included.
func Report(e *api.Explanation, now time.Time) string {
	b := &strings.Builder{}
	fmt.Fprintln(b, e.Text)
	if e.Cause != nil && e.Cause.Hint != "" {
		fmt.Fprintln(b, "hint: "+oneLine(e.Cause.Hint))
	}
	for i := range e.Containers {
		if c := &e.Containers[i]; Notable(c) {
			reportContainer(b, e, c, now)
		}
	}
	if e.State != api.PodStateRejected { // whose only event has the text above
		reportTimeline(b, e, now)
	}
	return b.String()
}

func reportContainer(b *strings.Builder, e *api.Explanation, c *api.ExplainedContainer, now time.Time) {
	fmt.Fprintf(b, "\n%s: %s", capital(named(c.Role, c.Name)), c.Text)
	if c.Restarts > 0 {
		fmt.Fprintf(b, " Restarts: %d.", c.Restarts)
	}
	fmt.Fprintln(b)
	if showsCause(e, c) {
		label := "Cause"
		if settled(c) {
			label = "Last restart"
		}
		fmt.Fprintf(b, "  %s: %s\n", label, capital((&writer{e: e, now: now}).clause(c.Cause, "it")))
	}
	for _, line := range evidence(c, now) {
		fmt.Fprintln(b, "  "+line)
	}
	if n := len(c.Runs) - 1; n > 0 {
		fmt.Fprintln(b, "  Earlier restarts:")
		for _, r := range c.Runs[:n] {
			if r.Cause != nil {
				fmt.Fprintf(b, "    %s  %s\n", clock(r.Cause.Time, now), capital((&writer{e: e, now: now}).clause(r.Cause, "it")))
			}
		}
	}
}

// showsCause reports whether the cause of a container has a line of its own: it is neither the root cause, which the first line has, nor
// the last exit, which the evidence has.
func showsCause(e *api.Explanation, c *api.ExplainedContainer) bool {
	if c.Cause == nil || hidden[c.Cause.Kind] || c.State == api.ContainerDeleted {
		return false
	}
	if c.State == api.ContainerCompleted && c.Cause.Kind == api.CauseExited {
		return false
	}
	if c.Evidence != nil && (c.Cause.Kind == api.CauseExited || c.Cause.Kind == api.CauseOOMKilled) {
		return false
	}
	root := e.Cause
	return root == nil || root.Kind != c.Cause.Kind || root.Container != c.Cause.Container && root.ByContainer != c.Cause.ByContainer ||
		!root.Time.Equal(c.Cause.Time)
}

// hidden are the kinds of causes that the state of a container, or of the pod, has already.
var hidden = map[api.CauseKind]bool{
	api.CauseStopRequested: true, api.CauseDeadlineExceeded: true, api.CauseBackoffLimit: true, api.CauseEvicted: true,
	api.CauseJobEnded: true, api.CauseCreating: true,
	api.CauseInitRunning: true, api.CauseEngineUnavailable: true, api.CauseNotSupervised: true, api.CauseContainersCompleted: true,
	api.CauseConditionUnmet: true,
}

// evidence is what is known of the last failure, in lines.
func evidence(c *api.ExplainedContainer, now time.Time) []string {
	e, x := c.Evidence, c.LastExit
	if e == nil || x == nil {
		return nil
	}
	exit := fmt.Sprintf("Last exit: code %d", x.Code)
	if x.Meaning != "" {
		exit += " (" + x.Meaning + ")"
	}
	if x.Reason != "" && x.Reason != api.ReasonError {
		exit += ", " + string(x.Reason)
	}
	if took := after(x); took != "" {
		exit += "," + took
	}
	lines := []string{exit + ", at " + clock(x.FinishedAt, now)}
	switch {
	case e.MemoryLimit > 0 && e.MemoryPeak > 0:
		lines = append(lines, fmt.Sprintf("Memory: limit %s, peak %s", quantity(e.MemoryLimit), quantity(e.MemoryPeak)))
	case e.MemoryLimit > 0:
		lines = append(lines, "Memory: limit "+quantity(e.MemoryLimit))
	case e.MemoryPeak > 0:
		lines = append(lines, "Memory: no container limit, peak "+quantity(e.MemoryPeak))
	}
	if text := oneLine(e.ProbeOutput); text != "" {
		lines = append(lines, capital(e.Probe)+" probe: "+text)
	}
	if text := oneLine(e.TerminationMessage); text != "" {
		lines = append(lines, "Termination message: "+text)
	}
	if len(e.Log) > 0 {
		lines = append(lines, "Last log lines:")
		for _, line := range e.Log {
			lines = append(lines, "  | "+line)
		}
	}
	return lines
}

// reportTimeline merges the events of the pod with those of the newest runs of the containers.
func reportTimeline(b *strings.Builder, e *api.Explanation, now time.Time) {
	type line struct {
		api.TimelineEntry
		container string
	}
	var lines []line
	seen := map[uint64]bool{}
	add := func(container string, entries []api.TimelineEntry) {
		for _, entry := range entries {
			if !seen[entry.Seq] {
				seen[entry.Seq] = true
				lines = append(lines, line{entry, cmp.Or(entry.Container, container)})
			}
		}
	}
	add("", e.Timeline)
	for i := range e.Containers {
		if c := &e.Containers[i]; len(c.Runs) > 0 {
			add(c.Name, c.Runs[len(c.Runs)-1].Timeline)
		}
	}
	if len(lines) == 0 {
		return
	}
	order.Sort(lines, func(a, b line) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return int(a.Seq) - int(b.Seq)
	})
	fmt.Fprintln(b, "\nTimeline:")
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	for _, l := range lines {
		text := oneLine(l.Message)
		if l.Count > 1 {
			text += fmt.Sprintf(" (%d times)", l.Count)
		}
		if len(e.Containers) < 2 {
			fmt.Fprintf(table, "  %s\t%s\n", clock(l.Time, now), text)
			continue
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", clock(l.Time, now), l.container, text)
	}
	_ = table.Flush()
}
