package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// commandHint maps commands of other tools (kubectl, docker, podman, systemctl) to a hint.
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
	{[]string{"info", "check", "cluster-info"}, "check the host with podstead doctor, and pod files with podstead validate"},
	{[]string{"patch", "set", "replace", "label", "annotate", "update"}, "change the file of a pod with podstead edit POD, or apply a changed file with podstead apply FILE"},
	{[]string{"scale", "autoscale"}, "write one pod file for each pod, and apply them with podstead apply DIR"},
	{[]string{"expose"}, "publish a port with hostPort in the pod file, or forward it with podstead port-forward POD PORT"},
	{[]string{"port"}, "list the ports of containers with podstead ps"},
	{[]string{"drain", "cordon"}, "stop all pods with podstead stop --all"},
	{[]string{"uncordon"}, "start all pods with podstead start --all"},
	{[]string{"pause", "unpause"}, "stop the containers of a pod with podstead stop POD, and start them with podstead start POD"},
	{[]string{"build", "commit", "push", "tag"}, "build images with another tool, and import them with podstead image import FILE"},
	{[]string{"volumes"}, "list persistent volumes with podstead volume ls"},
	{[]string{"compose"}, "omit compose, such as in podstead up FILE"},
	{[]string{"pod"}, "omit pod, such as in podstead ps"},
}

// createHints are the objects that kubectl create creates from arguments, with a hint.
var createHints = []commandHint{
	{[]string{"configmap", "cm"}, "write a table [[configMaps]] with name and data in the pod file"},
	{[]string{"secret"}, "write a table [[secrets]] with name and data in the pod file, or save credentials of a registry with podstead login"},
	{[]string{"deployment", "deploy", "job", "cronjob", "cj"}, "write a pod file, and create the pod with podstead create -f FILE"},
	{[]string{"service", "svc", "ingress", "ing"}, "publish a port with hostPort in the pod file, or forward it with podstead port-forward POD PORT"},
	{[]string{"namespace", "ns"}, "omit the namespace: all pods of a host are in the namespace default"},
}

// hintCommands returns a hidden command for each command of another tool. It fails with the hint.
func hintCommands() []*cobra.Command { return hidden(commandHints, unknownCommand) }

func hidden(hints []commandHint, describe func(parent *cobra.Command, name string) error) []*cobra.Command {
	var list []*cobra.Command
	for _, h := range hints {
		for _, name := range h.names {
			list = append(list, &cobra.Command{
				Use: name, Hidden: true, DisableFlagParsing: true,
				ValidArgsFunction: cobra.NoFileCompletions,
				RunE: func(cmd *cobra.Command, _ []string) error {
					return &failure{status: statusUsage, err: describe(cmd.Parent(), name), hints: []string{h.hint}}
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
