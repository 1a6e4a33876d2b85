package view

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
)

// Event is an event in one line, for a person.
func Event(e *api.Event) string {
	object := e.Pod
	if e.Container != "" {
		object += "/" + e.Container
	}
	line := e.Time.Local().Format("15:04:05")
	if object != "" {
		line += " " + object
	}
	if e.Level == event.Warning {
		line += " warning:"
	}
	return Plain(line + " " + e.Message)
}

// Plain replaces what a terminal could take for a command.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// palette are the colours of containers, of which none is red.
var palette = []int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94}

// Human shows a run to a person: the containers' lines on Out, each with its container before it, the rest on Err. It is safe
// for concurrent use.
type Human struct {
	Out, Err io.Writer
	Colour   bool

	mu       sync.Mutex
	prefixes map[string]string
}

// Pods learns how wide the prefixes are and gives each container its colour.
func (h *Human) Pods(pods []api.Pod) {
	var keys, names []string
	width := 0
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			name := c.Name
			if len(pods) > 1 {
				name = p.Metadata.Name + "/" + c.Name
			}
			keys, names = append(keys, p.Metadata.Name+"/"+c.Name), append(names, name)
			width = max(width, len(name))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.prefixes = map[string]string{}
	for i, key := range keys {
		prefix := fmt.Sprintf("%-*s | ", width, names[i])
		if h.Colour {
			prefix = fmt.Sprintf("\x1b[%dm%-*s |\x1b[0m ", palette[i%len(palette)], width, names[i])
		}
		h.prefixes[key] = prefix
	}
}

// Line shows a line of a container as it is.
func (h *Human) Line(pod string, l api.Line) {
	text := l.Line
	if l.Raw != nil {
		text = string(l.Raw)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	prefix, known := h.prefixes[pod+"/"+l.Container]
	if !known { // it was added to the pod
		prefix = l.Container + " | "
	}
	_, _ = io.WriteString(h.Out, prefix+text+"\n")
}

// Event shows an event. That a container was made is no news to a person who is told at once what became of it, nor is the short word
// for what was told at length.
func (h *Human) Event(e api.Event) {
	if e.Kind != event.ContainerCreated && e.Kind != event.ImageError {
		h.say(Event(&e))
	}
}

// Ended shows nothing: the events have said it.
func (h *Human) Ended(api.Pod) {}

// Note shows a word of the command itself.
func (h *Human) Note(message string) { h.say("podstead: " + message) }

func (h *Human) say(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = fmt.Fprintln(h.Err, line)
}

// JSON shows a run to a program: on Out one object a line, of the type "output", "event" or "pod", and on Err the words of the
// command itself. It is safe for concurrent use.
type JSON struct {
	Out, Err io.Writer

	mu sync.Mutex
}

func (j *JSON) print(v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	enc := json.NewEncoder(j.Out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

type typeOf struct {
	Type string `json:"type"`
}

// Pods shows nothing: each pod is shown when it has ended.
func (j *JSON) Pods([]api.Pod) {}

// Line shows a line of a container.
func (j *JSON) Line(pod string, l api.Line) {
	j.print(struct {
		typeOf
		Pod string `json:"pod"`
		api.Line
	}{typeOf{"output"}, pod, l})
}

// Event shows an event; its own type is its level.
func (j *JSON) Event(e api.Event) {
	j.print(struct {
		Type  string      `json:"type"`
		Level event.Level `json:"level"`
		api.Event
	}{"event", e.Level, e})
}

// Ended shows a pod as it was in the end.
func (j *JSON) Ended(p api.Pod) {
	j.print(struct {
		typeOf
		Object api.Pod `json:"object"`
	}{typeOf{"pod"}, p})
}

// Note shows a word of the command itself.
func (j *JSON) Note(message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = fmt.Fprintln(j.Err, "podstead: "+message)
}
