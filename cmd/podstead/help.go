package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// commandGroup are commands under a title of the help.
type commandGroup struct {
	title string
	names string
	first bool // on the first screen
}

// commandGroups are all commands that the help lists, in the order of a person's day.
var commandGroups = []commandGroup{
	{"Prepare the host:", "doctor image", true},
	{"Run and change pods:", "run plan apply edit rollout", true},
	{"Look at pods:", "get describe why logs events top", true},
	{"Work in containers:", "exec debug port-forward", true},
	{"Stop, start and delete pods:", "restart stop start delete", true},

	{"More commands for pods and containers:", "tui ui validate simulate convert explain wait condition ps attach cp", false},
	{"Images, volumes and the disk:", "login logout bundle volume system", false},
	{"The daemon and this program:", "daemon metrics notify support-bundle version completion help", false},
}

// group makes a command one that only has subcommands. Without one, it prints its help.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.Use += " COMMAND"
	cmd.DisableFlagsInUseLine = true
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(cmd, args[0])
		}
		return cmd.Help()
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

// anotherName makes a command one that the help does not list, as it does the same as another one: an earlier name, or a word of kubectl,
// docker or podman. TestOtherNames runs all of them.
func anotherName(use, same string, cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Aliases, cmd.Hidden, cmd.Short, cmd.Example = use, nil, true, "As "+same, ""
	cmd.Long = cmd.Short + ".\n\n" + cmd.Long
	return cmd
}

// printHelp prints the help of a command: of podstead itself, only the commands of every day.
func printHelp(cmd *cobra.Command, _ []string) {
	if !cmd.HasParent() {
		description, _, _ := strings.Cut(cmd.Long, "\n\n")
		fmt.Fprintf(cmd.OutOrStdout(), `%s

Usage:
  podstead COMMAND [flags]
%s
Run "podstead COMMAND --help" for one of them, and "podstead help all" for all commands and the flags that all of them have.
`, description, listGroups(cmd, false))
		return
	}
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() && !strings.HasSuffix(cmd.Use, " COMMAND") {
		usage += "\n  " + cmd.CommandPath() + " COMMAND"
	}
	text := strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)) + "\n\nUsage:\n  " + usage + "\n"
	if cmd.Example != "" {
		text += "\nExamples:\n" + cmd.Example + "\n"
	}
	if cmd.HasAvailableSubCommands() {
		text += "\nCommands:\n" + listCommands(cmd.Commands(), false)
	}
	text += "\nFlags:\n" + cmd.LocalFlags().FlagUsages() + "\nRun \"podstead help all\" for the flags that all commands have.\n"
	fmt.Fprint(cmd.OutOrStdout(), text)
}

// printAll prints all commands that the help lists, and the flags that all of them have.
func printAll(root *cobra.Command) {
	fmt.Fprintf(root.OutOrStdout(), "%s\n%s\nExamples:\n%s\n\nFlags of all commands:\n%s", root.Long,
		listGroups(root, true), root.Example, root.PersistentFlags().FlagUsages())
}

// listGroups returns the lines of the groups, with an empty line before each: of the first screen or, with subcommands, of all.
func listGroups(root *cobra.Command, all bool) string {
	var text strings.Builder
	for _, g := range commandGroups {
		if !g.first && !all {
			continue
		}
		var list []*cobra.Command
		for name := range strings.FieldsSeq(g.names) {
			if i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
				list = append(list, root.Commands()[i])
			}
		}
		text.WriteString("\n" + g.title + "\n" + listCommands(list, all))
	}
	return text.String()
}

// listCommands returns a line for each command that is not hidden, on request with its subcommands.
func listCommands(list []*cobra.Command, subcommands bool) string {
	var text strings.Builder
	for _, cmd := range list {
		if !cmd.IsAvailableCommand() && cmd.Name() != "help" {
			continue
		}
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		line := cmd.Short
		if subcommands && len(names) > 0 {
			line += ": " + strings.Join(names, ", ")
		}
		fmt.Fprintf(&text, "  %-16s %s\n", cmd.Name(), line)
	}
	return text.String()
}

// helpCommand replaces the help command of cobra, which succeeds for a command that does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | all]",
		Short: "Print the help of a command",
		Long:  "Print the help of a command, as its flag --help does. With all, list all commands, and the flags that all of them have.",
		Example: `  # List all commands
  podstead help all

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
			if of == cmd.Root() {
				names = append(names, "all")
			}
			return startingWith(prefix, names...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"all"}) {
				printAll(cmd.Root())
				return nil
			}
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
