// Package timeline draws what happened to pods as SVG and HTML: containers as lanes, their runs as bars, probes as ticks, requests, boots
// and updates as vertical lines. It knows nothing of pods: [Picture] is plain data, which package view fills from events. Equal pictures
// give equal documents, without scripts and without references to other files. All texts are escaped.
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Picture is what happened to a pod in a time.
type Picture struct {
	Title   string // such as the name of the pod
	Summary string // a line for people; it may be empty
	// From and To are the ends of the axis. What is outside is not drawn. A picture without a length has one second.
	From, To time.Time
	// Elapsed makes the axis show the time since From. Otherwise it shows the time of day in the location of From.
	Elapsed bool
	Ready   []Span // when the pod was ready; nil: it is not known
	Off     []Span // when the host was off
	Lanes   []Lane // of the containers
	Marks   []Mark
}

// Zoom returns the part of a picture between two times. What reaches into it keeps both of its times.
func (p Picture) Zoom(from, to time.Time) Picture {
	p.From, p.To = from.In(p.From.Location()), to.In(p.From.Location())
	outside := func(s Span) bool { return s.To.Before(from) || s.From.After(to) }
	p.Marks = slices.DeleteFunc(slices.Clone(p.Marks), func(m Mark) bool { return outside(Span{m.At, m.At}) })
	p.Lanes = slices.Clone(p.Lanes)
	for i := range p.Lanes {
		l := &p.Lanes[i]
		l.Bars = slices.DeleteFunc(slices.Clone(l.Bars), func(b Bar) bool { return outside(b.Span) })
		l.Gaps = slices.DeleteFunc(slices.Clone(l.Gaps), func(g Gap) bool { return outside(g.Span) })
		l.Ticks = slices.DeleteFunc(slices.Clone(l.Ticks), func(t Tick) bool { return outside(Span{t.At, t.At}) })
	}
	return p
}

// Span is a time.
type Span struct{ From, To time.Time }

// Lane is what happened to a container.
type Lane struct {
	Name  string
	Bars  []Bar // they do not overlap
	Gaps  []Gap
	Ticks []Tick
}

// Bar is a run of a container.
type Bar struct {
	Span

	Stop    time.Time // when its stop began; zero: it was not stopped
	Outcome Outcome
	Label   string // a short text in the bar
	Text    string // for people, without the time
}

// Gap is a time in which a container does not run.
type Gap struct {
	Span

	Kind GapKind
	Text string
}

// Tick is something that happened to a container.
type Tick struct {
	At   time.Time
	Kind TickKind
	Text string
}

// Mark is something that happened to the pod or to the host.
type Mark struct {
	At    time.Time
	Kind  MarkKind
	Label string // a short text beside the line
	Text  string
}

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Running   Outcome = "running" // at the end of the picture
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	OOMKilled Outcome = "oom"
	Stopped   Outcome = "stopped" // by request
	Lost      Outcome = "lost"    // with the host, or how is not known
)

// GapKind is why a container does not run.
type GapKind string

// The kinds of gaps.
const (
	BackOff GapKind = "backoff"
	Pull    GapKind = "pull"
)

// TickKind is the kind of a [Tick].
type TickKind string

// The kinds of ticks.
const (
	ProbeFailed TickKind = "probe"
	Trouble     TickKind = "error"   // such as a failed start or pull
	Request     TickKind = "request" // to restart the container
)

// MarkKind is the kind of a [Mark].
type MarkKind string

// The kinds of marks.
const (
	Boot       MarkKind = "boot"
	Host       MarkKind = "host"    // another event of the host
	Update     MarkKind = "update"  // of the definition of the pod
	Requested  MarkKind = "asked"   // a stop, a start or a restart
	Daemon     MarkKind = "daemon"  // it was restarted
	PodTrouble MarkKind = "trouble" // such as an eviction
	Phase      MarkKind = "phase"   // a terminal phase of the pod
)

// kind is a kind of what is drawn.
type kind struct {
	class  string
	legend string
	noun   string // for one of them, in descriptions; empty: they are not counted
	letter string // beside a line; empty: it is not a line
}

// kinds are in the order of the legend.
var kinds = []kind{
	{string(Running), "running", "running", ""},
	{string(Succeeded), "succeeded", "succeeded", ""},
	{string(Failed), "failed", "failed", ""},
	{string(OOMKilled), "OOM-killed", "OOM-killed", ""},
	{string(Stopped), "stopped by request", "stopped", ""},
	{string(Lost), "lost, or exit unknown", "lost", ""},
	{stopping, "being stopped", "", ""},
	{string(BackOff), "back-off", "", ""},
	{string(Pull), "pulling the image", "", ""},
	{string(ProbeFailed), "probe failed", "probe failure", ""},
	{string(Trouble), "start or pull failed", "start or pull failure", ""},
	{string(Request), "restart requested", "restart request", ""},
	{ready, "pod ready", "", ""},
	{off, "host off", "", ""},
	{string(Boot), "boot", "boot", "B"},
	{string(Host), "host", "host event", "H"},
	{string(Update), "update", "update", "U"},
	{string(Requested), "request", "request", "R"},
	{string(Daemon), "daemon restarted", "daemon restart", "D"},
	{string(PodTrouble), "problem of the pod", "problem", "!"},
	{string(Phase), "pod completed or stopped", "terminal phase", "P"},
}

func kindOf(class string) *kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.class == class })
	return &kinds[i]
}

// The classes of what has no kind.
const (
	stopping = "stopping"
	ready    = "ready"
	off      = "off"
)

// outcomes are the outcomes in the order of tables.
var outcomes = []Outcome{Running, Succeeded, Failed, OOMKilled, Stopped, Lost}

// count is the number of runs with an outcome.
func (l *Lane) count(o Outcome) int {
	n := 0
	for i := range l.Bars {
		if l.Bars[i].Outcome == o {
			n++
		}
	}
	return n
}

// description describes the picture to people who do not see it.
func (p *Picture) description() string {
	parts := []string{fmt.Sprintf("%s, from %s to %s.", p.Title, p.clock(p.From), p.clock(p.To))}
	if p.Summary != "" {
		parts = append(parts, p.Summary+".")
	}
	counts := map[string]int{}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		runs := []string{plural(len(l.Bars), "run")}
		for _, o := range outcomes {
			if n := l.count(o); n > 0 {
				runs = append(runs, fmt.Sprintf("%d %s", n, kindOf(string(o)).noun))
			}
		}
		parts = append(parts, "Container "+l.Name+": "+strings.Join(runs, ", ")+".")
		for _, t := range l.Ticks {
			counts[string(t.Kind)]++
		}
	}
	for _, m := range p.Marks {
		counts[string(m.Kind)]++
	}
	var others []string
	for _, k := range kinds {
		if n := counts[k.class]; n > 0 {
			others = append(others, plural(n, k.noun))
		}
	}
	if len(others) > 0 {
		parts = append(parts, strings.Join(others, ", ")+".")
	}
	return strings.Join(parts, " ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
