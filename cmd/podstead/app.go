package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// app is the program with its inputs and outputs.
type app struct {
	in       io.Reader
	out, err io.Writer
	// hostRoot is the root directory with the units of systemd; empty: there are none.
	hostRoot string
	// start starts the daemon's container engine.
	start func(context.Context, *config.Config, logger) (daemon.Runtime, error)
	// idle is [serviceIdle]; nil: there is no systemd.
	idle func(ctx context.Context, socket string) bool
	// hostStopping is [daemon.HostStopping]; nil: there is no systemd.
	hostStopping func(context.Context) (bool, error)

	args   []string // the command line
	warned bool     // of the configuration file
}

// run executes a command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root() //nolint:contextcheck // a command has its context from ExecuteContext
	a.args = args
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.report(root.ExecuteContext(ctx))
}

const rootHelp = `Podstead runs pods on a single host with the semantics of the Kubernetes Pod API. A pod file defines the
containers of a pod, their start order, probes, restart policy and volumes.

Every command is a client of the daemon. A command starts the daemon if it is not running. A daemon that was
started this way exits when it is idle.

On a terminal, tables fit its width, problems are red, and a line shows what a command waits for. NO_COLOR turns
colours off.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "podstead",
		Short: "Kubernetes-grade pods on one machine, without Kubernetes",
		Long:  rootHelp,
		Example: `  # Check that this host can run pods
  podstead doctor

  # Run a pod in the foreground
  podstead run examples/hello.toml

  # Run a pod in the background, also after a reboot
  podstead apply web.toml

  # Explain why pods restarted, failed or are waiting
  podstead why`,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE:                       runRoot,
		SilenceUsage:               true,
		SilenceErrors:              true,
	}
	// cobra would print it with a template, which makes the program larger (TestMethodsByName).
	root.Flags().Bool("version", false, "print the version of podstead")
	hide(root, "version")
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.String("config", "", "configuration `file` (default podstead.toml in the configuration directory; PODSTEAD_CONFIG)")
	for _, s := range config.Settings() {
		if s.Global {
			flags.Var(&settingFlag{kind: s.Kind()}, s.Flag, settingHelp(&s))
		}
	}
	addNamespaceFlag(root)
	root.SetHelpFunc(printHelp)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		a.applyCommand(), a.attachCommand(), a.bundleCommand(), a.conditionCommand(), a.cpCommand(), a.daemonCommand(), a.debugCommand(),
		a.deleteCommand(), a.describeCommand(), a.doctorCommand(), a.editCommand(), a.eventsCommand(), a.execCommand(), a.getCommand(),
		a.imageCommand(), a.loginCommand(), a.logoutCommand(), a.logsCommand(), a.metricsCommand(), a.notifyCommand(), a.planCommand(),
		a.portForwardCommand(), a.psCommand(), a.restartCommand(), a.rolloutCommand(), a.runCommand(), a.startCommand(), a.stopCommand(),
		a.supportBundleCommand(), a.systemCommand(), a.topCommand(), a.validateCommand(), a.versionCommand(), a.volumeCommand(),
		a.waitCommand(), a.whyCommand(),
	)
	root.AddCommand(a.otherNames()...)
	root.AddCommand(hintCommands(commandHints)...)
	root.AddCommand(a.unitCommand())
	return root
}

// settingFlag holds the text of a setting's flag. Package config parses it.
type settingFlag struct{ text, kind string }

// String returns the text.
func (f *settingFlag) String() string { return f.text }

// Set sets the text.
func (f *settingFlag) Set(text string) error {
	f.text = text
	return nil
}

// Type is the placeholder for the value in the help.
func (f *settingFlag) Type() string { return f.kind }

// settingHelp returns the help of a setting's flag, with its default and its environment variable.
func settingHelp(s *config.Setting) string {
	if s.DefaultHelp == "" {
		return s.Help + " (" + s.Env + ")"
	}
	return s.Help + " (default " + s.DefaultHelp + "; " + s.Env + ")"
}

// config loads the configuration of a client. It warns of a file that cannot be used, and goes on with the last valid one: pods and the
// daemon run on, and a person must be able to look at them.
func (a *app) config(cmd *cobra.Command) (*config.Config, error) {
	c, err := a.loadConfig(cmd, nil)
	if invalid, ok := errors.AsType[*config.FileError](err); ok {
		a.warnConfig(invalid, c.Socket)
		return c, checkSockets(c)
	}
	return c, err
}

// warnConfig warns of a configuration file that cannot be used, once. If the daemon may use another one, it names the socket that is tried.
func (a *app) warnConfig(invalid *config.FileError, socket string) {
	if a.warned {
		return
	}
	a.warned = true
	first, more, _ := strings.Cut(invalid.Error(), "\n")
	if more != "" {
		first += fmt.Sprintf(" (and %d more)", strings.Count(more, "\n")+1)
	}
	state, instead := "is invalid", "what is valid in it is used"
	if errors.Is(invalid, fs.ErrPermission) {
		state, instead = "cannot be read", "defaults are used"
	}
	switch {
	case invalid.LastValid:
		instead = "the last valid file is used"
	case invalid.Hidden:
		instead += " with the socket " + socket
	}
	a.note("warning: the configuration file %s, %s: %s", state, instead, first)
	if problems := spec.Problems(nil); errors.As(invalid.Err, &problems) && len(problems) > 0 && problems[0].Hint != "" {
		a.hint(problems[0].Hint)
	}
}

// loadConfig loads the configuration like [config.Load]. The check is [config.Sources.Check].
func (a *app) loadConfig(cmd *cobra.Command, check func(*config.Config) error) (*config.Config, error) {
	file, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, err
	}
	c, err := config.Load(config.Sources{
		File: cmp.Or(file, os.Getenv("PODSTEAD_CONFIG")),
		Env:  os.LookupEnv,
		Flag: func(name string) (string, bool) {
			f := cmd.Flags().Lookup(name)
			if f == nil || !f.Changed {
				return "", false
			}
			return f.Value.String(), true
		},
		Check: check,
	})
	if err != nil {
		return c, &failure{status: statusUsage, err: err}
	}
	return c, checkSockets(c)
}

func checkSockets(c *config.Config) error {
	if c.HasReadOnlySocket() {
		if err := api.CheckSocket(c.ReadOnlySocket); err != nil {
			return err
		}
	}
	return api.CheckSocket(c.Socket)
}

// newClient returns a client of the daemon. A user who has no access to its socket, but to the read-only one, gets a client of that: the
// daemon rejects requests to change something.
func newClient(cmd *cobra.Command, c *config.Config) (daemon *client.Client, readOnly bool) {
	const writable = unix.W_OK // what connect(2) requires
	socket := c.Socket
	if errors.Is(unix.Faccessat(unix.AT_FDCWD, socket, writable, unix.AT_EACCESS), unix.EACCES) && c.HasReadOnlySocket() &&
		unix.Faccessat(unix.AT_FDCWD, c.ReadOnlySocket, writable, unix.AT_EACCESS) == nil {
		socket, readOnly = c.ReadOnlySocket, true
	}
	return client.New(socket, cmd.CommandPath()), readOnly
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
	args := []string{
		"daemon", "--on-demand", "--socket", c.Socket, "--state-dir", c.StateDir, "--run-dir", c.RunDir, "--log-dir", c.LogDir,
		"--config-dir", c.ConfigDir, "--read-only-socket", c.ReadOnlySocket,
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
	daemon, readOnly := newClient(cmd, c)
	return &ondemand.Starter{
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

// colour reports whether stdout is a terminal that shows colours (https://no-color.org).
func (a *app) colour() bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && a.isTerminal()
}

// width returns a function that returns the columns of the terminal that stderr is; nil: it is not a terminal, or cannot erase a line.
func (a *app) width() func() int {
	f, ok := a.err.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() int {
		const least = 80 // of a terminal that does not report its size
		columns, _, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 {
			return least
		}
		return columns
	}
}

// screen returns stdout for tables.
func (a *app) screen() view.Screen {
	s := view.Screen{W: a.out, Colour: a.colour()}
	if f, ok := a.out.(*os.File); ok && a.isTerminal() {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Width = columns
		}
	}
	return s
}

// isTerminal reports whether stdout is a terminal.
func (a *app) isTerminal() bool {
	f, ok := a.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// untilSignal returns a context that ends at the first SIGINT or SIGTERM, so that the command can remove an incomplete file. The next one
// has its default action: it ends a command that does not react to the first.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer cancel()
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
