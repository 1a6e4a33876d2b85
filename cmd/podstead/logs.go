package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
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
		Args:              logsArguments,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringSliceVarP(&f.containers, "container", "c", nil, "`names` of containers, comma-separated (default all)")
	_ = cmd.RegisterFlagCompletionFunc("container", a.completeContainers)
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "follow the logs until the pod terminates")
	cmd.Flags().BoolVarP(&f.previous, "previous", "p", false, "show the logs of the previous run (lastState in the container status)")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "`number` of lines to show from the end of the logs (default all)")
	cmd.Flags().Lookup("tail").DefValue = "0" // keeps "(default -1)" out of the help
	cmd.Flags().BoolVar(&f.timestamps, "timestamps", false, "prefix each line with its time")
	return cmd
}

// logsArguments requires exactly one pod.
func logsArguments(cmd *cobra.Command, args []string) error {
	var s selection
	if err := s.read(cmd, args); err != nil {
		return err
	}
	switch len(s.names) {
	case 0:
		return usage(cmd, "logs requires a pod")
	case 1:
		return nil
	}
	return &failure{
		status: statusUsage, err: fmt.Errorf("logs accepts one pod, got %s", quoted(s.names)),
		hints: []string{fmt.Sprintf("select a container with podstead logs %s -c %s", s.names[0], s.names[1])},
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
	text := &view.Text{Out: a.out, Err: a.err, Colour: a.colour()}
	text.Pods([]api.Pod{pod})
	for l, err := range client.Output(cmd.Context(), pod.Metadata.Name, q) {
		if err != nil {
			return err
		}
		if l.Raw == nil {
			l.Raw = []byte(l.Line)
		}
		if f.timestamps {
			l.Raw = append([]byte(l.Time.Format(time.RFC3339Nano)+" "), l.Raw...)
		}
		if prefix {
			text.Line(pod.Metadata.Name, l)
		} else if _, err := fmt.Fprintf(a.out, "%s\n", l.Raw); err != nil {
			return err
		}
	}
	return nil
}
