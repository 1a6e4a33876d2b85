package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/view"
)

func (a *app) whyCommand() *cobra.Command {
	var format string
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

With -o json, the state, the cause, the exit code and the time of the next restart are separate fields.`,
		Example: `  # List the pods that are not healthy, with the root cause
  podstead why

  # Explain one pod, with the last 20 log lines of failed runs
  podstead why web --lines 20

  # Print the kind of the root cause
  podstead why web -o json | jq -r .cause.kind`,
		Args:              maxOnePod,
		ValidArgsFunction: a.completePods,
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&lines, "lines", lines, "number of lines to show from the end of the log of a failed run, 0 for none")
	formats(cmd, &format, "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var s selection
		if err := s.read(cmd, args); err != nil {
			return err
		}
		if lines < 0 {
			return usage(cmd, "invalid value %d for --lines: must be at least 0", lines)
		}
		c, err := a.client(cmd)
		if err != nil {
			return err
		}
		if len(s.names) == 0 {
			return a.whyAll(cmd, c, lines, format)
		}
		e, err := c.Why(cmd.Context(), s.names[0], lines)
		if err != nil {
			return err
		}
		if format != "" {
			return a.encode(format, e)
		}
		_, err = io.WriteString(a.out, view.Explanation(&e, time.Now()))
		return err
	}
	return cmd
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
