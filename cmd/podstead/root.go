package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/config"
)

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

An ordinary user has a daemon without root. By default, its state is in ~/.local/share/podstead, its runtime state in
$XDG_RUNTIME_DIR/podstead, its logs in ~/.local/state/podstead, and its configuration in ~/.config/podstead.

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
	addScopeFlags(root)
	addNamespaceFlag(root)
	root.SetHelpFunc(printHelp)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(
		a.applyCommand(), a.attachCommand(), a.bundleCommand(), a.conditionCommand(), a.convertCommand(), a.cpCommand(),
		a.daemonCommand(), a.debugCommand(), a.deleteCommand(), a.describeCommand(), a.doctorCommand(), a.editCommand(),
		a.eventsCommand(), a.execCommand(), a.explainCommand(), a.getCommand(), a.imageCommand(), a.loginCommand(), a.logoutCommand(),
		a.logsCommand(), a.metricsCommand(), a.notifyCommand(), a.planCommand(), a.portForwardCommand(), a.psCommand(),
		a.restartCommand(), a.rolloutCommand(), a.runCommand(), a.simulateCommand(), a.startCommand(), a.stopCommand(),
		a.supportBundleCommand(), a.systemCommand(), a.topCommand(), a.tuiCommand(), a.uiCommand(), a.validateCommand(),
		a.versionCommand(), a.volumeCommand(), a.waitCommand(), a.whyCommand(),
	)
	root.AddCommand(a.otherNames()...)
	root.AddCommand(hintCommands(commandHints)...)
	root.AddCommand(a.unitCommand())
	keepFlagOrder(root)
	return root
}

// keepFlagOrder makes the help of all commands list flags in the order of their definition.
func keepFlagOrder(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false
		keepFlagOrder(cmd)
	}
}

// otherNames are commands that the help does not list: words of kubectl, docker, podman and docker compose for what another command does.
func (a *app) otherNames() []*cobra.Command {
	return []*cobra.Command{
		anotherName("create [-f] FILE|DIR|-...", "podstead apply for pods that do not exist", a.createCommand()),
		anotherName("diff [-f] FILE|DIR|-...", "podstead plan --exit-code, with the exit codes of kubectl diff", a.diffCommand()),
		anotherName("down FILE|DIR|POD...", "podstead delete POD, or podstead delete -f FILE", a.downCommand()),
		anotherName("images", "podstead image ls", a.imageListCommand()),
		anotherName("inspect POD...", "podstead get POD -o json, as an array", a.inspectCommand()),
		anotherName("kill POD...", "podstead stop --force", a.killCommand()),
		anotherName("load", "podstead image import", a.loadCommand()),
		anotherName("pull IMAGE", "podstead image pull", a.imagePullCommand()),
		anotherName("rm POD...", "podstead delete for pods that do not run; with -f, podstead delete --force", a.rmCommand()),
		anotherName("stats [POD...]", "podstead top --containers --watch", a.statsCommand()),
		anotherName("up [FILE|DIR|-...]", "podstead run FILE, or podstead apply FILE with --detach", a.upCommand()),
	}
}
