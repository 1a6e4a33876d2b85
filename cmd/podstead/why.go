package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
)

func (a *app) whyCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "why [POD]",
		Short: "Say why a pod was restarted, failed or waits",
		Long: `Why a pod is as it is: what was seen, what was done about it, how the containers answered, and when what waits is tried
again; who asked for what, and the restarts of the daemon and of the machine in between. The story outlives both, and is told for
a while of a pod that is gone.

Without a pod: all that is not well, a line each. A pod that runs is not well for an hour after a restart.`,
		Example: `  podstead why
  podstead why web
  podstead why web -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completePods,
	}
	cmd.Flags().SortFlags = false
	formats(cmd, &format, "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var s selection
		if err := s.read(cmd, args); err != nil {
			return err
		}
		client, err := a.client(cmd)
		if err != nil {
			return err
		}
		if len(s.names) == 0 {
			return a.whyAll(cmd, client, format)
		}
		story, err := client.Why(cmd.Context(), s.names[0])
		if err != nil {
			return err
		}
		if format != "" {
			return a.encode(format, story)
		}
		_, err = io.WriteString(a.out, view.Story(&story, time.Now()))
		return err
	}
	return cmd
}

// whyAll says what is not well.
func (a *app) whyAll(cmd *cobra.Command, client *api.Client, format string) error {
	list, err := client.WhyAll(cmd.Context())
	if err != nil {
		return err
	}
	if format != "" {
		return a.encode(format, list)
	}
	well := true
	for _, s := range list.Items {
		if !s.Well {
			well = false
			fmt.Fprintln(a.out, view.StoryLine(&s))
		}
	}
	switch {
	case len(list.Items) == 0:
		a.note("%v", errNoPods)
	case well:
		fmt.Fprintf(a.out, "All is well (pods: %d).\n", len(list.Items))
	}
	return nil
}
