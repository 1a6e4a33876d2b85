package live

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
	"github.com/podstead/podstead/internal/view"
)

const (
	// evidenceLines is the number of the last log lines of a run that exited.
	evidenceLines = 20
	// maxEvents bounds the newest events of a pod that a page gets. The daemon keeps some hundred of each pod.
	maxEvents = 2000
)

// Detail is a pod with why it is in its state, and its events.
type Detail struct {
	api.Explanation

	Exits  []Exit      `json:"exits"`
	Events []api.Event `json:"events"` // oldest first
}

// Exit is the last exit of a container.
type Exit struct {
	Container string             `json:"container"`
	Exit      *api.ContainerExit `json:"exit"`
	Evidence  api.Evidence       `json:"evidence"`
	Error     string             `json:"error,omitempty"`   // why the log of the run is missing
	Command   string             `json:"command,omitempty"` // that shows the log of the run
}

// Pod returns a pod with why it is in its state. Texts have the time zone.
func (s *Source) Pod(ctx context.Context, name string, zone *time.Location) (*Detail, error) {
	e, events, err := s.Explain(ctx, name)
	if err != nil {
		return nil, err
	}
	e.Text = view.Headline(e, time.Now().In(zone)) // it renders all texts
	d := &Detail{Explanation: *e, Exits: []Exit{}, Events: events}
	for i := range e.Containers {
		if c := &e.Containers[i]; c.LastExit != nil {
			d.Exits = append(d.Exits, s.exit(ctx, e, c))
		}
	}
	return d, nil
}

// Explain returns why a pod is in its state, and its newest events, without the values of its secrets.
func (s *Source) Explain(ctx context.Context, name string) (*api.Explanation, []api.Event, error) {
	if err := MayExist(name); err != nil {
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
func (s *Source) exit(ctx context.Context, e *api.Explanation, c *api.ExplainedContainer) Exit {
	x := Exit{Container: c.Name, Exit: c.LastExit}
	runs := api.PreviousRun
	if slices.Contains(newestExited, c.State) {
		runs = api.NewestRun
	}
	if ValidName(e.Pod) && ValidName(c.Name) { // the command is for a shell
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

// MayExist returns an error for texts that are no part of a path. Other texts, such as the name of a file that was refused, are requested.
func MayExist(name string) error {
	if name == "" || name == "." || name == ".." {
		return &api.Error{Status: http.StatusNotFound, Reason: api.ReasonNotFound, Message: fmt.Sprintf("no such pod %q", name)}
	}
	return nil
}

// ValidName reports whether a pod or a container can have a name. Such a name has no characters that are special to a shell.
func ValidName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
