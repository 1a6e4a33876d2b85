package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/follow"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// timestampFormat is the format of --timestamps, with a fixed number of digits as in the kubelet (RFC3339NanoFixed).
const timestampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// selectorTail is the default of --tail without names of pods and without --grep, as in kubectl for --selector.
const selectorTail = 10

// logsFlags are the flags of logs.
type logsFlags struct {
	pods          selection
	containers    []string
	allContainers bool
	follow        bool
	previous      bool
	timestamps    bool
	prefix        bool
	tail          int
	grep          string
	since         sinceFlags
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs POD|FILE|DIR...",
		Short: "Show logs of containers",
		Long: `Show the logs of the current run of every container of the pods, or of the containers given with -c. If the logs of
several containers are shown, each line is prefixed with the name of its container, and with the name of its pod if
there are several pods. Instead of its name, a pod can be given by the file or the directory that defines it. Without
--follow, the logs are shown one pod and one container after the other.

With --follow, the logs of all containers are shown as they are written, over restarts of containers and of the
daemon, until none of them runs again or the pods are deleted. Without a pod, the logs of all pods are followed. --tail
and --since apply to each container. With --selector or without a pod, the last 10 lines of each container are shown, as
by kubectl, unless --tail or --grep is given.

With --grep, only lines that contain a text are shown. The daemon searches them, after --tail and --since, up to 256 MiB of
each container and 20 seconds; if it stops before the end, logs reports on stderr how to continue, and exits with 1.
--follow has no such bound.

Logs are rotated by size. If a reader is slower than the container, lines may be removed before they are shown. Then
--follow reports on stderr how many.`,
		Example: `  # Show the logs of all containers of a pod
  podstead logs web

  # Show the logs of the previous run of a container
  podstead logs web -c app --previous

  # Show the last 20 lines and follow the logs
  podstead logs web --tail 20 --follow

  # Search in the logs of the last day
  podstead logs web --since 24h --grep web

  # Follow the logs of all pods with a label
  podstead logs -l app=shop -f

  # Follow the logs of all pods
  podstead logs -f

  # Show the logs of two pods in the last 10 minutes, with times
  podstead logs web db --since 10m --timestamps`,
		ValidArgsFunction: a.completePodsOrFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd, args, &f) },
	}
	cmd.Flags().StringSliceVarP(&f.containers, "container", "c", nil, "`names` of containers, comma-separated (default all)")
	_ = cmd.RegisterFlagCompletionFunc("container", a.completeContainers)
	cmd.Flags().BoolVar(&f.allContainers, "all-containers", true, "show the logs of all containers, as without --container")
	f.pods.flags(cmd)
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "follow the logs until none of the containers runs again")
	cmd.Flags().BoolVarP(&f.previous, "previous", "p", false, "show the logs of the previous run (lastState in the container status)")
	cmd.Flags().IntVar(&f.tail, "tail", -1,
		"`number` of lines to show from the end of the logs of each container (default all, 10 without a name and --grep)")
	cmd.Flags().Lookup("tail").DefValue = "0" // keeps "(default -1)" out of the help
	cmd.Flags().StringVar(&f.grep, "grep", "", "show only lines that contain this `text`, in any case")
	f.since.flags(cmd, "lines")
	cmd.Flags().BoolVar(&f.timestamps, "timestamps", false, "prefix each line with its time")
	cmd.Flags().BoolVar(&f.prefix, "prefix", false,
		"prefix each line with its pod and container; --prefix=false never (default if there are several containers)")
	hide(cmd, "all-containers")
	return cmd
}

func (a *app) logs(cmd *cobra.Command, args []string, f *logsFlags) error {
	if args, err := a.withoutFiles(cmd, &f.pods, args); err != nil {
		return err
	} else if err := f.pods.read(cmd, args); err != nil {
		return err
	}
	if f.pods.all() && !f.follow {
		return usage(cmd, "logs requires a pod, a file, --selector or --follow")
	}
	q, err := f.query(cmd)
	if err != nil {
		return err
	}
	w, pods, missing, err := a.listSelected(cmd, &f.pods, (*client.Client).Pods)
	if err != nil {
		return err
	}
	if missing != nil {
		return f.hintContainer(missing, pods)
	}
	if len(f.pods.names) == 0 { // the files of the pods directory that are not accepted have no pods
		pods = slices.DeleteFunc(pods, func(p api.Pod) bool { return p.Metadata.UID == "" })
	}
	if len(pods) == 0 {
		a.note("%v", errNoPods)
	}
	return a.printLogs(cmd, w, pods, q, f)
}

// withoutFiles adds the pods of files and directories in the arguments to a selection. It returns the other arguments.
func (a *app) withoutFiles(cmd *cobra.Command, s *selection, args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		if namesFile(arg) {
			s.files = append(s.files, arg)
		} else {
			names = append(names, arg)
		}
	}
	if len(s.files) == 0 {
		return args, nil
	}
	return names, a.addFiles(cmd, s)
}

