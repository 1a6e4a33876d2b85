package ui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/timeline"
	"github.com/podstead/podstead/internal/view"
)

const (
	// evidenceLines is the number of the last log lines of a run that exited.
	evidenceLines = 20
	// maxEvents bounds the newest events of a pod that a page gets. The daemon keeps some hundred of each pod.
	maxEvents = 2000
)

// detail is a pod with why it is in its state, and its events.
type detail struct {
	api.Explanation

	Exits  []exit      `json:"exits"`
	Events []api.Event `json:"events"` // oldest first
}

// exit is the last exit of a container.
type exit struct {
	Container string             `json:"container"`
	Exit      *api.ContainerExit `json:"exit"`
	Evidence  api.Evidence       `json:"evidence"`
	Error     string             `json:"error,omitempty"`   // why the log of the run is missing
	Command   string             `json:"command,omitempty"` // that shows the log of the run
}

// pod answers with a pod: ?name=NAME.
func (s *Server) pod(w http.ResponseWriter, r *http.Request) {
	e, events, err := s.explain(r.Context(), r.FormValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	e.Text = view.Headline(e, localTime(r)) // it renders all texts
	for i := range events {
		events[i].Fields = nil // they are in the message
	}
	d := detail{Explanation: *e, Exits: []exit{}, Events: events}
	for i := range e.Containers {
		if c := &e.Containers[i]; c.LastExit != nil {
			d.Exits = append(d.Exits, s.exit(r.Context(), e, c))
		}
	}
	answer(w, d)
}

// explain returns why a pod is in its state, and its newest events, without the values of its secrets.
func (s *Server) explain(ctx context.Context, name string) (*api.Explanation, []api.Event, error) {
	if err := mayExist(name); err != nil {
		return nil, nil, err
	}
	e, err := s.client.Why(ctx, name, evidenceLines)
	if err != nil {
		return nil, nil, err
	}
	var kept newest
	for ev, err := range s.client.Events(ctx, &client.EventQuery{Pod: e.Pod, UID: e.UID, Redact: true}) {
		if err != nil {
			return nil, nil, err
		}
		if ev.Kind != api.EventsMissed {
			ev.Message = plain.Text(ev.Message)
			kept.add(ev)
		}
	}
	return &e, kept.events(), nil
}

// newest keeps the newest [maxEvents] events.
type newest struct{ list []api.Event }

func (n *newest) add(e api.Event) {
	if len(n.list) >= 2*maxEvents {
		n.list = append(n.list[:0], n.events()...)
	}
	n.list = append(n.list, e)
}

func (n *newest) events() []api.Event {
	return append([]api.Event{}, n.list[max(len(n.list)-maxEvents, 0):]...)
}

// newestExited are the states of a container whose newest run is the one that exited. In other states, it is the run before.
var newestExited = []api.ExplainedContainerState{
	api.ContainerRestarting, api.ContainerCompleted, api.ContainerFailed, api.ContainerStopped,
}

// exit returns the last exit of a container. An explanation has the log only of a run that failed.
func (s *Server) exit(ctx context.Context, e *api.Explanation, c *api.ExplainedContainer) exit {
	x := exit{Container: c.Name, Exit: c.LastExit}
	runs := api.PreviousRun
	if slices.Contains(newestExited, c.State) {
		runs = api.NewestRun
	}
	if validName(e.Pod) && validName(c.Name) { // the command is for a shell
		x.Command = "podstead logs " + e.Pod + " -c " + c.Name
		if runs == api.PreviousRun {
			x.Command += " --previous"
		}
		x.Command += " --tail " + strconv.Itoa(evidenceLines)
	}
	if c.Evidence != nil {
		x.Evidence = *c.Evidence
	}
	for i, l := range x.Evidence.Log {
		x.Evidence.Log[i] = cut(l)
	}
	if len(x.Evidence.Log) > 0 || e.State == api.PodStateDeleted {
		return x
	}
	q := client.OutputQuery{UID: e.UID, Containers: []string{c.Name}, Runs: runs, Tail: new(evidenceLines)}
	for l, err := range s.client.Output(ctx, e.Pod, q) {
		if err != nil {
			x.Error = err.Error()
			return x
		}
		x.Evidence.Log = append(x.Evidence.Log, lineText(&l))
	}
	return x
}

// mayExist returns an error for texts that are no part of a path. Other texts, such as the name of a file that was refused, are requested.
func mayExist(name string) error {
	if name == "" || name == "." || name == ".." {
		return &api.Error{Status: http.StatusNotFound, Reason: api.ReasonNotFound, Message: fmt.Sprintf("no such pod %q", name)}
	}
	return nil
}

// validName reports whether a pod or a container can have a name. Such a name has no characters that are special to a shell.
func validName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// timeline answers with the timeline of a pod: ?name=NAME&last=DURATION, or the part from=TIME&to=TIME of it, in milliseconds since 1970.
func (s *Server) timeline(w http.ResponseWriter, r *http.Request) {
	var last time.Duration
	if text := r.FormValue("last"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil || last <= 0 {
			refuse(w, http.StatusBadRequest, "last: must be a duration greater than 0, such as 1h")
			return
		}
	}
	from, fromErr := milliseconds(r.FormValue("from"))
	to, toErr := milliseconds(r.FormValue("to"))
	isPart := r.FormValue("from") != "" || r.FormValue("to") != ""
	if isPart && (fromErr != nil || toErr != nil || !to.After(from)) {
		refuse(w, http.StatusBadRequest, "from and to: must be two times in milliseconds since 1970, in their order")
		return
	}
	e, events, err := s.explain(r.Context(), r.FormValue("name"))
	if err != nil {
		fail(w, err)
		return
	}
	picture, _ := view.Explained(e, events, last, localTime(r))
	if isPart {
		picture = picture.Zoom(from, to)
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(timeline.Inline(picture)) // the client is gone if that fails
}

// milliseconds reads a time in milliseconds since 1970, up to the year 9999.
func milliseconds(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || n > 253402300799999) {
		err = strconv.ErrRange
	}
	return time.UnixMilli(n), err
}

// style answers with the style sheet of timelines.
func style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css")
	_, _ = w.Write([]byte(timeline.Style)) // the client is gone if that fails
}
