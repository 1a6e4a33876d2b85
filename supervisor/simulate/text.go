package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

const (
	// maxPeriod is the maximum number of lines of a container that are recognized as a repetition.
	maxPeriod = 8
	// shownPeriods is how often a repetition is printed before the others are summarized.
	shownPeriods = 2
)

// line is a line of the timeline.
type line struct {
	at     time.Duration
	number int // of the entry
	entry  *Entry
	text   string
	same   string // what equal lines have in common
}

// Lines returns the rows of [Result.Rows] as text for people.
func (r *Result) Lines() []string {
	rows := r.Rows()
	widest, width := 0, 0
	for _, row := range rows {
		widest, width = max(widest, len(row[0])), max(width, len(row[1]))
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = fmt.Sprintf("%*s  %-*s  %s", widest, row[0], width, row[1], row[2])
	}
	return out
}

// Rows returns the timeline for people, a row for each entry: the time since the start, the pod with its container, and the text. What
// repeats is summarized, and what is of no interest beside the other events is left out.
func (r *Result) Rows() [][]string {
	type object struct{ pod, container string }
	byObject, objects := map[object]*[]line{}, []*[]line{}
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if isNoise(e) {
			continue
		}
		of := byObject[object{e.Pod, e.Container}]
		if of == nil {
			of = &[]line{}
			byObject[object{e.Pod, e.Container}], objects = of, append(objects, of)
		}
		*of = append(*of, lineOf(e, i))
	}
	var lines []line
	for _, of := range objects {
		lines = append(lines, summarize(*of)...)
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.number, b.number) })
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = []string{offset(l.at), objectOf(l.entry), l.text}
	}
	return rows
}

// offset is a time since the start as text, such as 1h30m.
func offset(d time.Duration) string {
	text := d.Round(time.Millisecond).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// isNoise reports whether an event is of no interest beside the others.
func isNoise(e *Entry) bool {
	switch e.Kind { //nolint:exhaustive // the others are printed
	case api.EventContainerCreated, api.EventImagePresent, api.EventImagePulling, api.EventImageError, api.EventPodAccepted:
		return true
	case api.EventImagePulled:
		return e.Fields["duration"] == "0s"
	}
	return false
}

// objectOf returns the pod of an event, with its container if it is about one.
func objectOf(e *Entry) string {
	object := cmp.Or(e.Pod, "<host>")
	if e.Container != "" {
		object += "/" + e.Container
	}
	return object
}

func lineOf(e *Entry, number int) line {
	l := line{at: e.At, number: number, entry: e, text: e.Message}
	switch e.Kind { //nolint:exhaustive // the others have the text of the event
	case api.EventContainerBackOff:
		l.text = "Back-off " + e.Fields["delay"] + " before the next restart"
	case api.EventContainerFailed:
		l.text = "Container exited with code " + e.Fields["code"] + " (" + e.Fields["reason"] + ")"
	}
	l.same = l.text
	if e.Restart > 0 {
		l.text = fmt.Sprintf("%s, restart %d", l.text, e.Restart)
	}
	if e.Warning {
		l.text = "warning: " + l.text
	}
	return l
}

// summarize replaces repetitions of lines by a line.
func summarize(lines []line) []line {
	var out []line
	for i := 0; i < len(lines); {
		period, times := repetition(lines[i:])
		if times <= shownPeriods+1 {
			out = append(out, lines[i])
			i++
			continue
		}
		shown, end := i+shownPeriods*period, i+times*period
		out = append(out, lines[i:shown]...)
		first, last := lines[shown], lines[end-1]
		gap := first.at - lines[i+(shownPeriods-1)*period].at
		text := fmt.Sprintf("... the same %d times until %s, every %s", times-shownPeriods, offset(last.at), offset(gap))
		out = append(out, line{at: first.at, number: first.number, entry: first.entry, text: text})
		i = end
	}
	return out
}

// repetition returns the number of lines that repeat in equal intervals from the first one, and how often they occur. The number is the
// one that covers the most lines.
func repetition(lines []line) (period, times int) {
	period, times = 1, 1
	for p := 1; p <= maxPeriod && p < len(lines); p++ {
		n, gap := p, lines[p].at-lines[0].at
		for n < len(lines) && lines[n].same == lines[n-p].same && lines[n].at-lines[n-p].at == gap {
			n++
		}
		if t := n / p; t > 1 && t*p > period*times {
			period, times = p, t
		}
	}
	return period, times
}

// Summary returns what became of each pod, as text for people.
func (r *Result) Summary() []string {
	var lines []string
	for i := range r.Pods {
		p := &r.Pods[i]
		parts := []string{string(p.Status.Phase)}
		switch {
		case len(p.Ready) == 0:
			parts = append(parts, "never ready")
		case p.Ready[0].From > 0:
			parts = append(parts, "ready after "+offset(p.Ready[0].From))
		default:
			parts = append(parts, "ready at once")
		}
		restarts := 0
		for _, times := range p.Restarts {
			restarts += len(times)
		}
		parts = append(parts, plural(restarts, "restart"))
		if out := p.LongestOutage(); out > 0 {
			parts = append(parts, "longest outage "+offset(out))
		}
		lines = append(lines, fmt.Sprintf("%s after %s: %s", p.Name, offset(r.For), strings.Join(parts, ", ")))
	}
	return lines
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// LongestOutage returns the longest time for which the pod was not ready at a stretch after it was ready first and was ready
// again; 0: there was no such time.
func (p *PodResult) LongestOutage() time.Duration {
	longest := time.Duration(0)
	for i := 1; i < len(p.Ready); i++ {
		longest = max(longest, p.Ready[i].From-p.Ready[i-1].To)
	}
	return longest
}
