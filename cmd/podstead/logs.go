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
	stamps     bool
	tail       int
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs POD",
		Short: "Show what the containers of a pod have written",
		Long: `The output of the newest run of each container of the pod, or of those that are named. With more than one container
each line has its container before it.`,
		Example: `  podstead logs web
  podstead logs web -c app --previous`,
		Args:              oneArgument("a pod"),
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringSliceVarP(&f.containers, "container", "c", nil, "only these containers")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the pod has ended")
	cmd.Flags().BoolVarP(&f.previous, "previous", "p", false, "of the previous run, which get shows as lastState")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "only so many lines of the end (default all)")
	cmd.Flags().BoolVar(&f.stamps, "timestamps", false, "with the time of each line")
	return cmd
}

// oneArgument wants exactly one; a kind such as "pod" before it does not count.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var s selection
		if err := s.read(cmd, args); err != nil {
			return err
		}
		if len(s.names) != 1 {
			return usage(cmd, "%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

func (a *app) logs(cmd *cobra.Command, args []string, f *logsFlags) error {
	if f.previous && f.follow {
		return usage(cmd, "--previous is of a run that is over: there is nothing to follow")
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
	several := len(f.containers) > 1 || len(f.containers) == 0 && all > 1
	for l, err := range client.Output(cmd.Context(), pod.Metadata.Name, q) {
		if err != nil {
			return err
		}
		if err := a.logLine(l, several, f.stamps); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) logLine(l api.Line, several, stamps bool) error {
	text := l.Line
	if l.Raw != nil {
		text = string(l.Raw)
	}
	if stamps {
		text = l.Time.Format(time.RFC3339Nano) + " " + text
	}
	if several {
		text = "[" + l.Container + "] " + text
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}
