package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/rootless"
	"github.com/podstead/podstead/internal/server"
)

func (a *app) daemonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Run the daemon in the foreground",
		Long: `Run the daemon, with its embedded container engine, in the foreground. It supervises all pods of this host. Only one
daemon can run on a host. Run it as a service, or let commands start it on demand.

SIGTERM stops the daemon. Containers keep running, and the next daemon recovers them.

SIGHUP reloads the configuration. An event reports the settings that changed, and those that need a restart of the daemon.

Every key of the configuration file has a flag and an environment variable, such as --engine-runtime and
PODSTEAD_ENGINE_RUNTIME for the key engine.runtime. docs/reference/configuration.md, which is also the manual page
podstead.toml(5), lists them.`,
		Example: `  # Run the daemon with the systemd cgroup driver
  podstead daemon --engine-cgroup-driver systemd

  # Enforce the baseline Pod Security Standard
  podstead daemon --policy-pod-security baseline`,
		Args: noArguments,
		RunE: a.daemon,
	}
	for _, s := range config.Settings() {
		if !s.Global {
			cmd.Flags().Var(&settingFlag{kind: s.Kind()}, s.Flag, s.Help)
			hide(cmd, s.Flag)
		}
	}
	cmd.Flags().Bool("on-demand", false, "exit when idle, and report the result of the start on file descriptor 3")
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
	c, err := a.daemonConfig(cmd)
	invalid, _ := errors.AsType[*config.FileError](err)
	switch {
	case invalid != nil && invalid.LastValid:
		a.warnConfig(invalid, c.Socket)
		err = a.serve(cmd, c, onDemand, reporter, invalid)
	case err == nil:
		err = a.serve(cmd, c, onDemand, reporter, nil)
	default:
		c = &config.Config{}
	}
	if err != nil {
		f := explainDaemon(err, c)
		reporter.Failed(f.Error(), f.hints, f.status)
		if f.status == ondemand.StatusInUse {
			f.status = statusFailed
		}
		return f
	}
	return nil
}

// daemonConfig loads the configuration of a daemon, which can also read the keys that it names.
func (a *app) daemonConfig(cmd *cobra.Command) (*config.Config, error) {
	return a.loadConfig(cmd, func(c *config.Config) error {
		_, err := c.Verification()
		return err
	})
}

// serve runs a daemon. Invalid is why a file is not used, and an earlier one is; nil: there is none.
func (a *app) serve(
	cmd *cobra.Command, c *config.Config, onDemand bool, reporter *ondemand.Reporter, invalid *config.FileError,
) (err error) {
	if err := a.enterNamespaces(cmd, c, reporter); err != nil {
		return err
	}
	unix.Umask(0o022)
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	reload := make(chan os.Signal, 1) // one reload covers all requests before it
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	// Without a handler, a write to the standard error kills the daemon if journald was stopped. Children do not inherit a handler.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	out := a.err
	if onDemand {
		out = ondemand.NewLog(daemonLog(c), os.Stderr, unix.Stdout, unix.Stderr)
	}
	log, flush := daemon.NewLog(out)
	defer flush()
	policy := c.Policy.Admission()
	v := api.Version{
		Version: version, Containerd: containerdVersion(), Runtime: c.Engine.Runtime, PID: os.Getpid(), OnDemand: onDemand,
		Policy: server.PolicyOf(&policy),
	}
	o := daemon.Options{
		Config: c, Start: a.start, Version: v, Ready: reporter.Ready,
		HostStopping: a.hostStopping,
		Log:          log, Reload: reload, Load: func() (*config.Config, error) { return a.daemonConfig(cmd) },
	}
	if invalid != nil {
		o.Invalid = invalid
	}
	if onDemand {
		o.Cgroup = daemon.CgroupOnDemand
	} else if o.Listeners, err = activation.Listeners(); err != nil {
		return fmt.Errorf("use the sockets of systemd: %w", err)
	}
	if o.HostStopping != nil && rootless.Inside() {
		o.HostStopping = daemon.UserStopping(config.UserRuntimeDir(os.LookupEnv, rootless.User()), rootless.User())
	}
	release, err := a.inNamespaces(&o)
	if err != nil {
		return err
	}
	return errors.Join(daemon.Run(ctx, o), release(context.WithoutCancel(ctx)))
}

