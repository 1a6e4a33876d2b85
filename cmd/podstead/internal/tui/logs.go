package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/podstead/podstead/cmd/podstead/internal/live"
)

const (
	// maxLines bounds the lines that are kept, and firstLines those of each container before those that follow.
	maxLines   = 10_000
	firstLines = 200
	// maxBytes bounds the text of the lines that are kept: a line can have 4000 characters, which may be escaped.
	maxBytes = 8 << 20
	// maxLate is the delay of a line of one stream after one of another. A line that is older than its source's last one by more was
	// written after the clock was set.
	maxLate = 2 * time.Second
	// lagTime is the age of the newest line of a full batch from which the title has it. Batches arrive several times in a second.
	lagTime = 5 * time.Second
)

// logView shows the logs of pods, merged by time.
type logView struct {
	common

	names   []string
	lines   []live.Line // in the order of their times
	matches []live.Line // those that the filter selects
	applied string      // the filter of matches
	skipped int         // older lines that are not kept
	ended   bool
	lag     time.Duration // the age of the newest line of the last batch, if that was full
	lagged  time.Time     // when that was
}

// logLines are lines for a page. Without lines, all logs are complete.
type logLines struct {
	view  *logView
	lines []live.Line
}

func newLogs(m *model, names []string) *logView {
	show := ""
	if len(names) <= 3 && !slices.ContainsFunc(names, func(name string) bool { return !live.ValidName(name) }) {
		show = fmt.Sprintf("podstead logs %s --tail %d --follow", strings.Join(names, " "), firstLines)
	}
	v := &logView{common: m.common(show, "/ filter  G follow  esc back  ? help  q quit"), names: names}
	v.scroll.following = true
	return v
}

// follow receives the lines until the page is closed.
func (v *logView) follow() tea.Cmd {
	return do(func() tea.Msg {
		err := v.Source.Logs(v.ctx, v.names, firstLines, func(lines []live.Line) error {
			if len(lines) > 0 {
				v.send(logLines{v, lines})
			}
			return context.Cause(v.ctx)
		})
		if err != nil { // the page is closed
			return nil
		}
		return logLines{view: v}
	})
}

func (v *logView) title() string {
	out := "logs " + strings.Join(v.names, " ")
	if v.wanted != "" {
		out += fmt.Sprintf(", filter %q: %d of %s", v.wanted, len(v.filtered()), lineCount(len(v.lines)))
	} else {
		out += ", " + lineCount(len(v.lines))
	}
	switch {
	case v.ended:
		out += ", complete"
	case !v.scroll.following:
		out += ", not following (G)"
	case v.lag >= lagTime && v.now.Sub(v.lagged) < lagTime:
		out += ", behind by " + age(v.lag)
	}
	if v.skipped > 0 {
		out += fmt.Sprintf(", %d older ones not kept", v.skipped)
	}
	return out
}

func (v *logView) update(msg tea.Msg) tea.Cmd {
	l, is := msg.(logLines)
	if !is || l.view != v {
		return nil
	}
	if v.ended = l.lines == nil; v.ended {
		return nil
	}
	if v.lag = 0; len(l.lines) >= live.MaxBatch {
		v.lag, v.lagged = v.now.Sub(l.lines[len(l.lines)-1].Time), v.now
	}
	v.filtered() // it applies the filter
	dropped := 0
	for _, one := range l.lines {
		v.lines = insert(v.lines, one)
		if v.applied != "" && v.has(&one) {
			v.matches = insert(v.matches, one)
		}
	}
	if old := excess(v.lines); old > 0 {
		if dropped = old; v.applied != "" {
			dropped = 0
			for i := range v.lines[:old] {
				if v.has(&v.lines[i]) {
					dropped++
				}
			}
			v.matches = slices.Delete(v.matches, 0, dropped)
		}
		v.skipped += old
		v.lines = slices.Delete(v.lines, 0, old)
	}
	if !v.scroll.following { // the text on the screen stays
		v.scroll.top = max(v.scroll.top-dropped, 0)
	}
	return nil
}

// lineCount is such as "1 line" or "2 lines".
func lineCount(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

// insert adds a line in the order of times. Most lines come last.
func insert(lines []live.Line, l live.Line) []live.Line {
	at := len(lines)
	for ; at > 0 && lines[at-1].Time.After(l.Time); at-- {
		before := &lines[at-1]
		if before.Pod == l.Pod && before.Container == l.Container && before.Time.Sub(l.Time) > maxLate {
			break
		}
	}
	return slices.Insert(lines, at, l)
}

// excess is the number of the oldest lines that are not kept.
func excess(lines []live.Line) int {
	bytes := 0
	for i, l := range slices.Backward(lines) {
		if bytes += len(l.Text); bytes > maxBytes || len(lines)-i > maxLines {
			return i + 1
		}
	}
	return 0
}

// has reports whether the filter selects a line.
func (v *logView) has(l *live.Line) bool {
	return contains(v.wanted, l.Pod+" "+l.Container+" "+l.Text)
}

// filtered returns the lines that the filter selects.
func (v *logView) filtered() []live.Line {
	if v.wanted == "" {
		v.applied, v.matches = "", nil
		return v.lines
	}
	if v.wanted != v.applied {
		v.applied, v.matches = v.wanted, nil
		for i := range v.lines {
			if v.has(&v.lines[i]) {
				v.matches = append(v.matches, v.lines[i])
			}
		}
	}
	return v.matches
}

func (v *logView) key(key string) (tea.Cmd, bool) {
	return nil, v.scroll.key(key, len(v.filtered()), v.height())
}

// sourceLooks distinguish the pods, or the containers of one pod.
var sourceLooks = []style{cyan, green, magenta, yellow, blue}

func (v *logView) draw(height int) (out []string) {
	lines := v.filtered()
	if len(lines) == 0 {
		why := "No lines yet."
		if v.wanted != "" {
			why = "The filter selects no line."
		}
		return []string{v.screen.render(text(" "+why), 0, false)}
	}
	from, to := v.scroll.visible(len(lines), height)
	for i := range lines[from:to] {
		out = append(out, v.screen.render(v.line(&lines[from+i]), v.scroll.left, false))
	}
	return out
}

// line is a line with its time and its source.
func (v *logView) line(l *live.Line) line {
	if l.Stream == live.Note {
		return line{{l.Time.In(time.Local).Format(time.TimeOnly) + " " + l.Pod + ": " + l.Text, yellow}}
	}
	source, look := l.Container, sourceLooks[sum(l.Container)%len(sourceLooks)]
	if len(v.names) > 1 {
		source, look = l.Pod+"/"+l.Container, sourceLooks[max(slices.Index(v.names, l.Pod), 0)%len(sourceLooks)]
	}
	return line{{l.Time.In(time.Local).Format(time.TimeOnly) + " ", dim}, {source + " ", look}, {text: l.Text}}
}

// sum is a number of a name.
func sum(name string) (n int) {
	for _, c := range []byte(name) {
		n += int(c)
	}
	return n
}
