package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/rootless"
)

// addScopeFlags adds the flags that select the daemon of the system or that of the user.
func addScopeFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.Bool("system", false, "use the system's daemon, also if this user has no access to it")
	flags.Bool("user", false, "use the daemon of this user, without root")
	root.MarkFlagsMutuallyExclusive("system", "user")
}

// userDefaults returns the defaults of the daemon of this user; nil: the system's daemon is meant. That is so for root, for a user with
// access to its socket, and for commands that name a socket or a runtime directory.
func (a *app) userDefaults(cmd *cobra.Command) (map[string]string, error) {
	system, err := cmd.Flags().GetBool("system")
	if err != nil {
		return nil, err
	}
	user, err := cmd.Flags().GetBool("user")
	if err != nil {
		return nil, err
	}
	inside := rootless.Inside()
	switch {
	case inside:
		return xdgDefaults(0)
	case user && os.Geteuid() == 0:
		return nil, &failure{
			status: statusUsage, err: errors.New("--user: root uses the system's daemon"),
			hints: []string{"use another user, or omit the flag"},
		}
	case system, os.Geteuid() == 0, !user && namesDaemon(cmd):
		return nil, nil
	}
	if !user && systemAccess() {
		defaults, err := config.UserDefaults(os.LookupEnv, os.Geteuid())
		if err == nil && !a.scoped && hasPods(defaults["stateDir"]) {
			a.scoped = true
			a.note("using the system's daemon: pods of the daemon of this user are shown with --user")
		}
		return nil, nil
	}
	return xdgDefaults(os.Geteuid())
}

// xdgDefaults returns the defaults of a user, or an error with a hint.
func xdgDefaults(uid int) (map[string]string, error) {
	defaults, err := config.UserDefaults(os.LookupEnv, uid)
	if errors.Is(err, config.ErrNoRuntimeDir) {
		return nil, &failure{status: statusUsage, err: err, hints: []string{
			"set one, to a directory of your own with mode 0700 in memory, or log in with a session of systemd-logind",
			"for pods of the system, run the command as root or as a member of group podstead",
		}}
	}
	return defaults, err
}

// namesDaemon reports whether a command names the socket or the runtime directory of a daemon.
func namesDaemon(cmd *cobra.Command) bool {
	for _, s := range config.Settings() {
		if s.Key != "socket" && s.Key != "runDir" {
			continue
		}
		if _, set := os.LookupEnv(s.Env); set {
			return true
		}
		if f := cmd.Flags().Lookup(s.Flag); f != nil && f.Changed {
			return true
		}
	}
	return false
}

// systemAccess reports whether this user has access to a socket of the system's daemon with its default configuration.
func systemAccess() bool {
	c, err := config.Load(config.Sources{})
	if c == nil && err != nil {
		return false
	}
	const writable = unix.W_OK // what connect(2) requires
	return unix.Faccessat(unix.AT_FDCWD, c.Socket, writable, unix.AT_EACCESS) == nil ||
		c.HasReadOnlySocket() && unix.Faccessat(unix.AT_FDCWD, c.ReadOnlySocket, writable, unix.AT_EACCESS) == nil
}

// hasPods reports whether a state directory has pods.
func hasPods(stateDir string) bool {
	files, _ := filepath.Glob(filepath.Join(stateDir, "pods", "*.json"))
	return len(files) > 0
}

// namespaces returns the namespaces of the daemon of a user.
func (a *app) namespaces(c *config.Config) (*rootless.Namespaces, error) {
	holder, err := daemon.MonitorPath()
	if err != nil {
		return nil, err
	}
	return &rootless.Namespaces{
		StateDir: c.StateDir, RunDir: c.RunDir, Holder: holder,
		Warn: func(message string) { a.note("warning: %s", message) },
	}, nil
}

// enterNamespaces executes this program in the namespaces of the user's daemon. It does nothing if it is in them, or if the daemon is the
// system's.
func (a *app) enterNamespaces(ctx context.Context, c *config.Config, reporter *ondemand.Reporter) error {
	if !c.Rootless() || rootless.Inside() {
		return nil
	}
	n, err := a.namespaces(c)
	if err != nil {
		return err
	}
	n.Inherit = reporter.Descriptors()
	return n.Enter(ctx)
}

// inNamespaces changes the options of a daemon that is in the namespaces of a user. The returned function removes them, if nothing uses
// them after the daemon.
func (a *app) inNamespaces(o *daemon.Options) (release func(context.Context) error, err error) {
	if !rootless.Inside() {
		return func(context.Context) error { return nil }, nil
	}
	n, err := a.namespaces(o.Config)
	if err == nil {
		err = n.Entered()
	}
	if err != nil {
		return nil, err
	}
	start := o.Start
	o.Start = func(ctx context.Context, c *config.Config, log *slog.Logger) (daemon.Runtime, error) {
		rt, err := start(ctx, c, log)
		if err != nil {
			return nil, err
		}
		if err := n.Keep(ctx); err != nil {
			return nil, errors.Join(err, rt.Close())
		}
		return rt, nil
	}
	o.Cgroup = "" // it cannot create one
	return n.Release, nil
}
