package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/rootless"
	"github.com/podstead/podstead/internal/server"
)

// addScopeFlags adds the flags that select the daemon of the system or that of the user.
func addScopeFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.Bool("system", false, "use the system's daemon, also if this user has no access to it")
	flags.Bool("user", false, "use the daemon of this user, without root")
	root.MarkFlagsMutuallyExclusive("system", "user")
}

// scope is what decides which daemon a command uses.
type scope struct {
	root         bool
	system, user bool // the flags
	named        bool // the socket or the runtime directory, by a flag, a variable or the file that is named
	member       bool // of a group with access to the system's daemon
	access       bool // to a socket of it, which exists
}

// own reports whether the daemon of the user is used. A member of a group with access uses the system's daemon whether it runs or not: else
// the pods of a command would depend on that.
func (s scope) own() bool {
	switch {
	case s.system || s.root:
		return false
	case s.user:
		return true
	}
	return !s.named && !s.member && !s.access
}

// userDefaults returns the defaults of the daemon of this user; nil: the system's daemon is meant, or the one that the command names. File
// is the configuration file that is named, empty if none is.
func (a *app) userDefaults(cmd *cobra.Command, file string) (map[string]string, error) {
	s := scope{root: os.Geteuid() == 0}
	var err1, err2 error
	s.system, err1 = cmd.Flags().GetBool("system")
	s.user, err2 = cmd.Flags().GetBool("user")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	switch {
	case rootless.Inside():
		return config.UserDefaults(os.LookupEnv, rootless.User())
	case s.user && s.root:
		return nil, &failure{
			status: statusUsage, err: errors.New("--user: root uses the system's daemon"),
			hints: []string{"use another user, or omit the flag"},
		}
	}
	if !s.root && !s.user && !s.system { // else nothing else counts
		c, _ := config.Load(config.Sources{File: file}) // loadConfig reports the error
		s.named = namesDaemon(cmd) || file != "" && c != nil && c.NamesDaemon()
		s.member, s.access = isMember(server.Group, server.ReadOnlyGroup), c != nil && hasAccess(c)
	}
	if !s.own() {
		a.ofSystem = !s.root && !s.named
		if s.member || s.access {
			a.noteScope(func() bool {
				defaults, err := config.UserDefaults(os.LookupEnv, os.Geteuid())
				return err == nil && hasPods(defaults["stateDir"])
			}, "using the system's daemon: pods of the daemon of this user are shown with --user")
		}
		return nil, nil
	}
	defaults, err := config.UserDefaults(os.LookupEnv, os.Geteuid())
	if err == nil && !s.user {
		a.noteScope(func() bool { return isInstalled(a.hostRoot) && !hasPods(defaults["stateDir"]) },
			"using the daemon of this user, who has no access to the system's daemon: --user and --system select one")
	}
	return defaults, err
}

// noteScope reports once which daemon is used, if a condition is met.
func (a *app) noteScope(met func() bool, text string) {
	if !a.scoped && met() {
		a.scoped = true
		a.note("%s", text)
	}
}

// checkRuntimeDirs checks the directories for runtime state of the daemon of a user.
func checkRuntimeDirs(c *config.Config) error {
	if !c.Rootless() {
		return nil
	}
	if err := c.CheckStateDir(os.Geteuid()); err != nil {
		return &failure{status: statusUsage, err: err, hints: []string{
			"use a directory of your own for XDG_DATA_HOME, in directories that only you and root can write to",
		}}
	}
	if err := c.CheckRuntimeDirs(os.Geteuid()); err != nil {
		return &failure{status: statusUsage, err: err, hints: []string{
			"use a directory of your own with mode 0700 in memory for XDG_RUNTIME_DIR, or log in with a session of systemd-logind",
			"for pods of the system, run the command as root or as a member of group podstead",
		}}
	}
	return nil
}

// namesDaemon reports whether a flag or a variable names the socket or the runtime directory of a daemon.
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

// isMember reports whether this process is in one of these groups. A user who was added to a group is in it after the next login.
func isMember(names ...string) bool {
	own, err := os.Getgroups()
	if err != nil {
		return false
	}
	own = append(own, os.Getegid())
	return slices.ContainsFunc(names, func(name string) bool {
		g, err := user.LookupGroup(name)
		if err != nil {
			return false
		}
		id, err := strconv.Atoi(g.Gid)
		return err == nil && slices.Contains(own, id)
	})
}

// hasAccess reports whether this user has access to a socket that exists.
func hasAccess(c *config.Config) bool {
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
		StateDir: c.StateDir, RunDir: c.RunDir, LogDir: c.LogDir, Holder: holder,
		Warn: func(message string) { a.note("warning: %s", message) },
	}, nil
}

// enterNamespaces executes this program in the namespaces of the user's daemon. It does nothing if it is in them, or if the daemon is the
// system's.
func (a *app) enterNamespaces(cmd *cobra.Command, c *config.Config, reporter *ondemand.Reporter) error {
	if !c.Rootless() || rootless.Inside() {
		return nil
	}
	if err := checkRuntimeDirs(c); err != nil {
		return err
	}
	n, err := a.namespaces(c)
	if err != nil {
		return err
	}
	file, err := configFile(cmd)
	if err != nil {
		return err
	}
	n.Inherit, n.Args = reporter.Descriptors(), os.Args[1:]
	if file != "" { // it can be relative to the working directory
		if file, err = filepath.Abs(file); err != nil {
			return err
		}
		n.Args = append(slices.Clone(n.Args), "--config", file)
	}
	return n.Enter(cmd.Context())
}

// reconnect starts pasta for the pods of the user again, if it does not run.
func (a *app) reconnect(ctx context.Context, c *config.Config) error {
	if !c.Rootless() || rootless.Inside() {
		return nil
	}
	n, err := a.namespaces(c)
	if err != nil {
		return err
	}
	return n.Reconnect(ctx, config.UserRuntimeDir(os.LookupEnv, os.Geteuid()))
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
	onDemand := o.Version.OnDemand
	o.Start = func(ctx context.Context, c *config.Config, log *slog.Logger) (daemon.Runtime, error) {
		c.SetCgroup(delegated(ctx, n, onDemand, log))
		rt, err := start(ctx, c, log)
		if err != nil {
			return nil, err
		}
		if err := n.Keep(ctx); err != nil {
			return nil, errors.Join(err, rt.Close())
		}
		return rt, nil
	}
	o.Cgroup = "" // it is in the scope of the pods
	return n.Release, nil
}

// delegated returns the cgroup for the pods of a user. Without it they run without cgroups.
func delegated(ctx context.Context, n *rootless.Namespaces, onDemand bool, log *slog.Logger) config.Cgroup {
	d, err := n.Delegate(ctx, config.UserRuntimeDir(os.LookupEnv, rootless.User()), onDemand)
	if err != nil {
		log.InfoContext(ctx, "pods run without cgroups", slog.Any("error", err))
		return config.Cgroup{Missing: err.Error()}
	}
	return config.Cgroup{Path: d.Cgroup, Controllers: d.Controllers}
}
