package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

// EventTime is how the time of an event is printed.
type EventTime int

// The forms of times.
const (
	// EventClock is the local time of day, with the date unless that is today, and with the year unless that is this year.
	EventClock EventTime = iota
	EventAge             // before now
	EventStamp           // RFC 3339, as in logs
)

// text returns a time as of now.
func (f EventTime) text(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch {
	case f == EventAge:
		return Age(now.Sub(t))
	case f == EventStamp:
		return t.Format(time.RFC3339)
	case t.Year() != now.Year():
		return t.Format(time.DateTime)
	case t.YearDay() != now.YearDay():
		return t.Format(time.Stamp)
	}
	return t.Format(time.TimeOnly)
}

// Event returns an event as a line of text, as of now.
func Event(e *api.Event, form EventTime, now time.Time) string {
	line := form.text(e.Time, now)
	if object := eventObject(e); object != "" {
		line += " " + object
	}
	if e.Level == api.EventWarning {
		line += " warning:"
	}
	return plain.Text(line + " " + e.Message)
}

// eventObject is the pod of an event, or the pod and the container.
func eventObject(e *api.Event) string {
	if e.Container != "" {
		return e.Pod + "/" + e.Container
	}
	return e.Pod
}

// wideEvent is the format of a row with all columns of an event. The widths are fixed, because further events may follow.
const wideEvent = "%-20s  %-7s  %-24s  %-24s  %s"

// WideEventHeader is the header of rows of [WideEvent].
var WideEventHeader = fmt.Sprintf(wideEvent, "TIME", "TYPE", "REASON", "OBJECT", "MESSAGE")

// WideEvent returns an event as a row with all columns, as of now.
func WideEvent(e *api.Event, form EventTime, now time.Time) string {
	object := eventObject(e)
	if object == "" {
		object = "<host>"
	}
	return plain.Text(fmt.Sprintf(wideEvent, form.text(e.Time, now), e.Level, e.Reason, object, e.Message))
}

// palette contains the ANSI colours of containers. Red is reserved for errors.
var palette = []int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}

// Prefix is the prefix of a line of output.
type Prefix int

// The prefixes. By default it is the name of the container, after the name of the pod if there are several pods.
const (
	DefaultPrefix Prefix = iota
	PodPrefix            // the names of the pod and the container
	NoPrefix
)

// Text prints a run as text: the output of containers to Out, each line prefixed with its container, and everything else to Err. Without
// prefixes, the output is that of the container: a last line without a newline has none. It is safe for concurrent use.
type Text struct {
	Out, Err io.Writer
	Colour   bool
	Quiet    bool // no output of containers
	Escape   bool // escapes hidden characters in the output of containers
	Prefix   Prefix
	Times    string // format of the time before each line; empty: none
	// Width returns the number of columns of the terminal that Err is; nil: it is not a terminal, and shows no progress.
	Width func() int

	mu       sync.Mutex
	prefixes map[string]string
	fetching map[string][]progressLine // what is pulled and imported, by UID of the pod
	meters   map[string]*meter         // of these, by what they are
	drawn    string                    // the progress in the last line of the terminal; empty: none
	open     string                    // the output whose last line has no newline; empty: none
}

// Pods sets the prefix and the colour of each container.
func (t *Text) Pods(pods []api.Pod) {
	var keys, names []string
	width := 0
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers, p.Spec.EphemeralContainers) {
			name := c.Name
			if len(pods) > 1 || t.Prefix == PodPrefix {
				name = p.Metadata.Name + "/" + c.Name
			}
			keys, names = append(keys, p.Metadata.Name+"/"+c.Name), append(names, name)
			width = max(width, len(name))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prefixes = map[string]string{}
	for i, key := range keys {
		prefix := fmt.Sprintf("%-*s | ", width, names[i])
		if t.Colour {
			prefix = fmt.Sprintf("\x1b[%dm%-*s |\x1b[0m ", palette[i%len(palette)], width, names[i])
		}
		t.prefixes[key] = prefix
	}
}