func (a *app) daemonStopCommand() *cobra.Command {
	var pods, shutdown bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the daemon; containers keep running",
		Long: `Stop the daemon. Containers keep running without supervision until a daemon is started again and recovers them.

With --shutdown, all pods are first stopped in reverse order of their start, as at a shutdown of the host. Nothing of them is
deleted: the next daemon starts them again with their volumes, UIDs and restart counts, except those that were stopped before.
If the daemon was stopped and has left pods behind, a daemon is started that stops them.

With --pods, all pods are first stopped within their grace period and deleted. The files of the pods directory are kept, so their
pods start again with the next daemon.`,
		Example: `  # Stop the daemon, for example to upgrade it
  podstead daemon stop

  # Stop all pods and the daemon, as at a shutdown of the host
  podstead daemon stop --shutdown

  # Delete all pods and stop the daemon
  podstead daemon stop --pods`,
		Args: noArguments,
	}
	cmd.Flags().BoolVar(&pods, "pods", false, "stop and delete all pods first; pods of the pods directory start again with the next daemon")
	cmd.Flags().BoolVar(&shutdown, "shutdown", false,
		"stop all pods first, as at a shutdown of the host; the next daemon starts them again")
	cmd.MarkFlagsMutuallyExclusive("pods", "shutdown")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.daemonStop(cmd, pods, shutdown) }
	return cmd
}

func (a *app) daemonStop(cmd *cobra.Command, pods, shutdown bool) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	if shutdown && !hasRun(c) {
		a.note("no daemon has run since the host was booted, so no pods run")
		return nil
	}
	s, err := a.connect(cmd)
	if err != nil {
		return err
	}
	if e, _ := errors.AsType[*api.StoppedError](s.Client.Stopped()); shutdown && e != nil && e.Pods == 0 {
		a.note("the daemon was stopped, and no pods run")
		return nil
	}
	if pods || shutdown { // starts a daemon if none is running: a daemon that was killed leaves its pods behind
		if err := a.reach(cmd.Context(), s); err != nil {
			return err
		}
	}
	if pods {
		if err := a.deleteAll(cmd.Context(), &watcher{Starter: s}); err != nil {
			return err
		}
	}
	if !pods && !shutdown && a.idle != nil && a.idle(cmd.Context(), s.Client.Socket()) { // a connection would start the daemon
		a.note("no daemon is running")
		return nil
	}
	v, err := s.Client.Version(cmd.Context())
	if errors.Is(err, api.ErrUnavailable) && !errors.Is(err, os.ErrPermission) {
		a.note("no daemon is running")
		return nil
	}
	if err != nil {
		return err
	}
	if !shutdown {
		return a.stopDaemon(cmd.Context(), s.Client.StopDaemon, v.PID, daemonStopTimeout)
	}
	if err := a.stopDaemon(cmd.Context(), s.Client.ShutDownDaemon, v.PID, shutdownTimeout); err != nil {
		return err
	}
	if e, _ := errors.AsType[*api.StoppedError](s.Client.Stopped()); e != nil && e.Pods > 0 {
		return &failure{
			status: statusFailed, err: fmt.Errorf("stop pods: %d did not stop", e.Pods),
			hints: []string{"see why with podstead why, end what it names, and run podstead daemon stop --shutdown again"},
		}
	}
	return nil
}

// hasRun reports whether a daemon has run since the host was booted: it makes a directory for the state of pods of this boot.
func hasRun(c *config.Config) bool {
	_, err := os.Stat(filepath.Join(c.RunDir, "pods"))
	return !errors.Is(err, fs.ErrNotExist)
}

const (
	// daemonStopTimeout is longer than the daemon gives its own parts to stop.
	daemonStopTimeout = time.Minute
	// shutdownTimeout is longer than grace periods are. The daemon itself bounds the stop of pods.
	shutdownTimeout = 24 * time.Hour
)

// stopDaemon stops the daemon and waits until its process has exited.
func (a *app) stopDaemon(ctx context.Context, stop func(context.Context) error, pid int, limit time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := stop(ctx); err != nil {
		return err
	}
	defer a.waiting("Waiting until the daemon is stopped")()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for ctx.Err() == nil {
		// Poll in intervals of 200 ms, to notice the end of the context.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return &failure{status: statusTimeout, err: fmt.Errorf("stop daemon: process %d did not exit within %v", pid, limit)}
}

// deleteAll stops and deletes all pods. It keeps the files of the pods directory.
func (a *app) deleteAll(ctx context.Context, w *watcher) error {
	if err := w.Client.SuspendFiles(ctx); err != nil {
		return err
	}
	list, err := w.Client.Pods(ctx)
	if err != nil {
		return err
	}
	pods := slices.DeleteFunc(list.Items, func(p api.Pod) bool { return p.Metadata.UID == "" }) // a file that is refused
	return a.remove(ctx, w, pods, client.StopOptions{KeepFile: true}, true)
}