// namesFile reports whether an argument is a file or a directory, and not the name of a pod: a directory is often called as a pod.
func namesFile(arg string) bool {
	switch {
	case arg == "." || arg == ".." || arg == spec.Stdin || slices.Contains(podFileExtensions, filepath.Ext(arg)):
		return true
	case !strings.Contains(arg, "/") || resourcePrefix(arg) != "":
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || filepath.IsAbs(arg) || arg[0] == '.'
}

// query returns the query of the flags.
func (f *logsFlags) query(cmd *cobra.Command) (client.OutputQuery, error) {
	q := client.OutputQuery{Containers: f.containers, Runs: api.NewestRun, Follow: f.follow, Text: f.grep}
	set := cmd.Flags().Changed
	switch {
	case f.previous && f.follow:
		return q, usage(cmd, "--previous and --follow cannot be combined: the previous run has terminated")
	case !f.allContainers && len(f.containers) == 0:
		return q, usage(cmd, "--all-containers=false requires --container")
	case set("grep") && f.grep == "":
		return q, usage(cmd, "--grep: must not be empty")
	case set("all-containers") && f.allContainers && len(f.containers) > 0:
		return q, usage(cmd, "--all-containers and --container cannot be combined")
	}
	var err error
	if q.Since, err = f.since.time(cmd, time.Now()); err != nil {
		return q, err
	}
	if f.previous {
		q.Runs = api.PreviousRun
	}
	if len(f.pods.names) == 0 && !set("tail") && f.grep == "" {
		f.tail = selectorTail
	}
	if f.tail >= 0 {
		q.Tail = &f.tail
	}
	return q, nil
}

// hintContainer adds a hint to the error of a pod that does not exist, if it is the name of a container, as in podstead logs POD CONTAINER,
// or that of a directory.
func (f *logsFlags) hintContainer(err error, pods []api.Pod) error {
	e, ok := errors.AsType[*failure](err)
	for _, name := range f.pods.names {
		if ok && strings.Contains(e.Error(), strconv.Quote(name)) && isDirectory(name) {
			e.hints = append(e.hints, fmt.Sprintf("use %s/ for the pods of the directory", name))
		}
	}
	if ok && len(f.pods.names) == 2 && len(pods) == 1 && pods[0].Metadata.Name == f.pods.names[0] &&
		slices.Contains(containersOf(&pods[0]), f.pods.names[1]) {
		e.hints = append(e.hints, fmt.Sprintf("select a container with podstead logs %s -c %s", f.pods.names[0], f.pods.names[1]))
	}
	return err
}

func (a *app) printLogs(cmd *cobra.Command, w *watcher, pods []api.Pod, q client.OutputQuery, f *logsFlags) error {
	out := &errorWriter{Writer: a.out}
	text := &view.Text{Out: out, Err: a.err, Colour: a.colour(), Prefix: f.prefixOf(cmd, pods)}
	if f.timestamps {
		text.Times = timestampFormat
	}
	text.Pods(pods)
	var lost sync.Once
	var unsearched []string // how to continue searches that have reached a bound
	err := follow.Logs(cmd.Context(), follow.LogOptions{
		Daemon: daemonLogs{w}, Pods: pods, Query: q,
		Line: func(pod string, l api.Line) error {
			text.Line(pod, l)
			return out.failed()
		},
		Skipped: func(pod, container string, s api.Skipped) { text.Notice(follow.SkippedNotice(pod, container, s)) },
		SearchStopped: func(pod string, s api.SearchStopped) { // one pod after the other
			text.Notice(follow.SearchStoppedNotice(pod, s, time.UTC))
			unsearched = append(unsearched, f.continued(pod, s))
		},
		Reconnected: func() { lost.Do(func() { text.Notice(wait.Reconnected) }) },
	})
	if err == nil && len(unsearched) > 0 {
		return &failure{status: statusFailed, err: errors.New("search logs: not all lines were searched"), hints: unsearched}
	}
	return err
}

// continued returns the hint to continue a search. One that cannot be continued at a time is one of all lines.
func (f *logsFlags) continued(pod string, s api.SearchStopped) string {
	container, text := s.Container, "TEXT"
	if !strings.ContainsFunc(f.grep, func(c rune) bool { return c < ' ' || c > '~' }) { // it is not escaped when it is printed
		text = "'" + strings.ReplaceAll(f.grep, "'", `'\''`) + "'"
	}
	if f.previous {
		container += " --previous"
	}
	if s.From.IsZero() {
		return fmt.Sprintf("search the output of podstead logs %s -c %s with grep -i", pod, container)
	}
	return fmt.Sprintf("continue with podstead logs %s -c %s --since-time %s --grep %s",
		pod, container, s.From.Format(time.RFC3339Nano), text)
}

// prefixOf returns the prefix of the lines.
func (f *logsFlags) prefixOf(cmd *cobra.Command, pods []api.Pod) view.Prefix {
	several := len(pods) > 1 || len(f.containers) > 1
	if len(pods) == 1 && len(f.containers) == 0 {
		several = len(containersOf(&pods[0])) > 1
	}
	switch {
	case f.prefix:
		return view.PodPrefix
	case several && !cmd.Flags().Changed("prefix"):
		return view.DefaultPrefix
	}
	return view.NoPrefix
}

// daemonLogs is a watcher that returns logs.
type daemonLogs struct{ *watcher }

// Output is the method of [api.Client].
func (d daemonLogs) Output(ctx context.Context, pod string, q client.OutputQuery) iter.Seq2[api.Line, error] {
	return d.Client.Output(ctx, pod, q)
}

// errorWriter keeps the first error of its writer. It is safe for concurrent use.
type errorWriter struct {
	io.Writer

	mu  sync.Mutex
	err error
}

// Write writes, unless a write has failed before.
func (w *errorWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.Writer.Write(p)
	w.err = err
	return n, err
}

func (w *errorWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