// Line prints a line of a container.
func (t *Text) Line(pod string, l api.Line) {
	if t.Quiet {
		return
	}
	text := l.Line
	if l.Raw != nil {
		text = string(l.Raw)
	}
	if t.Escape {
		text = plain.Text(strings.TrimSuffix(text, "\r"))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	prefix, ok := t.prefixes[pod+"/"+l.Container]
	switch {
	case t.Prefix == NoPrefix:
		prefix = ""
	case !ok: // an ephemeral container that was added later
		prefix = l.Container + " | "
	}
	output := fmt.Sprintf("%s/%s/%s/%d", pod, l.Container, l.Stream, l.Attempt)
	rest := t.open == output
	if t.Times != "" && !rest {
		text = l.Time.Format(t.Times) + " " + text
	}
	if t.open != "" && !rest {
		prefix = "\n" + prefix
	}
	t.open = output
	if !l.Partial || t.Prefix != NoPrefix {
		t.open = ""
		text += "\n"
	}
	t.erase()
	_, _ = io.WriteString(t.Out, prefix+text)
	t.draw()
}

// Event prints an event, except ContainerCreated and ImageError, which repeat what the next or the previous event reports.
func (t *Text) Event(e api.Event) {
	if e.Kind != api.EventContainerCreated && e.Kind != api.EventImageError {
		t.printErr(Event(&e, EventClock, time.Now()))
	}
}

// Terminated prints nothing: the events report how the pod terminated.
func (t *Text) Terminated(api.Pod) {}

// Notice prints a message of the command.
func (t *Text) Notice(message string) { t.printErr(plain.Text("podstead: " + message)) }

// Hint prints advice.
func (t *Text) Hint(message string) { t.printErr(plain.Text("hint: " + message)) }

func (t *Text) printErr(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	_, _ = fmt.Fprintln(t.Err, line)
	t.draw()
}

// ErrWriter returns a writer to Err of lines that others print, in the order of those of the printer.
func (t *Text) ErrWriter() io.Writer { return errWriter{t} }

type errWriter struct{ t *Text }

// Write implements [io.Writer].
func (w errWriter) Write(p []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.erase()
	defer w.t.draw()
	return w.t.Err.Write(p)
}

// JSON prints a run as JSON: one object per line to Out, with the type "output", "event" or "pod", and messages of the command to Err. It
// is safe for concurrent use.
type JSON struct {
	Out, Err io.Writer
	Quiet    bool // no output of containers

	mu sync.Mutex
}

func (j *JSON) print(v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) == nil {
		_, _ = j.Out.Write(plain.JSON(b.Bytes()))
	}
}

type typeOf struct {
	Type string `json:"type"`
}

// Pods prints nothing. Terminated prints each pod.
func (j *JSON) Pods([]api.Pod) {}

// Line prints a line of a container.
func (j *JSON) Line(pod string, l api.Line) {
	if j.Quiet {
		return
	}
	j.print(struct {
		typeOf
		Pod string `json:"pod"`
		api.Line
	}{typeOf{"output"}, pod, l})
}

// Event prints an event. The key "type" is taken, so the type of the event has the key "level".
func (j *JSON) Event(e api.Event) {
	j.print(struct {
		Type  string         `json:"type"`
		Level api.EventLevel `json:"level"`
		api.Event
	}{"event", e.Level, e})
}

// Terminated prints the final state of a pod.
func (j *JSON) Terminated(p api.Pod) {
	j.print(struct {
		typeOf
		Object api.Pod `json:"object"`
	}{typeOf{"pod"}, p})
}

// Notice prints a message of the command.
func (j *JSON) Notice(message string) { j.printErr(plain.Text("podstead: " + message)) }

// Hint prints advice.
func (j *JSON) Hint(message string) { j.printErr(plain.Text("hint: " + message)) }

func (j *JSON) printErr(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = fmt.Fprintln(j.Err, line)
}
