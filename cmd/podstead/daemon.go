package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
)

type (
	logger       = *slog.Logger
	daemonPlaces = config.Config
)

func (a *app) daemonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Run the supervisor with its engine in the foreground",
		Long: `The daemon supervises pods, with the container engine in its own process. There is one for each machine.
A service manager runs it, or a command starts it on demand.

SIGTERM makes it leave: containers run on, and the next daemon takes them up.`,
		Args: noArguments,
		RunE: a.daemon,
	}
	cmd.Flags().SortFlags = false
	for _, s := range config.Settings() {
		if !s.Global {
			cmd.Flags().String(s.Flag, "", describe(&s))
		}
	}
	cmd.Flags().Bool("on-demand", false, "end when nobody needs it, and tell on descriptor 3 how the start went")
	_ = cmd.Flags().MarkHidden("on-demand")
	cmd.AddCommand(a.daemonStopCommand())
	return cmd
}

func (a *app) daemon(cmd *cobra.Command, _ []string) error {
	onDemand, err := cmd.Flags().GetBool("on-demand")
	if err != nil {
		return err
	}
	reporter := &ondemand.Reporter{}
	if onDemand {
		reporter = ondemand.NewReporter()
	}
	c, err := a.config(cmd)
	if err == nil {
		err = a.serve(cmd.Context(), c, onDemand, reporter)
	} else {
		c = &config.Config{}
	}
	if err != nil {
		f := explainDaemon(err, *c)
		reporter.Failed(f.Error(), f.hints, f.status)
		if f.status == ondemand.StatusInUse {
			f.status = statusFailed
		}
		return f
	}
	return nil
}

func (a *app) serve(ctx context.Context, c *config.Config, onDemand bool, reporter *ondemand.Reporter) error {
	unix.Umask(0o022)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	policy := c.Policy.OfPods()
	v := api.Version{
		Version: version, Containerd: containerdVersion(), Runtime: c.Engine.Runtime, PID: os.Getpid(), OnDemand: onDemand, Policy: &policy,
	}
	o := daemon.Options{
		Config: c, Start: a.start, Version: v, Ready: reporter.Ready,
		Log: slog.New(slog.NewTextHandler(a.err, nil)),
	}
	if onDemand {
		o.Cgroup = daemon.CgroupOnDemand
	}
	return daemon.Run(ctx, o)
}

// containerdVersion is that of the engine in this program.
func containerdVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/containerd/containerd/v2" {
				return m.Version
			}
		}
	}
	return "unknown"
}

func (a *app) daemonStopCommand() *cobra.Command {
	var pods bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Make the daemon leave; containers run on",
		Long: `The daemon ends, and containers run on without supervision until the next one takes them up.

With --pods every pod is ended and taken away before, within its grace period.`,
		Args: noArguments,
	}
	cmd.Flags().BoolVar(&pods, "pods", false, "end all pods first")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.connect(cmd)
		if err != nil {
			return err
		}
		if pods { // those that a lost daemon has left, too
			if err := s.Connect(cmd.Context()); err != nil {
				return err
			}
			if err := a.endPods(cmd.Context(), s.Client); err != nil {
				return err
			}
		}
		v, err := s.Client.Version(cmd.Context())
		if errors.Is(err, api.ErrUnavailable) && !errors.Is(err, os.ErrPermission) {
			a.note("no daemon is running")
			return nil
		}
		if err != nil {
			return err
		}
		return leave(cmd.Context(), s.Client, v.PID)
	}
	return cmd
}

// leaveLimit is what a daemon has to leave; above what it gives its own parts.
const leaveLimit = time.Minute

// leave asks the daemon to leave and waits until its process has ended.
func leave(ctx context.Context, client *api.Client, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := client.Leave(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	for ctx.Err() == nil {
		// In slices, so that the context is heeded.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return &failure{status: statusTimeout, err: errors.New("stop daemon: it has heard it and does not end")}
}

// endPods ends and takes away all pods.
func (a *app) endPods(ctx context.Context, client *api.Client) error {
	list, err := client.Pods(ctx)
	if err != nil {
		return err
	}
	return a.remove(ctx, client, list.Items, nil, true)
}
