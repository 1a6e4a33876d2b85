package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
	"github.com/podstead/podstead/internal/plain"
)

func (a *app) eventsCommand() *cobra.Command {
	var q api.EventQuery
	var since time.Duration
	var format string
	cmd := &cobra.Command{
		Use:   "events [POD]",
		Short: "List events of pods",
		Long: `List the events of all pods, or of one pod, oldest first. With -o json, every event has a sequence number and the
number of the event that caused it.`,
		Example: `  # List the events of all pods
  podstead events

  # List the events of a pod in the last 10 minutes
  podstead events web --since 10m

  # Wait for new events and print them as JSON
  podstead events --follow -o json`,
		Args:              maxOnePod,
		ValidArgsFunction: a.completePods,
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "wait for new events and show them")
	cmd.Flags().DurationVar(&since, "since", 0, "show events newer than this `duration`, such as 10m (default all)")
	formats(cmd, &format, "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var s selection
		if err := s.read(cmd, args); err != nil {
			return err
		}
		if len(s.names) > 0 {
			q.Pod = s.names[0]
		}
		if since > 0 {
			q.Since = time.Now().Add(-since)
		}
		return a.events(cmd, &q, format)
	}
	return cmd
}

func (a *app) events(cmd *cobra.Command, q *api.EventQuery, format string) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	for e, err := range client.Events(cmd.Context(), q) {
		if err != nil {
			return err
		}
		line := view.Event(&e)
		if format == "json" {
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
