package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/wait"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/rootless"
)

// newClient returns a client of the daemon. A user who has no access to its socket, but to the read-only one, gets a client of that: the
// daemon rejects requests to change something.
func newClient(cmd *cobra.Command, c *config.Config) (daemon *client.Client, readOnly bool) {
	const writable = unix.W_OK // what connect(2) requires
	socket := c.Socket
	if errors.Is(unix.Faccessat(unix.AT_FDCWD, socket, writable, unix.AT_EACCESS), unix.EACCES) && c.HasReadOnlySocket() &&
		unix.Faccessat(unix.AT_FDCWD, c.ReadOnlySocket, writable, unix.AT_EACCESS) == nil {
		socket, readOnly = c.ReadOnlySocket, true
	}
	return client.New(socket, commandPath(cmd)), readOnly
}

// running makes a client one for the daemon that runs. It starts none: not through a socket of systemd either, as a connection would.
func (a *app) running(c *client.Client) *client.Client {
	c.BeforeConnect(func(ctx context.Context) error {
		if a.idle != nil && a.idle(ctx, c.Socket()) {
			return errors.New("systemd has not started it")
		}
		return nil
	})
	return c
}

// connect returns a starter for the daemon. It does not connect yet.
func (a *app) connect(cmd *cobra.Command) (*ondemand.Starter, error) {
	c, err := a.config(cmd)
	if err != nil {
		return nil, err
	}
	if err := checkRuntimeDirs(c); err != nil {
		return nil, err
	}
	args := []string{
		"daemon", "--on-demand", "--socket", c.Socket, "--state-dir", c.StateDir, "--run-dir", c.RunDir, "--log-dir", c.LogDir,
		"--config-dir", c.ConfigDir, "--read-only-socket", c.ReadOnlySocket,
	}
	if c.Rootless() {
		args = append(args, "--user")
	}
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		path, err := filepath.Abs(f.Value.String())
		if err != nil {
			return nil, err
		}
		args = append(args, "--config", path)
	} else if path := c.File(); path != "" && filepath.Dir(path) != c.ConfigDir && os.Getenv("PODSTEAD_CONFIG") == "" {
		args = append(args, "--config", path) // it sets the configuration directory, which would be searched for it
	}
	if err := a.reconnect(cmd.Context(), c); err != nil {
		a.note("warning: %v", err)
	}
	if c.Rootless() && !rootless.Inside() {
		a.outlet = (&rootless.Namespaces{StateDir: c.StateDir, RunDir: c.RunDir}).Outlet
	}
	daemon, readOnly := newClient(cmd, c)
	var noStart *ondemand.Error
	if a.ofSystem {
		noStart = &ondemand.Error{
			Message: "the system's daemon does not run",
			Hints:   []string{"start it as root with systemctl start podstead, or use the daemon of this user (--user)"},
		}
	}
	return &ondemand.Starter{
		NoStart:  noStart,
		Client:   daemon,
		ReadOnly: readOnly,
		Args:     args,
		Log:      daemonLog(c),
		Notify:   func(message string) { a.note("%s", message) },
	}, nil
}

// client returns a client of the daemon, and starts the daemon if it is not running.
func (a *app) client(cmd *cobra.Command) (*client.Client, error) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	return s.Client, a.reach(cmd.Context(), s)
}

// reach connects to the daemon, and starts it if it is not running.
func (a *app) reach(ctx context.Context, s *ondemand.Starter) error {
	defer a.waiting("Waiting for the daemon")()
	defer a.noteOutlet()()
	return s.Connect(ctx)
}

// noteOutlet returns a function that reports once that pods do not reach other hosts, if the namespaces of a user were created meanwhile.
// The daemon, which has tried to connect them, writes to its log.
func (a *app) noteOutlet() func() {
	if a.outlet == nil {
		return func() {}
	}
	before, err := a.outlet()
	return func() {
		if o, afterErr := a.outlet(); err == nil && afterErr == nil && !before.Needed && o.Needed && o.PID == 0 && o.Error != "" {
			a.note("warning: pods do not reach other hosts, and no images are pulled: %s", o.Error)
		}
	}
}

// withClient makes a function with a client of the daemon one that a command runs.
func (a *app) withClient(run func(*cobra.Command, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.client(cmd)
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
}

// watcher is a connection to the daemon for commands that wait for pods. It implements [wait.Daemon].
type watcher struct {
	*ondemand.Starter
	waiting sync.Once
	// awaited are the names of the pods that the command waits for; true: what keeps it from being removed was printed.
	awaited map[string]bool
}

// watcher connects to the daemon, and starts it if it is not running.
func (a *app) watcher(cmd *cobra.Command) (*watcher, error) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	return &watcher{Starter: s, awaited: map[string]bool{}}, a.reach(cmd.Context(), s)
}

// Watch is the method of [api.Client]. It prints once what keeps an awaited pod from being removed.
func (w *watcher) Watch(ctx context.Context) iter.Seq2[api.PodChange, error] {
	return func(yield func(api.PodChange, error) bool) {
		for change, err := range w.Client.Watch(ctx) {
			if err == nil {
				w.printObstacle(&change.Object)
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// await sets that the command waits for a pod.
func (w *watcher) await(name string) {
	if _, awaited := w.awaited[name]; !awaited {
		w.awaited[name] = false
	}
}

// printObstacle prints what keeps a pod, or its sandbox before a restart, from being removed.
func (w *watcher) printObstacle(p *api.Pod) {
	name := p.Metadata.Name
	printed, awaited := w.awaited[name]
	if !awaited || printed {
		return
	}
	for _, c := range p.Status.Conditions {
		if c.Type == api.RemovalFailed && c.Status == "True" {
			w.awaited[name] = true
			w.Notify(fmt.Sprintf("pod/%s is not removed yet, trying again: %s", name, plain.Text(c.Message)))
		}
	}
}

// Connect is the method of [ondemand.Starter]. It prints once that the daemon was stopped.
func (w *watcher) Connect(ctx context.Context) error {
	err := w.Starter.Connect(ctx)
	if e, stopped := errors.AsType[*api.StoppedError](err); stopped && e.Pods > 0 {
		w.waiting.Do(func() { w.Notify(wait.DaemonStopped) })
	}
	return err
}

// eventsOf reads the events of a pod that is explained, without the values of its secrets.
func eventsOf(ctx context.Context, c *client.Client, e *api.Explanation) (events []api.Event, err error) {
	for ev, err := range c.Events(ctx, &client.EventQuery{Pod: e.Pod, UID: e.UID, Redact: true}) {
		if err != nil {
			return nil, err
		}
		if ev.Kind != api.EventsMissed {
			events = append(events, ev)
		}
	}
	return events, nil
}
