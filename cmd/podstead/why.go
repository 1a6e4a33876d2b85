package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/timeline"
	"github.com/podstead/podstead/internal/view"
)

// whyFlags are the flags of why.
type whyFlags struct {
	format string
	since  time.Duration
}

func (f *whyFlags) isPicture() bool { return f.format == "svg" || f.format == "html" }

// check checks the flags for the pods of the arguments.
func (f *whyFlags) check(cmd *cobra.Command, pods []string) error {
	switch {
	case f.isPicture() && len(pods) == 0:
		return usage(cmd, "-o %s requires a pod", f.format)
	case cmd.Flags().Changed("since") && !f.isPicture():
		return usage(cmd, "--since requires -o svg or -o html")
	case cmd.Flags().Changed("since") && f.since <= 0:
		return usage(cmd, "--since %v: must be greater than 0", f.since)
	}
	return nil
}

func (a *app) whyCommand() *cobra.Command {
	var f whyFlags
	lines := api.DefaultEvidenceLines
	cmd := &cobra.Command{
		Use:   "why [POD]",
		Short: "Explain why pods restarted, failed or are waiting",
		Long: `Explain why a pod is in its state: the root cause, the evidence for it, and what happens next. The evidence includes the
last exit code and its meaning, the memory limit and peak of an OOM-killed container, the last output of a failed probe, the
termination message, and the last log lines. The timeline survives restarts of the daemon and of the host, and deletion of
the pod. Values of secrets are redacted.

Without a pod, print one line for each pod that is not healthy. A pod that is ready counts as unhealthy for one hour after a
restart, unless a client requested it or the host was rebooted.

With -o json, the state, the cause, the exit code and the time of the next restart are separate fields. -o svg draws the runs,
restarts and probe failures of a pod as a picture, from the events that the daemon keeps. -o html writes the explanation, the
picture and the events as one file.`,
		Example: `  # List the pods that are not healthy, with the root cause
  podstead why

  # Explain one pod, with the last 20 log lines of failed runs
  podstead why web --lines 20

  # Write a report on the last two hours of a pod
  podstead why web --since 2h -o html > web.html

  # Print the kind of the root cause
  podstead why web -o json | jq -r .cause.kind`,
		Args:              maxOnePod,
		ValidArgsFunction: a.completePods,
	}
	cmd.Flags().IntVar(&lines, "lines", lines, "number of lines to show from the end of the log of a failed run, 0 for none")
	cmd.Flags().DurationVar(&f.since, "since", 0, "with -o svg or html, show this last `duration` (default from the first event)")
	formats(cmd, &f.format, "json", "yaml", "svg", "html")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var s selection
		if err := s.read(cmd, args); err != nil {
			return err
		}
		if lines < 0 {
			return usage(cmd, "invalid value %d for --lines: must be at least 0", lines)
		}
		if err := f.check(cmd, s.names); err != nil {
			return err
		}
		c, err := a.client(cmd)
		if err != nil {
			return err
		}
		if len(s.names) == 0 {
			return a.whyAll(cmd, c, lines, f.format)
		}
		e, err := c.Why(cmd.Context(), s.names[0], lines)
		if err != nil {
			return err
		}
		switch {
		case f.isPicture():
			return a.whyPicture(cmd, c, &e, &f)
		case f.format != "":
			return a.encode(f.format, e)
		}
		_, err = io.WriteString(a.out, view.Explanation(&e, time.Now()))
		return err
	}
	return cmd
}

// whyPicture prints the timeline of a pod as a picture, or the explanation with it as a page.
func (a *app) whyPicture(cmd *cobra.Command, c *client.Client, e *api.Explanation, f *whyFlags) error {
	events, err := eventsOf(cmd.Context(), c, e)
	if err != nil {
		return err
	}
	picture, shown := view.Explained(e, events, f.since, time.Now())
	page := timeline.Page{Title: "Pod " + e.Pod, Text: view.Explanation(e, time.Now()), Pictures: []timeline.Picture{picture}}
	if f.format == "svg" {
		_, err = a.out.Write(timeline.SVG(page.Pictures))
		return err
	}
	table := timeline.Table{Title: "Events", Rows: [][]string{{"TIME", "TYPE", "REASON", "CONTAINER", "MESSAGE"}}}
	for i := range shown {
		ev := &shown[i]
		table.Rows = append(table.Rows, []string{
			ev.Time.Local().Format(time.DateTime), string(ev.Level), ev.Reason, ev.Container, ev.Message,
		})
	}
	page.Tables = append(page.Tables, table)
	_, err = a.out.Write(page.HTML())
	return err
}

// whyAll prints one line for each pod that is not healthy.
func (a *app) whyAll(cmd *cobra.Command, c *client.Client, lines int, format string) error {
	list, err := c.WhyAll(cmd.Context(), lines)
	if err != nil {
		return err
	}
	if format != "" {
		return a.encode(format, list)
	}
	healthy := true
	for _, e := range list.Items {
		if !e.Healthy {
			healthy = false
			fmt.Fprintln(a.out, view.Headline(&e, time.Now()))
		}
	}
	switch {
	case len(list.Items) == 0:
		a.note("%v", errNoPods)
	case healthy:
		fmt.Fprintf(a.out, "All pods are healthy (%d).\n", len(list.Items))
	}
	return nil
}

// printWhy prints the explanation of a pod, if there is one.
func (a *app) printWhy(cmd *cobra.Command, c *client.Client, pod string) {
	if e, err := c.Why(cmd.Context(), pod, api.DefaultEvidenceLines); err == nil {
		fmt.Fprint(a.err, view.Explanation(&e, time.Now()))
	}
}
