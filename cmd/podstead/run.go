package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/foreground"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
)

// runFlags are the flags of run.
type runFlags struct {
	remove  bool
	timeout time.Duration
	grace   int
	format  string
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run pods in the foreground",
		Long: `The pods of the files run until they have ended, or this command is told to end: Ctrl-C or SIGTERM ends
them gracefully, a second one at once. What their containers write comes on stdout, each line after its
container's name, and what happens to them on stderr.

A daemon that is lost meanwhile is started again, and the pods run on. If this command itself is lost, its
pods are ended after 30 seconds.

Exit status: 0 every pod succeeded, 1 one failed, 2 a file is wrong, 4 no daemon, 5 timed out.`,
		Example: `  podstead run examples/hello.toml
  podstead run web.toml db.toml --timeout 10m`,
		Args:              runArguments,
		ValidArgsFunction: completeFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runPods(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.remove, "rm", true, "take pods away that have ended; --rm=false keeps them for get and logs")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "end the pods after this time, with status 5")
	cmd.Flags().IntVar(&f.grace, "grace-period", -1, "seconds from a stop to SIGKILL, 1 at least (default the pod's own)")
	formats(cmd, &f.format, "json")
	return cmd
}

func runArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && isImage(args[0]) {
		return &failure{
			status: statusUsage, err: fmt.Errorf("run %s: no such file", args[0]),
			hints: []string{"podstead runs pod files, not images: write the image into one (see examples/hello.toml) and run that"},
		}
	}
	return someArguments("a pod file")(cmd, args)
}

func (a *app) runPods(cmd *cobra.Command, args []string, f *runFlags) error {
	requests, err := a.readFiles(args)
	if err != nil {
		return err
	}
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
	go func() {
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
	}()
	return foreground.Run(ctx, foreground.Options{
		Daemon: s.Client, Connect: s.Connect, Show: a.show(f.format), Session: uuid.NewString(), Keep: !f.remove,
		Grace: seconds(f.grace), Stops: stops, Timeout: f.timeout,
	}, requests)
}

// seconds is a grace period that was given; nil for none. None at all is what force is for, so that 0 is a second, as kubectl
// has it.
func seconds(n int) *time.Duration {
	if n < 0 {
		return nil
	}
	d := time.Duration(min(max(n, 1), math.MaxInt32)) * time.Second // no more than a pod file can say
	return &d
}

func (a *app) show(format string) foreground.Show {
	if format == "json" {
		return &view.JSON{Out: a.out, Err: a.err}
	}
	return &view.Human{Out: a.out, Err: a.err, Colour: a.colour()}
}

// readFiles reads pod files and checks them, as the daemon does, so that nothing is started for a file that is wrong.
func (a *app) readFiles(paths []string) ([]api.CreateRequest, error) {
	var requests []api.CreateRequest
	var errs []error
	names := map[string]string{} // the file of each pod
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		pod, text, err := a.readFile(path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case names[pod.Name] != "":
			errs = append(errs, fmt.Errorf("%s: pod %q is in %s too", path, pod.Name, names[pod.Name]))
		default:
			names[pod.Name] = path
			requests = append(requests, api.CreateRequest{File: absolute, Text: text})
		}
	}
	if len(errs) > 0 {
		return nil, wrongFiles(errs)
	}
	return requests, nil
}

// wrongFiles is the error of files that are wrong, of which the problems have been told already.
func wrongFiles(errs []error) error {
	told := errs[:0]
	for _, err := range errs {
		if !errors.Is(err, errTold) {
			told = append(told, err)
		}
	}
	f := &failure{status: statusUsage, err: errors.Join(told...)}
	if f.err == nil {
		f.err = errTold
	}
	return f
}
