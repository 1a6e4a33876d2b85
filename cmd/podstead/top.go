package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/show"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

const (
	// minTopInterval is the shortest time between two tables: CPU usage is measured over at least half of a second.
	minTopInterval     = 500 * time.Millisecond
	defaultTopInterval = 2 * time.Second
	// oldDisk is the age from which the disk usage is reported as old.
	oldDisk = time.Minute
	// clearScreen moves the cursor to the start of the screen and clears the screen.
	clearScreen = "\x1b[H\x1b[2J"
)

// topFlags are the flags of top.
type topFlags struct {
	selection
	show.UsageOptions
	sortBy   string
	format   string
	watch    bool
	interval time.Duration
}

func (a *app) topCommand() *cobra.Command {
	cmd := a.topOf("top [POD...]", false)
	pods := anotherName("pods [POD...]", "podstead top", a.topOf("", false))
	containers := anotherName("containers [POD...]", "podstead top --containers", a.topOf("", true))
	pods.Aliases, containers.Aliases = []string{"pod", "po"}, []string{"container"}
	cmd.AddCommand(pods, containers)
	return cmd
}

// topOf is top, or with containers top --containers.
func (a *app) topOf(use string, containers bool) *cobra.Command {
	f := topFlags{UsageOptions: show.UsageOptions{Containers: containers}}
	cmd := &cobra.Command{
		Use:   use,
		Short: "Show what pods and containers use",
		Long: `Show what pods use or, with --containers, what their containers use. A figure that is not known, or that a finished pod does
not have, is shown as "-". A container that is not running has only logs.

CPU(cores) is the CPU usage in thousandths of a core since the last request, or over half of a second. MEMORY(bytes) is the
working set: the memory without files that were not used recently. LIMIT is the memory limit of the container, or that of
the pod, which it has if all its containers have one. DISK is the files that running containers have changed in their
images, LOGS the logs of all runs. RX and TX are what the pod has received and sent since its sandbox was started.

Disk usage is measured when it is requested, at most every 10 seconds, and less often if it takes long. With -o json, each
figure has the time at which it was measured, in the form of the kubelet's Summary API.

To see CPU and memory with the state of pods on a screen that follows, run podstead tui.`,
		Example: `  # Show what all pods use
  podstead top

  # Show what the pods with a label use, the highest memory usage first
  podstead top -l app=shop --sort-by=memory

  # Show the container that uses most CPU time
  podstead top --containers --sort-by=cpu --no-headers | head -n 1

  # Show the containers of a pod, and refresh every 5 seconds
  podstead top web --containers --watch --interval 5s

  # Print the memory usage of a pod in bytes
  podstead top web -o json | jq '.pods[0].memory.workingSetBytes'`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Name() == "top" && len(args) > 0 && slices.Contains([]string{"node", "nodes", "no"}, args[0]) {
				return &failure{status: statusUsage, err: unknownCommand(cmd, args[0]), hints: []string{
					"show what the pods of the host use with podstead top, and what the host has with podstead doctor",
				}}
			}
			return a.topPods(cmd, args, &f)
		},
	}
	f.flags(cmd)
	return cmd
}

func (a *app) topPods(cmd *cobra.Command, args []string, f *topFlags) error {
	if err := f.parse(cmd, args); err != nil {
		return err
	}
	return a.top(cmd, f)
}

func (f *topFlags) flags(cmd *cobra.Command) {
	f.selection.flags(cmd)
	cmd.Flags().BoolVar(&f.Containers, "containers", f.Containers, "show a row for each container")
	cmd.Flags().StringVar(&f.sortBy, "sort-by", "", "sort by this `figure`, the highest first: cpu, memory (default the name)")
	completeFlag(cmd, "sort-by", string(show.ByCPU), string(show.ByMemory))
	cmd.Flags().BoolVar(&f.NoHeader, "no-headers", false, "omit the header of the table")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "show the table again after each interval")
	cmd.Flags().DurationVar(&f.interval, "interval", defaultTopInterval, "`duration` between two tables of --watch, at least 500ms")
	formats(cmd, &f.format, "json")
}

// parse checks the flags.
func (f *topFlags) parse(cmd *cobra.Command, args []string) error {
	f.Order = show.Order(f.sortBy)
	switch {
	case !slices.Contains([]show.Order{show.ByName, show.ByCPU, show.ByMemory}, f.Order):
		return usage(cmd, "--sort-by %q: must be one of cpu, memory", f.sortBy)
	case f.interval < minTopInterval:
		return usage(cmd, "--interval %v: must be at least %v", f.interval, minTopInterval)
	case cmd.Flags().Changed("interval") && !f.watch:
		return usage(cmd, "--interval requires --watch")
	}
	return f.read(cmd, args)
}

