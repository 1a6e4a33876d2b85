package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
)

// eventsFlags are the flags of events.
type eventsFlags struct {
	selection
	follow        bool
	since         time.Duration
	sinceTime     string
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
  podstead events --for pod/web --types Warning

  # Wait for new events and print them as JSON
  podstead events --follow -o json`,
		Args:              maxOnePod,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.queryEvents(cmd, args, &f)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "wait for new events and show them")
	cmd.Flags().DurationVar(&f.since, "since", 0, "show events newer than this `duration`, such as 10m (default all)")
	cmd.Flags().StringVar(&f.sinceTime, "since-time", "", "show events since this `time` in RFC 3339, such as 2026-01-02T15:04:05Z (default all)")
	cmd.Flags().BoolVar(&f.ages, "ages", false, "show how long ago events happened")
	cmd.Flags().BoolVar(&f.stamps, "timestamps", false, "show times in RFC 3339")
	f.flags(cmd)
	f.habitFlags(cmd)
	formats(cmd, &f.format, "wide", "json", "yaml")
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
func (f *eventsFlags) query(cmd *cobra.Command, args []string, now time.Time) (*api.EventQuery, error) {
	if err := f.read(cmd, args); err != nil {
		return nil, err
	}
	q := &api.EventQuery{Follow: f.follow, Labels: f.labels}
	if len(f.names) > 0 {
		q.Pod = f.names[0]
	}
	switch {
	case f.ages && f.stamps:
		return nil, usage(cmd, "--ages and --timestamps cannot be combined")
	case f.since != 0 && f.sinceTime != "":
		return nil, usage(cmd, "--since and --since-time cannot be combined")
	case f.since < 0:
		return nil, usage(cmd, "--since %v: must be at least 0", f.since)
	case f.since > 0:
		q.Since = now.Add(-f.since)
	case f.sinceTime != "":
		t, err := time.Parse(time.RFC3339, f.sinceTime)
		if err != nil {
			return nil, usage(cmd, "--since-time %q: must be a time in RFC 3339, such as 2026-01-02T15:04:05Z", f.sinceTime)
		}
		q.Since = t
	}
	return q, nil
}

func (a *app) events(cmd *cobra.Command, q *api.EventQuery, f *eventsFlags) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	if q.Follow {
		a.noteAwaited(cmd.Context(), client, q)
	}
	first := true
	for e, err := range client.Events(cmd.Context(), q) {
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
	err = nobody(cmd.Context(), client, q)
	if q.Labels != "" && errors.Is(err, errNoPods) {
		a.note("%v", err)
		return nil
	}
	return err
}

// noteAwaited prints that there is no pod yet whose events a command follows.
func (a *app) noteAwaited(ctx context.Context, client *api.Client, q *api.EventQuery) {
	err := nobody(ctx, client, q)
	if errors.Is(err, errNoPods) {
		a.note("%v, waiting for their events", err)
	}
	if e, ok := errors.AsType[*api.Error](err); ok && e.Status == http.StatusNotFound {
		a.note("%v, waiting for its events", err)
	}
}

// nobody returns an error if there never was a pod of a query, as far as events are stored, or if no pod has its labels.
func nobody(ctx context.Context, client *api.Client, q *api.EventQuery) error {
	if q.Pod != "" {
		_, err := client.Why(ctx, q.Pod, 0)
		return err
	}
	if q.Labels == "" {
		return nil
	}
	selector, err := labels.Parse(q.Labels)
	if err != nil {
		return err
	}
	list, err := client.Pods(ctx)
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
