package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
	"github.com/podstead/podstead/internal/plain"
)

// eventsFlags are the flags of events.
type eventsFlags struct {
	selection
	follow        bool
	since         time.Duration
	sinceTime     string
	format        string
	object        string // of --for
	types         []string
	fieldSelector fields.Selector // of get events --field-selector; nil: every event
}

func (a *app) eventsCommand() *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events [POD]",
		Short: "List events of pods",
		Long: `List the events of all pods, or of one pod, oldest first. With -o json, every event has a sequence number and the
number of the event that caused it. With --selector, the events of pods that were deleted before are omitted.`,
		Example: `  # List the events of all pods
  podstead events

  # List the events of a pod in the last 10 minutes
  podstead events web --since 10m

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
	f.flags(cmd)
	f.habitFlags(cmd)
	formats(cmd, &f.format, "json")
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
	for e, err := range client.Events(cmd.Context(), q) {
		if err != nil {
			return err
		}
		if !f.has(&e) {
			continue
		}
		line := view.Event(&e)
		if f.format == "json" {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			line = string(plain.JSON(text))
		}
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	return nil
}
