package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// commandHint maps commands of other tools (docker, podman, systemctl) to a hint.
type commandHint struct {
	names []string
	hint  string
}

var commandHints = []commandHint{
	{[]string{"play", "enable"}, "run pods in the background with podstead apply FILE, or in the foreground with podstead run FILE"},
	{[]string{"ls", "list", "pods", "status"}, "list pods with podstead get, or containers with podstead ps"},
	{[]string{"show"}, "describe a pod with podstead describe POD, or print all its fields with podstead get POD -o yaml"},
	{[]string{"import"}, "import image archives with podstead image import FILE"},
	{[]string{"save", "export"}, "write images to an archive with podstead image export IMAGE -o FILE"},
	{[]string{"rmi"}, "remove images with podstead image rm IMAGE"},
	{[]string{"history"}, "list the build steps of an image with podstead image history IMAGE, or the generations of a pod with podstead rollout history POD"},
	{[]string{"info", "check"}, "check the host with podstead doctor, and pod files with podstead validate"},
}

// hintCommands returns a hidden command for each command of another tool. It fails with the hint.
func hintCommands() []*cobra.Command {
	var list []*cobra.Command
	for _, h := range commandHints {
		for _, name := range h.names {
			list = append(list, &cobra.Command{
				Use: name, Hidden: true, DisableFlagParsing: true,
				ValidArgsFunction: cobra.NoFileCompletions,
				RunE: func(cmd *cobra.Command, _ []string) error {
					return &failure{status: statusUsage, err: unknownCommand(cmd.Parent(), name), hints: []string{h.hint}}
				},
			})
		}
	}
	return list
}

// unknownCommand is cobra's error for an unknown command.
func unknownCommand(parent *cobra.Command, name string) error {
	return fmt.Errorf("unknown command %q for %q", name, parent.CommandPath())
}

// runRoot prints the help if there are no arguments. Otherwise the first argument is an unknown command.
func runRoot(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	f := &failure{status: statusUsage, err: unknownCommand(cmd, args[0])}
	similar := slices.DeleteFunc(cmd.SuggestionsFor(args[0]), hasCommandHint)
	switch {
	case strings.HasSuffix(args[0], ".toml"):
		f.hints = append(f.hints, "run a pod file with podstead run "+args[0])
	case len(similar) > 0:
		f.hints = append(f.hints, "did you mean "+strings.Join(similar, " or ")+"?")
	default:
		f.hints = append(f.hints, "run podstead help for a list of commands")
	}
	return f
}

func hasCommandHint(name string) bool {
	return slices.ContainsFunc(commandHints, func(h commandHint) bool { return slices.Contains(h.names, name) })
}

// errNoPods is printed instead of an empty table.
var errNoPods = errors.New("no pods")
