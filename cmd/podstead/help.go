package main

import "github.com/spf13/cobra"

// helpCommand replaces the help command of cobra, which succeeds for a command that does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		Long:  "Print the help of a command, as its flag --help does. Without a command, list all commands.",
		Example: `  # List all commands
  podstead help

  # Print the help of a command
  podstead help image pull`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			of, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range of.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return startingWith(prefix, names...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return err
			case of == cmd.Root() && len(rest) > 0:
				return runRoot(of, rest)
			case of.DisableFlagParsing && of.Hidden: // it has a hint
				return of.RunE(of, rest)
			case of.HasSubCommands() && len(rest) > 0:
				return &failure{
					status: statusUsage, err: unknownCommand(of, rest[0]), hints: []string{"run " + of.CommandPath() + " --help for usage"},
				}
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}
