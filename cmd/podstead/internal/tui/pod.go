package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/internal/timeline"
	"github.com/podstead/podstead/internal/view"
)

const (
	// refreshInterval is the longest time between two requests for the details on the screen.
	refreshInterval = 15 * time.Second
	// maxEvents bounds the events on a page, and maxCauses those of a chain.
	maxEvents, maxCauses = 200, 10
	// laneWidth bounds the names of containers beside a timeline.
	laneWidth = 24
)

// ranges are the times that a timeline can show; 0: all of it.
var ranges = []struct {
	last time.Duration
	text string
}{
	{0, "since the first event"},
	{24 * time.Hour, "last 24 hours"},
	{6 * time.Hour, "last 6 hours"},
	{time.Hour, "last hour"},
	{10 * time.Minute, "last 10 minutes"},
}

// podView shows why a pod is in its state, its timeline, its last exits and its events.
type podView struct {
	common

	name    string
	detail  *live.Detail // nil: not known yet
	err     error        // of the last request
	loading bool
	asked   time.Time
	seen    string // what the list has of the pod

	zoom       int // index of ranges
	lines      []line
	timelineAt int // the line of the timeline
}

// details is the answer to a request of a view.
type details struct {
	view   *podView
	detail *live.Detail
	err    error
}

func newPod(m *model, name string) *podView {
	keys := "l logs  t timeline  r restart  s shell  esc back  ? help"
	return &podView{common: m.common(command("why %s", name), keys), name: name, seen: m.seenOf(name)}
}

// row returns the line of the pod; nil: it is gone. Several can have its name.
func (v *podView) row() *live.Row {
	for i := range v.rows {
		if r := &v.rows[i]; v.detail != nil && r.Name == v.name && r.UID == v.detail.UID {
			return r
		}
	}
	return v.model.row(v.name)
}

// seenOf is what the list has of a pod. If it changes, something has happened.
func (m *model) seenOf(name string) string {
	r := m.row(name)
	if r == nil {
		return ""
	}
	return fmt.Sprint(r.UID, r.Status, r.Ready, r.Restarts, r.Need)
}

func (v *podView) load() tea.Cmd {
	v.loading, v.asked = true, v.now
	return do(func() tea.Msg {
		d, err := v.Source.Pod(v.ctx, v.name, time.Local)
		return details{v, d, err}
	})
}

func (v *podView) title() string {
	if v.detail == nil {
		return v.name
	}
	return v.name + ": " + string(v.detail.State)
}

func (v *podView) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case details:
		if msg.view != v {
			return nil
		}
		v.loading, v.err = false, msg.err
		if msg.err == nil {
			v.detail = msg.detail
		}
	case live.List:
		if seen := v.seenOf(v.name); seen != v.seen && !v.loading {
			v.seen = seen
			return v.load()
		}
	case tick:
		if v.now.Sub(v.asked) >= refreshInterval && !v.loading {
			return v.load()
		}
	}
	return nil
}

func (v *podView) key(key string) (tea.Cmd, bool) {
	switch key {
	case "enter":
		return nil, true
	case "l":
		l := newLogs(v.model, []string{v.name})
		return v.push(l, l.follow()), true
	case "t":
		v.layout()
		v.scroll.top = v.timelineAt
	case "+", "=":
		v.zoom = min(v.zoom+1, len(ranges)-1)
	case "-":
		v.zoom = max(v.zoom-1, 0)
	default:
		if v.scroll.key(key, len(v.lines), v.height()) {
			return nil, true
		}
		return v.podKey(key, v.name, v.row())
	}
	return nil, true
}

func (v *podView) draw(height int) (out []string) {
	v.layout()
	from, to := v.scroll.visible(len(v.lines), height)
	v.scroll.following = false
	for _, l := range v.lines[from:to] {
		out = append(out, v.screen.render(l, v.scroll.left, false))
	}
	return out
}

// layout computes the lines.
func (v *podView) layout() {
	v.lines = nil
	s, d := &v.screen, v.detail
	if v.err != nil {
		v.add(s.wrap(v.err.Error(), red, " ")...)
	}
	if d == nil {
		if v.err == nil {
			v.add(text(" Waiting for the daemon."))
		}
		return
	}
	picture, _ := view.Explained(&d.Explanation, d.Events, ranges[v.zoom].last, v.now.In(time.Local)) // it renders the texts as of now
	v.why()
	v.head("Timeline")
	v.timelineAt = len(v.lines) - 1
	v.timeline(&picture)
	v.head("Last exit")
	for i := range d.Exits {
		v.exit(&d.Exits[i])
	}
	if len(d.Exits) == 0 {
		v.add(note(" No container has exited."))
	}
	v.head("Events")
	for i := len(d.Events) - 1; i >= max(len(d.Events)-maxEvents, 0); i-- {
		if e := &d.Events[i]; contains(v.wanted, e.Reason+" "+e.Container+" "+e.Message) {
			v.add(v.event(e, " "))
		}
	}
	if len(d.Events) > maxEvents {
		v.add(note(fmt.Sprintf(" %d older events are not shown.", len(d.Events)-maxEvents)))
	}
}

func (v *podView) add(lines ...line) { v.lines = append(v.lines, lines...) }

func (v *podView) head(title string) {
	if title == "Events" && v.wanted != "" {
		title += fmt.Sprintf(", filter %q", v.wanted)
	}
	v.add(nil, line{{" " + title, bold}})
}

