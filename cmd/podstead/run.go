package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/podstead/podstead/cmd/podstead/internal/foreground"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/terminal"
	"github.com/podstead/podstead/internal/view"
)

// runFlags are the flags of run.
type runFlags struct {
	remove  bool
	timeout time.Duration
	grace   int
	format  string
	quiet   bool
	level   string
	detach  bool

	container string
	streams   streamFlags
}

const runHelp = `Run the pods of the given files, or of all pod files of a directory, and wait until they terminate. The output of
containers goes to stdout, each line prefixed with the name of its container. Events go to stderr.

The file - is standard input, in TOML, YAML or JSON.

With --stdin, one container reads the standard input of this command, and its output goes to stdout without a prefix;
that of other containers goes to stderr. With --tty as well, the container has a terminal: keys such as Ctrl-C reach it,
and only warnings are printed until it runs. The flags set stdin and tty of the container, and restartPolicy = "Never"
for it and, if the file sets none, for the pod. The pod is stopped when the container exits, or after the detach keys.

With --detach, the command is podstead apply: it writes the files to the pods directory and returns. To wait until the
pods are ready, run podstead apply with --wait.

Ctrl-C or SIGTERM stops the pods within their grace period. A second signal kills them. If the daemon is killed, it is
restarted and the pods keep running. If the daemon is stopped on request, this command waits until another command
starts it. If this command is killed, the daemon stops its pods after 30 seconds. Until then, the same command with the
same files takes the pods over. While they are stopping, it waits until they are deleted, and creates them again.
With --rm=false, terminated pods are kept with their logs, until a run of pods with their names in the same directory replaces them.

With the name of a pod and a command, run creates a pod with the definition of the pod, and runs the command in place of
one container: with its image, environment, volumes and network, but without the other containers, ports, probes, hooks
and waitFor. The pod NAME need not run. Persistent volumes are shared with it, others are new. A command with flags
follows --, and so does the command of a pod whose name is also that of a file in the current directory. The exit code
is that of the command.

Exit codes: 0 all pods succeeded, 1 a pod failed or could not be deleted, 2 a pod file is invalid, 4 the daemon is
unavailable, 5 timeout. With --stdin, that of the container if it has exited.`

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run FILE|DIR|-... | run POD [--] COMMAND...",
		Aliases: []string{"up"},
		Short:   "Run pods in the foreground",
		Long:    runHelp,
		Example: `  # Run a pod and show its output
  podstead run examples/hello.toml

  # Run two pods for at most 10 minutes
  podstead run web.toml db.toml --timeout 10m

  # Run a pod of a cluster
  kubectl get pod web -o yaml | podstead run -

  # Run a pod and show its events only
  podstead run examples/hello.toml --quiet

  # Open a shell in a new pod, and delete the pod when the shell exits
  podstead run -it console.toml

  # Pass a file to a container of a new pod, and store its output
  podstead run -i db.toml -c import <data.sql >report

  # Run a migration with the image, the environment and the volumes of a pod
  podstead run web -- env

  # Open a shell with the volumes of a pod that does not start
  podstead run -it db -- sh

  # Keep the pod with its logs until the next run, such as for a job that a timer runs
  podstead run job.toml --rm=false

  # Run a pod in the background, also after a reboot
  podstead run -d web.toml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if isOneOff(cmd, args) {
				return nil
			}
			return podFileArguments(cmd, args)
		},
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPods(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "run the pods in the background, as podstead apply")
	cmd.Flags().BoolVarP(&f.streams.stdin, "stdin", "i", false, "pass stdin to a container")
	cmd.Flags().BoolVarP(&f.streams.tty, "tty", "t", false, "run the container in a terminal; requires --stdin")
	cmd.Flags().StringVarP(&f.container, "container", "c", "",
		"`name` of the container for --stdin (default the only one) or COMMAND (default the first)")
	cmd.Flags().StringVar(&f.streams.detachKeys, "detach-keys", terminal.DefaultDetachKeys, "`keys` that stop the pod in a terminal; empty for none")
	cmd.Flags().BoolVar(&f.remove, "rm", true, "delete terminated pods; --rm=false keeps them for get, logs and why until the next run")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "stop the pods after this `duration`, such as 10m, and exit with code 5 (default none)")
	graceFlag(cmd, &f.grace)
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "do not print the output of containers")
	levelFlag(cmd, &f.level)
	formats(cmd, &f.format, "json")
	return cmd
}

func (a *app) runPods(cmd *cobra.Command, args []string, f *runFlags) error {
	if isOneOff(cmd, args) {
		return a.runOnce(cmd, args[0], args[1:], f)
	}
	if f.detach {
		for _, name := range []string{"rm", "timeout", "grace-period", "quiet", "output", "stdin", "tty", "container", "detach-keys"} {
			if cmd.Flags().Changed(name) {
				return usage(cmd, "--%s cannot be combined with --detach", name)
			}
		}
		return a.apply(cmd, args, &applyFlags{level: f.level})
	}
	level, err := a.level(cmd, f.level)
	if err != nil {
		return err
	}
	if f.isInteractive(cmd) {
		return a.runInteractive(cmd, args, f, level)
	}
	requests, err := a.readFiles(cmd, args, level)
	if err != nil {
		return err
	}
	return a.inForeground(cmd, f, a.printer(f), func(ctx context.Context, _ *ondemand.Starter, o foreground.Options) error {
		return foreground.Run(ctx, o, requests)
	})
}

// inForeground connects to the daemon, and calls run with the options of the flags.
func (a *app) inForeground(
	cmd *cobra.Command, f *runFlags, printer foreground.Printer, run func(context.Context, *ondemand.Starter, foreground.Options) error,
) error {
	s, err := a.connect(cmd)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	connecting, done := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	err = s.Connect(connecting)
	done()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	stops := make(chan struct{})
	go forward(ctx, signals, stops)
	o := foreground.Options{
		Daemon: s.Client, Connect: s.Connect, Printer: printer, Session: uuid.NewString(), Keep: !f.remove,
		Grace: gracePeriod(f.grace), Stops: stops, Timeout: f.timeout,
	}
	if t, ok := o.Printer.(*view.Text); ok && t.Width != nil {
		o.Progress = t.Progress
	}
	return run(ctx, s, o)
}

// forward sends a value to stops for each signal, until the context ends.
func forward(ctx context.Context, signals <-chan os.Signal, stops chan<- struct{}) {
	for {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		select {
		case stops <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// gracePeriod returns the duration of a --grace-period, nil if it is negative. As in kubectl, 0 becomes 1 second: only --force kills
// immediately.
func gracePeriod(n int) *time.Duration {
	if n < 0 {
		return nil
	}
	d := time.Duration(min(max(n, 1), math.MaxInt32)) * time.Second // the limit of terminationGracePeriodSeconds
	return &d
}

func (a *app) printer(f *runFlags) foreground.Printer {
	if f.format == "json" {
		return &view.JSON{Out: a.out, Err: a.err, Quiet: f.quiet}
	}
	return &view.Text{Out: a.out, Err: a.err, Colour: a.colour(), Quiet: f.quiet, Escape: a.isTerminal(), Width: a.width()}
}

// invalidFiles joins the errors of pod files, without those whose problems were printed before.
func invalidFiles(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errInvalidFile) })
	return &failure{status: statusUsage, err: cmp.Or(errors.Join(errs...), errInvalidFile)}
}
