package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/config"
	"github.com/podstead/podstead/cmd/podstead/internal/daemon"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
)

// app is the program with what it is given from outside.
type app struct {
	in       io.Reader
	out, err io.Writer
	// start starts the daemon's engine.
	start func(context.Context, *config.Config, logger) (daemon.Runtime, error)
}

// run carries out a command line and returns the exit status.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root() //nolint:contextcheck // a command has its context from ExecuteContext
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	return a.report(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "podstead",
		Short: "Kubernetes-grade pods on one machine, without Kubernetes",
		Long: `Podstead runs pods on one machine: files that say which containers belong together, in which order
they start, when they are restarted and how they end, with the names and meanings of the Kubernetes Pod API.

Every command is a client of the daemon. It is started on demand, and ends when nobody needs it.`,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE:                       unknown,
		SilenceUsage:               true,
		SilenceErrors:              true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%w", err) })
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.String("config", "", "configuration file (default "+config.DefaultPath+"; PODSTEAD_CONFIG)")
	for _, s := range config.Settings() {
		if s.Global {
			flags.String(s.Flag, "", describe(&s))
		}
	}
	root.AddCommand(
		a.runCommand(), a.validateCommand(), a.getCommand(), a.logsCommand(), a.eventsCommand(), a.whyCommand(), a.deleteCommand(), a.volumeCommand(),
		a.daemonCommand(), a.doctorCommand(), a.versionCommand(),
	)
	root.AddCommand(habits()...)
	return root
}

// describe is the help of a setting's flag.
func describe(s *config.Setting) string {
	if s.Default == "" {
		return s.Help + " (" + s.Env + ")"
	}
	return s.Help + " (default " + s.Default + "; " + s.Env + ")"
}

// config reads the settings of a command.
func (a *app) config(cmd *cobra.Command) (*config.Config, error) {
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
	})
	if err != nil {
		return nil, &failure{status: statusUsage, err: err}
	}
	return c, api.CheckSocket(c.Socket)
}

// connect returns how to reach the daemon, without reaching for it yet.
func (a *app) connect(cmd *cobra.Command) (*ondemand.Starter, error) {
	c, err := a.config(cmd)
	if err != nil {
		return nil, err
	}
	args := []string{
		"daemon", "--on-demand", "--socket", c.Socket, "--state-dir", c.StateDir, "--run-dir", c.RunDir, "--log-dir", c.LogDir,
		"--config-dir", c.ConfigDir,
	}
	if f := cmd.Flags().Lookup("config"); f != nil && f.Changed {
		path, err := filepath.Abs(f.Value.String())
		if err != nil {
			return nil, err
		}
		args = append(args, "--config", path)
	}
	return &ondemand.Starter{
		Client: api.NewClient(c.Socket, cmd.CommandPath()),
		Args:   args,
		Log:    filepath.Join(c.StateDir, "daemon.log"),
		Say:    func(message string) { a.note("%s", message) },
	}, nil
}

// client returns a client of a daemon that answers.
func (a *app) client(cmd *cobra.Command) (*api.Client, error) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, err
	}
	return s.Client, s.Connect(cmd.Context())
}

// colour reports whether the output is for a person who sees colours.
func (a *app) colour() bool {
	f, ok := a.out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}