// why explains the state: the cause, what else is not as requested, the containers, and the events that led to it.
func (v *podView) why() {
	s, d := &v.screen, v.detail
	look := bold
	if !d.Healthy {
		look = red
	}
	v.add(s.wrap(d.Text, look, " ")...)
	if d.Cause != nil && d.Cause.Hint != "" {
		v.add(s.wrap(d.Cause.Hint, yellow, " ")...)
	}
	v.add(nil)
	for i := range d.Containers {
		c := &d.Containers[i]
		look := yellow
		if c.Ready || c.State == api.ContainerCompleted {
			look = green
		}
		v.add(s.wrap(c.Name+": "+c.Text, look, " ")...)
		for _, r := range c.RestartCauses[:min(len(c.RestartCauses), 5)] {
			v.add(s.wrap(fmt.Sprintf("restarts: %d, the last at %s: %s", r.Count, v.clock(r.Last), r.Cause.Text), normal, "   ")...)
		}
		for _, p := range c.Probes {
			v.add(s.wrap(fmt.Sprintf("%s probe: %s at %s", p.Probe, p.Outcome, v.clock(p.Time)), normal, "   ")...)
		}
	}
	if chain := v.chain(); len(chain) > 0 {
		v.head("Chain of causes")
		for i, e := range chain {
			indent := " "
			if i > 0 {
				indent = " because "
			}
			v.add(v.event(e, indent))
		}
	}
}

// chain returns the newest warning of a pod that is not healthy with the events that led to it, without steps that explain nothing.
func (v *podView) chain() (out []*api.Event) {
	events := v.detail.Events
	at := -1
	for i := range events {
		if e := &events[i]; e.Level == api.EventWarning && (e.Cause != 0 || at < 0 || events[at].Cause == 0) {
			at = i
		}
	}
	for !v.detail.Healthy && at >= 0 && len(out) < maxCauses {
		e := &events[at]
		if len(out) == 0 || e.Kind != api.EventImagePresent && e.Kind != api.EventContainerCreated {
			out = append(out, e)
		}
		before, found := slices.BinarySearchFunc(events, e.Cause, func(e api.Event, seq uint64) int { return cmp.Compare(e.Seq, seq) })
		if !found || before >= at {
			break
		}
		at = before
	}
	return out
}

// event is a line for an event.
func (v *podView) event(e *api.Event, indent string) line {
	look := normal
	if e.Level == api.EventWarning {
		look = yellow
	}
	out := line{{indent, dim}, {v.clock(e.Time) + " ", dim}}
	if e.Container != "" {
		out = append(out, span{e.Container + " ", cyan})
	}
	return append(out, span{strings.ReplaceAll(e.Message, "\n", " "), look})
}

// clock is a time of day, with the date if it is not today.
func (v *podView) clock(t time.Time) string {
	t = t.In(time.Local)
	if t.Format(time.DateOnly) == v.now.In(time.Local).Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// exit describes the last exit of a container.
func (v *podView) exit(x *live.Exit) {
	s := &v.screen
	parts := []string{fmt.Sprintf("%s: exit code %d", x.Container, x.Exit.Code), x.Exit.Signal, string(x.Exit.Reason), x.Exit.Meaning}
	if !x.Exit.FinishedAt.IsZero() {
		parts = append(parts, "at "+v.clock(x.Exit.FinishedAt))
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	v.add(s.wrap(strings.Join(parts, ", "), normal, " ")...)
	e := &x.Evidence
	if e.MemoryLimit > 0 {
		v.add(s.wrap(fmt.Sprintf("memory limit %s, peak %s", view.Size(e.MemoryLimit), view.Size(e.MemoryPeak)), normal, "   ")...)
	}
	if e.TerminationMessage != "" {
		v.add(s.wrap("message: "+e.TerminationMessage, normal, "   ")...)
	}
	if e.ProbeOutput != "" {
		v.add(s.wrap("output of the "+e.Probe+" probe: "+e.ProbeOutput, normal, "   ")...)
	}
	for _, l := range e.Log {
		v.add(line{{"   | ", dim}, {text: l}})
	}
	if x.Error != "" {
		v.add(s.wrap("the log cannot be read: "+x.Error, yellow, "   ")...)
	}
	if x.Command != "" {
		v.add(line{{"   $ ", dim}, {x.Command, cyan}})
	}
}

// classLooks are the colours of what a timeline shows.
var classLooks = map[string]style{
	string(timeline.Running): blue, string(timeline.Succeeded): green, string(timeline.Failed): red, string(timeline.OOMKilled): magenta,
	string(timeline.BackOff): yellow, string(timeline.Pull): cyan, string(timeline.ProbeFailed): red, string(timeline.Trouble): red,
	string(timeline.PodTrouble): red, string(timeline.Update): cyan, string(timeline.Boot): magenta,
}

// timeline draws the picture.
func (v *podView) timeline(picture *timeline.Picture) {
	s, names := &v.screen, 0
	for i := range picture.Lanes {
		names = max(names, s.columns(clean(picture.Lanes[i].Name)))
	}
	names = min(names, laneWidth)
	rows, meanings := timeline.Characters(*picture, max(s.width-names-3, 10))
	v.add(note(" " + ranges[v.zoom].text + " (+ -)"))
	for i, r := range rows {
		l := line{{" " + s.fit(r.Name, names) + " ", normal}}
		for _, c := range r.Characters {
			look := classLooks[c.Class]
			if i == len(rows)-1 {
				look = dim
			}
			if n := len(l) - 1; n > 0 && l[n].style == look {
				l[n].text += string(c.Rune)
			} else {
				l = append(l, span{string(c.Rune), look})
			}
		}
		v.add(l)
	}
	var legend []string
	for _, m := range meanings {
		legend = append(legend, string(m.Rune)+" "+m.Text)
	}
	v.add(s.wrap(strings.Join(legend, "   "), dim, " ")...)
}
