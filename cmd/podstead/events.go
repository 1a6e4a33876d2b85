package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
)

func (a *app) eventsCommand() *cobra.Command {
	var q api.EventQuery
	var since time.Duration
	var format string
	cmd := &cobra.Command{
		Use:   "events [POD]",
		Short: "Show what has happened to pods",
		Long: `The events that the daemon keeps, oldest first: of all pods, or of one. Each has a number, and that of the event
which caused it (in -o json).`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePods,
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on and show what happens")
	cmd.Flags().DurationVar(&since, "since", 0, "only what is not older, such as 10m")
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
			line = string(text)
		}
		if _, err := fmt.Fprintln(a.out, line); err != nil {
			return err
		}
	}
	return nil
}
