package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
)

// logsFlags are the flags of logs.
type logsFlags struct {
	containers []string
	follow     bool
	previous   bool
	timestamps bool
	tail       int
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs POD",
		Short: "Show logs of containers",
		Long: `Show the logs of the current run of every container of a pod, or of the containers given with -c. If the logs of
several containers are shown, each line is prefixed with the name of its container.`,
		Example: `  # Show the logs of all containers of a pod
  podstead logs web

  # Show the logs of the previous run of a container
  podstead logs web -c app --previous

  # Show the last 20 lines and follow the logs
  podstead logs web --tail 20 --follow`,
		Args:              oneArgument("a pod"),
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringSliceVarP(&f.containers, "container", "c", nil, "`names` of containers, comma-separated (default all)")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "follow the logs until the pod terminates")
	cmd.Flags().BoolVarP(&f.previous, "previous", "p", false, "show the logs of the previous run (lastState in the container status)")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "`number` of lines to show from the end of the logs (default all)")
	cmd.Flags().Lookup("tail").DefValue = "0" // keeps "(default -1)" out of the help
	cmd.Flags().BoolVar(&f.timestamps, "timestamps", false, "prefix each line with its time")
	return cmd
}

// oneArgument requires exactly one argument, apart from a resource type such as "pod" before it.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var s selection
		if err := s.read(cmd, args); err != nil {
			return err
		}
		if len(s.names) != 1 {
			return usage(cmd, "%s requires %s", commandName(cmd), what)
		}
		return nil
	}
}

func (a *app) logs(cmd *cobra.Command, args []string, f *logsFlags) error {
	if f.previous && f.follow {
		return usage(cmd, "--previous and --follow cannot be combined: the previous run has terminated")
	}
	var s selection
	if err := s.read(cmd, args); err != nil {
		return err
	}
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	pod, err := client.Pod(cmd.Context(), s.names[0])
	if err != nil {
		return err
	}
	q := api.OutputQuery{UID: pod.Metadata.UID, Containers: f.containers, Runs: api.NewestRun, Follow: f.follow}
	if f.previous {
		q.Runs = api.PreviousRun
	}
	if f.tail >= 0 {
		q.Tail = &f.tail
	}
	all := len(pod.Spec.InitContainers) + len(pod.Spec.Containers) + len(pod.Spec.EphemeralContainers)
	prefix := len(f.containers) > 1 || len(f.containers) == 0 && all > 1
	for l, err := range client.Output(cmd.Context(), pod.Metadata.Name, q) {
		if err != nil {
			return err
		}
		if err := a.logLine(l, prefix, f.timestamps); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) logLine(l api.Line, prefix, timestamps bool) error {
	text := l.Line
	if l.Raw != nil {
		text = string(l.Raw)
	}
	if timestamps {
		text = l.Time.Format(time.RFC3339Nano) + " " + text
	}
	if prefix {
		text = "[" + l.Container + "] " + text
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}