func (a *app) top(cmd *cobra.Command, f *topFlags) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	if !f.watch {
		return a.printTop(cmd, c, f)
	}
	next := time.NewTicker(f.interval)
	defer next.Stop()
	for first := true; ; first = false {
		if f.format == "" && a.isTerminal() {
			_, err = io.WriteString(a.out, clearScreen)
		} else if f.format == "" && !first {
			_, err = io.WriteString(a.out, "\n")
		}
		if err := errors.Join(err, a.printTop(cmd, c, f)); err != nil {
			return err
		}
		select {
		case <-next.C:
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}

// printTop prints one table.
func (a *app) printTop(cmd *cobra.Command, c *client.Client, f *topFlags) error {
	list, err := c.Pods(cmd.Context())
	if err != nil {
		return err
	}
	pods, missing := f.of(list.Items)
	var names []string
	selected := map[string]bool{} // by UID
	if missing == nil {
		missing = scheduledError(pods, f.names)
	}
	for i := range pods {
		if uid := pods[i].Metadata.UID; uid != "" { // not a file that is refused
			selected[uid] = true
			names = append(names, pods[i].Metadata.Name)
		}
	}
	var s api.StatsSummary
	if f.all() || len(names) > 0 {
		if f.all() {
			names = nil
		}
		s, err = c.Stats(cmd.Context(), names...)
		if isNotFound(err) { // a pod was deleted meanwhile
			s, err = c.Stats(cmd.Context())
		}
		if err != nil {
			return err
		}
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(p api.PodStats) bool { return !selected[p.PodRef.UID] })
	if f.format == "json" {
		if s.Pods == nil {
			s.Pods = []api.PodStats{}
		}
		return errors.Join(a.encode(f.format, s), missing)
	}
	if len(s.Pods) == 0 {
		if missing == nil {
			a.note("%v", errNoPods)
		}
		return missing
	}
	if err := show.Usage(a.screen(), s.Pods, f.UsageOptions); err != nil {
		return err
	}
	if age := show.OldestDisk(s.Pods, time.Now()); age >= oldDisk && !f.watch {
		a.note("disk usage was measured up to %s ago", view.Age(age))
	}
	return missing
}

// scheduledError is the error of the named pods that are started by a schedule: they use nothing, their runs do. Nil: there are none.
func scheduledError(pods []api.Pod, names []string) error {
	var list []error
	var hints []string
	for i := range pods {
		if name := pods[i].Metadata.Name; pods[i].Status.Schedule != nil && slices.Contains(names, name) {
			list = append(list, fmt.Errorf("pod %q is started by its schedule, and does not run itself", name))
			hints = append(hints, fmt.Sprintf("show what its runs use with podstead top -l %s=%s", spec.LabelSchedule, name))
		}
	}
	if list == nil {
		return nil
	}
	return &failure{status: statusFailed, err: errors.Join(list...), hints: hints}
}

func (a *app) metricsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "metrics",
		Short: "Print the metrics of pods and of the daemon",
		Long: `Print the metrics of pods, containers and the daemon in the text format of Prometheus. They are the same that Prometheus
gets from the address metrics.address of the configuration, which is not required for this command.

Names and labels are those of the kubelet, cAdvisor and kube-state-metrics, where these have the metric. Other names begin
with podstead_. All metrics are described in docs/reference/metrics.md.`,
		Example: `  # Print all metrics
  podstead metrics

  # Print the working set of each container in bytes
  podstead metrics | grep '^container_memory_working_set_bytes{.*container="[^"]'

  # Print how often containers restarted, by cause
  podstead metrics | grep podstead_container_restarts_total || true`,
		Args: noArguments,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			return c.Metrics(cmd.Context(), a.out)
		}),
	}
}

func (a *app) statsCommand() *cobra.Command {
	var once bool
	f := topFlags{interval: defaultTopInterval}
	f.Containers = true
	cmd := &cobra.Command{
		Long:              "Refresh the table until Ctrl-C. With --no-stream, show it once.",
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.watch = !once
			return a.topPods(cmd, args, &f)
		},
	}
	cmd.Flags().BoolVar(&once, "no-stream", false, "show the table once")
	return cmd
}
