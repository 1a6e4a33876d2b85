package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
)

// eventsFlags are the flags of events.
type eventsFlags struct {
	selection
	follow        bool
	since         sinceFlags
	format        string
	ages, stamps  bool
	object        string // of --for
	types         []string
	fieldSelector fields.Selector // of get events --field-selector; nil: every event
}

func (a *app) eventsCommand() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events [POD]",
		Short: "List events of pods",
		Long: `List the events of all pods, or of one pod, oldest first. Times are local, with the date unless that is today. With
-o json, every event is a line with a sequence number and the number of the event that caused it; with -o yaml, every event is
a document. With --selector, the events of pods that were deleted before are omitted.`,
		Example: `  # List the events of all pods
  podstead events

  # List the events of a pod in the last 10 minutes
  podstead events web --since 10m

  # List the events of the last days with type and reason, and how old they are
  podstead events --since 72h --ages -o wide

  # List the events since a time of the pods with a label
  podstead events -l app=shop --since-time 2026-01-02T15:04:05Z

  # List the warnings of a pod
  podstead events web --types Warning

  # Wait for new events and print them as JSON
  podstead events --follow -o json`,
		Args:              maxOnePod,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.queryEvents(cmd, args, &f)
		},
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for new events and show them")
	f.since.flags(cmd, "events")
	cmd.Flags().BoolVar(&f.ages, "ages", false, "show how long ago events happened")
	cmd.Flags().BoolVar(&f.stamps, "timestamps", false, "show times in RFC 3339")
	f.flags(cmd)
	f.habitFlags(cmd)
	formats(cmd, &f.format, "wide", "json", "yaml")
	hide(cmd, "watch", "for")
	return cmd
}

func (a *app) queryEvents(cmd *cobra.Command, args []string, f *eventsFlags) error {
	args, err := f.checkHabits(cmd, args)
	if err != nil {
		return err
	}
	q, err := f.query(cmd, args, time.Now())
	if err != nil {
		return err
	}
	return a.events(cmd, q, f)
}

// query returns the query of the flags.
func (f *eventsFlags) query(cmd *cobra.Command, args []string, now time.Time) (*client.EventQuery, error) {
	if err := f.read(cmd, args); err != nil {
		return nil, err
	}
	q := &client.EventQuery{Follow: f.follow, Labels: f.labels}
	if len(f.names) > 0 {
		q.Pod = f.names[0]
	}
	if f.ages && f.stamps {
		return nil, usage(cmd, "--ages and --timestamps cannot be combined")
	}
	var err error
	q.Since, err = f.since.time(cmd, now)
	return q, err
}

func (a *app) events(cmd *cobra.Command, q *client.EventQuery, f *eventsFlags) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	if q.Follow {
		a.noteAwaited(cmd.Context(), c, q)
	}
	first := true
	for e, err := range c.Events(cmd.Context(), q) {
		if err != nil {
			return err
		}
		if !f.has(&e) {
			continue
		}
		text, err := f.text(&e, first, time.Now())
		if err != nil {
			return err
		}
		first = false
		if _, err := fmt.Fprintln(a.out, text); err != nil {
			return err
		}
	}
	if !first || q.Follow || cmd.Context().Err() != nil {
		return nil
	}
	err = missingPods(cmd.Context(), c, q)
	if q.Labels != "" && errors.Is(err, errNoPods) {
		a.note("%v", err)
		return nil
	}
	return err
}

// noteAwaited prints that there is no pod yet whose events a command follows.
func (a *app) noteAwaited(ctx context.Context, c *client.Client, q *client.EventQuery) {
	err := missingPods(ctx, c, q)
	if errors.Is(err, errNoPods) {
		a.note("%v, waiting for their events", err)
	}
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
		a.note("%v, waiting for its events", err)
	}
}

// missingPods returns an error if there never was a pod of a query, as far as events are stored, or if no pod has its labels.
func missingPods(ctx context.Context, c *client.Client, q *client.EventQuery) error {
	if q.Pod != "" {
		_, err := c.Why(ctx, q.Pod, 0)
		return err
	}
	if q.Labels == "" {
		return nil
	}
	selector, err := labels.Parse(q.Labels)
	if err != nil {
		return err
	}
	list, err := c.Pods(ctx)
	if err != nil || slices.ContainsFunc(list.Items, func(p api.Pod) bool { return selector.Matches(labels.Set(p.Metadata.Labels)) }) {
		return err
	}
	return fmt.Errorf("%w with the labels %s", errNoPods, q.Labels)
}

// text returns an event in the output format.
func (f *eventsFlags) text(e *api.Event, first bool, now time.Time) (string, error) {
	form := view.EventClock
	switch {
	case f.ages:
		form = view.EventAge
	case f.stamps:
		form = view.EventStamp
	}
	switch f.format {
	case "json", "yaml":
		text, err := json.Marshal(e)
		if err == nil && f.format == "yaml" {
			text, err = plain.YAML(text)
			text = append([]byte("---\n"), bytes.TrimSuffix(text, []byte("\n"))...)
		}
		return string(plain.JSON(text)), err
	case "wide":
		text := view.WideEvent(e, form, now)
		if first {
			text = view.WideEventHeader + "\n" + text
		}
		return text, nil
	}
	return view.Event(e, form, now), nil
}

// eventFields are the fields of get events --field-selector.
var eventFields = map[string]func(e *api.Event) string{
	"type":                     func(e *api.Event) string { return string(e.Level) },
	"reason":                   func(e *api.Event) string { return e.Reason },
	"involvedObject.kind":      func(*api.Event) string { return "Pod" },
	"involvedObject.name":      func(e *api.Event) string { return e.Pod },
	"involvedObject.namespace": func(*api.Event) string { return namespace },
	"metadata.namespace":       func(*api.Event) string { return namespace },
}

// eventTimes are the paths of get events --sort-by: all are the time of an event, which is the order of events.
var eventTimes = []string{"metadata.creationTimestamp", "lastTimestamp", "firstTimestamp", "eventTime"}

// has reports whether the flags --types and --field-selector select an event.
func (f *eventsFlags) has(e *api.Event) bool {
	if len(f.types) > 0 && !slices.ContainsFunc(f.types, func(t string) bool { return strings.EqualFold(t, string(e.Level)) }) {
		return false
	}
	return hasFields(f.fieldSelector, eventFields, e)
}

// habitFlags adds the flags of kubectl events.
func (f *eventsFlags) habitFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.follow, "watch", "w", false, "as --follow")
	cmd.Flags().StringVar(&f.object, "for", "", "show only the events of this `pod`, as web or pod/web")
	cmd.Flags().StringSliceVar(&f.types, "types", nil, "show only events of these `types`: Normal, Warning (default all)")
	completeFlag(cmd, "types", "Normal", "Warning")
	f.namespacesFlag(cmd)
}

// checkHabits checks --types, and adds the pod of --for to the arguments.
func (f *eventsFlags) checkHabits(cmd *cobra.Command, args []string) ([]string, error) {
	for _, t := range f.types {
		if !strings.EqualFold(t, "Normal") && !strings.EqualFold(t, "Warning") {
			return nil, usage(cmd, "--types %q: must be Normal or Warning", t)
		}
	}
	switch {
	case f.object == "":
		return args, nil
	case len(args) > 0:
		return nil, usage(cmd, "--for cannot be combined with a pod")
	}
	return []string{f.object}, nil
}
