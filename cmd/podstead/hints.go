package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// commandHint maps commands of other tools (kubectl, docker, podman, systemctl) to a hint.
type commandHint struct {
	names []string
	hint  string
}

var commandHints = []commandHint{
	{[]string{"play", "kube"}, "run pods in the background with podstead apply FILE, or in the foreground with podstead run FILE"},
	{
		[]string{"enable", "disable", "generate", "quadlet"},
		"pods that were applied with podstead apply FILE run at boot; docs/howto/pods-as-systemd-units.md describes units of systemd",
	},
	{[]string{"ls", "list", "pods", "status", "is-active"}, "list pods with podstead get, or containers with podstead ps"},
	{[]string{"show", "cat"}, "describe a pod with podstead describe POD, or print all its fields with podstead get POD -o yaml"},
	{[]string{"log", "tail", "journalctl"}, "show the output of containers with podstead logs POD, and follow it with --follow"},
	{
		[]string{"sh", "shell", "ssh", "enter"},
		"open a shell in a container with podstead exec -it POD -- sh, or beside it with podstead debug -it POD",
	},
	{[]string{"healthcheck"}, "show the probes of a pod with podstead describe POD, and why it is not ready with podstead why POD"},
	{[]string{"watch"}, "watch pods with podstead get --watch, and events with podstead events --follow"},
	{[]string{"gui", "dashboard"}, "look at pods in a browser with podstead ui"},
	{[]string{"init", "new"}, "write a pod file, and check it with podstead validate FILE"},
	{
		[]string{"auto-update", "autoupdate"},
		"set imagePullPolicy to Always in the pod file: each start pulls the image, also that of podstead restart POD",
	},
	{[]string{"import"}, "import image archives with podstead image import FILE"},
	{[]string{"save", "export"}, "write images to an archive with podstead image export IMAGE -o FILE"},
	{[]string{"rmi"}, "remove images with podstead image rm IMAGE"},
	{[]string{"search"}, "name the image with its registry, such as in podstead image pull docker.io/library/nginx:1.27"},
	{
		[]string{"history"},
		"list the build steps of an image with podstead image history IMAGE, or the generations of a pod with podstead rollout history POD",
	},
	{[]string{"info", "check", "cluster-info", "auth"}, "check the host with podstead doctor, and pod files with podstead validate FILE"},
	{
		[]string{"patch", "set", "replace", "label", "annotate", "update", "rename"},
		"change the file of a pod with podstead edit POD, or apply a changed file with podstead apply FILE",
	},
	{
		[]string{"reload", "daemon-reload"},
		"apply a changed file with podstead apply FILE; the daemon notices changes in the pods directory",
	},
	{
		[]string{"api-resources", "api-versions"},
		"list the fields of pod files with podstead explain",
	},
	{[]string{"config", "context"}, "check pod files with podstead validate FILE; a host has one daemon, choose it with the flag --socket"},
	{[]string{"scale", "autoscale"}, "write one pod file for each pod, and apply them with podstead apply DIR"},
	{
		[]string{"expose", "proxy", "service"},
		"publish a port with hostPort in the pod file, or forward it with podstead port-forward POD PORT",
	},
	{[]string{"port"}, "list the ports of containers with podstead ps"},
	{
		[]string{"network"},
		"pods reach each other by name; list their addresses with podstead get, and check the network with podstead doctor",
	},
	{[]string{"secret"}, "write a table [[secrets]] in the pod file, or save credentials of a registry with podstead login REGISTRY"},
	{[]string{"mount", "unmount"}, "copy files from and to containers with podstead cp POD:FILE FILE"},
	{[]string{"drain", "cordon", "taint"}, "stop all pods with podstead stop --all"},
	{[]string{"uncordon"}, "start all pods with podstead start --all"},
	{[]string{"pause", "unpause"}, "stop the containers of a pod with podstead stop POD, and start them with podstead start POD"},
	{[]string{"build", "commit", "push", "tag"}, otherTool},
	{[]string{"deploy", "stack", "swarm"}, "write a pod file for each service, and apply them with podstead apply DIR"},
	{[]string{"schedule", "cron", "cronjob", "timer"}, "set schedule in the pod file, and apply it with podstead apply FILE"},
	{[]string{"publish", "bridge"}, "carry pod files and images to another host with podstead bundle create DIR -o FILE"},
	{[]string{"prune"}, "remove what no pod uses with podstead system prune"},
	{[]string{"backup", "restore"}, volumeArchive},
	{[]string{"node", "nodes"}, "check the host with podstead doctor, and show what pods use with podstead top"},
	{[]string{"upgrade"}, "install the new package: pods keep running, as docs/howto/upgrade.md describes"},
	{[]string{"volumes"}, "list persistent volumes with podstead volume ls"},
	{[]string{"compose"}, "omit compose, such as in podstead up FILE"},
	{[]string{"pod"}, "omit pod, such as in podstead ps"},
	{[]string{"container"}, "omit container, such as in podstead ps"},
}

const otherTool = "build images with another tool, and import them with podstead image import FILE"

const volumeArchive = "archive the data of a volume with podstead volume export VOLUME -o FILE, " +
	"and bring it back with podstead volume import VOLUME FILE"

// imageHints, volumeHints and systemHints are the subcommands of docker and podman with a hint.
var (
	imageHints = []commandHint{
		{[]string{"build", "push", "tag"}, otherTool},
		{[]string{"save"}, "write images to an archive with podstead image export IMAGE -o FILE"},
		{[]string{"load"}, "import image archives with podstead image import FILE"},
		{[]string{"search"}, "name the image with its registry, such as in podstead image pull docker.io/library/nginx:1.27"},
	}
	volumeHints = []commandHint{
		{
			[]string{"create"},
			"a persistent volume is created with the first pod that has a persistentVolumeClaim of this name: apply it with " +
				"podstead apply FILE",
		},
		{[]string{"inspect"}, "list persistent volumes and the pods that use them with podstead volume ls"},
		{[]string{"backup", "save", "restore", "load"}, volumeArchive},
		{[]string{"prune"}, "remove the volumes that no pod uses with podstead system prune --volumes"},
	}
	systemHints = []commandHint{
		{[]string{"info"}, "check the host with podstead doctor, and print versions with podstead version"},
		{[]string{"events"}, "show events with podstead events"},
	}
)

// createHints are the objects that kubectl create creates from arguments, with a hint.
var createHints = []commandHint{
	{[]string{"configmap", "cm"}, "write a table [[configMaps]] with name and data in the pod file"},
	{
		[]string{"secret"},
		"write a table [[secrets]] with name and data in the pod file, or log in to a registry with podstead login REGISTRY",
	},
	{[]string{"deployment", "deploy", "job", "cronjob", "cj"}, "write a pod file, and create the pod with podstead apply FILE"},
	{
		[]string{"service", "svc", "ingress", "ing"},
		"publish a port with hostPort in the pod file, or forward it with podstead port-forward POD PORT",
	},
	{[]string{"namespace", "ns"}, "omit the namespace: all pods of a host are in the namespace default"},
	{
		[]string{"serviceaccount", "sa", "role", "rolebinding", "clusterrole", "clusterrolebinding", "token"},
		"the API socket decides who has access: its group may do everything, and group podstead-ro may read",
	},
	{[]string{"quota", "resourcequota"}, "write resources.limits in the pod file, and show what pods use with podstead top"},
	{[]string{"priorityclass", "pc", "poddisruptionbudget", "pdb"}, "omit it: a host does not preempt pods to run others"},
}

// hintCommands returns a hidden command for each hint. It fails with the hint.
func hintCommands(hints []commandHint) []*cobra.Command { return hidden(hints, unknownCommand) }

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

// runRoot prints the version, or the help if there are no arguments. Otherwise the first argument is an unknown command.
func runRoot(cmd *cobra.Command, args []string) error {
	if show, err := cmd.Flags().GetBool("version"); err != nil || show {
		fmt.Fprintln(cmd.OutOrStdout(), "podstead", version)
		return err
	}
	if len(args) == 0 {
		return cmd.Help()
	}
	if file := args[0]; strings.HasSuffix(file, ".toml") {
		return &failure{status: statusUsage, err: unknownCommand(cmd, file), hints: []string{"run a pod file with podstead run " + file}}
	}
	return unknown(cmd, args[0])
}

// similar returns the subcommands whose names differ in one letter or, if there are none, in two after the first.
func similar(parent *cobra.Command, name string) []string {
	parent.SuggestionsMinimumDistance = 1
	if names := parent.SuggestionsFor(name); len(names) > 0 {
		return names
	}
	parent.SuggestionsMinimumDistance = 2
	return slices.DeleteFunc(parent.SuggestionsFor(name), func(s string) bool { return s[:1] != name[:min(1, len(name))] })
}

// unknown returns the error for an unknown subcommand.
func unknown(parent *cobra.Command, name string) error {
	f := &failure{status: statusUsage, err: unknownCommand(parent, name)}
	switch names := similar(parent, name); {
	case len(names) > 0:
		f.hints = []string{"did you mean " + strings.Join(names, " or ") + "?"}
	case parent.HasParent():
		f.hints = []string{"run " + parent.CommandPath() + " --help for usage"}
	default:
		f.hints = []string{"run podstead help all for a list of commands"}
	}
	return f
}

// errNoPods is printed instead of an empty table.
var errNoPods = errors.New("no pods")

// flagHint maps flags of other tools (kubectl, docker, podman) to a hint. Flags with one letter are in it as the letter.
type flagHint struct {
	commands []string // nil: all
	flags    []string
	hint     string
}

var flagHints = []flagHint{
	{[]string{"run"}, []string{
		"image", "name", "port", "p", "publish", "expose", "e", "env", "v", "volume", "mount", "l", "label", "labels", "restart", "network",
		"entrypoint", "command",
	}, imageHint},
	{[]string{"run", "up"}, []string{"build"}, otherTool},
	{[]string{"run", "up"}, []string{"remove-orphans"}, "delete the pods that the files do not define with podstead apply FILE --prune"},
	{[]string{"run", "up"}, []string{"force-recreate", "no-recreate"}, "replace the pods that run with podstead restart POD"},
	{[]string{"run", "up"}, []string{"scale"}, "write a pod file for each replica, and apply them with podstead apply DIR"},
	{
		[]string{"run", "up"},
		[]string{"pull"},
		"set imagePullPolicy in the pod file, or pull the image first with podstead image pull IMAGE",
	},
	{
		[]string{"apply", "create", "run", "up"},
		[]string{"dry-run"},
		"check files with podstead validate FILE, and show what apply would change with podstead plan FILE",
	},
	{[]string{"delete", "rm", "down"}, []string{"dry-run"}, "list the pods first, with podstead get and the same selection"},
	{
		[]string{"apply", "create", "diff"},
		[]string{"server-side", "force-conflicts", "k", "kustomize"},
		"omit it; the files are pod files, or directories with pod files",
	},
	{[]string{"rm"}, []string{"v", "volumes"}, "delete persistent volumes with podstead volume rm VOLUME"},
	{
		[]string{"get"},
		[]string{"L", "label-columns"},
		"show labels with podstead get --show-labels, or as columns with -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app",
	},
	{[]string{"get"}, []string{"raw"}, "send requests to the API socket with curl, see docs/reference/api.md"},
	{
		[]string{"ps", "inspect", "images"},
		[]string{"format", "filter"},
		"print fields with podstead get -o json, -o go-template= or -o jsonpath=, or images with podstead image ls -o json",
	},
	{
		[]string{"stop", "restart", "rm", "down", "kill"},
		[]string{"t", "time"},
		"set the grace period with podstead stop POD --grace-period SECONDS",
	},
	{[]string{"kill"}, []string{"s", "signal"}, "send a signal to the main process of a container with podstead exec POD -- kill -HUP 1"},
	{
		[]string{"exec"},
		[]string{"u", "user", "w", "workdir", "e", "env"},
		"the command has the user, the directory and the environment of the container: change them in it, such as in " +
			"podstead exec POD -- env A=1 COMMAND",
	},
	{
		[]string{"debug"},
		[]string{"share-processes", "set-image"},
		"podstead debug POD adds a container to the pod itself; see processes of another one with podstead debug POD --target CONTAINER",
	},
	{
		nil,
		[]string{"context", "kubeconfig", "cluster", "server", "as", "user", "token", "host", "H", "connection"},
		"a host has one daemon: choose it with the flag --socket",
	},
}

// unknownFlag matches errors of package pflag about flags that a command does not have.
var unknownFlag = lazyregexp.New(`^unknown (?:flag: --|shorthand flag: ')([a-zA-Z0-9-]+)`)

// invalidValue matches errors of package pflag about values, which have the error of package strconv or time at the end.
var invalidValue = lazyregexp.New(`(?s)^invalid argument (".*") for "(?:-[A-Za-z0-9], )?(--[a-z0-9-]+)" flag: (?:strconv\.|time: ).*$`)

// valueError is an error about the value of a flag in words for people; nil: err is another error.
func valueError(cmd *cobra.Command, err error) error {
	match := invalidValue.FindStringSubmatch(err.Error())
	if match == nil {
		return nil
	}
	var want string
	switch flag := cmd.Flags().Lookup(strings.TrimPrefix(match[2], "--")); {
	case strings.HasSuffix(err.Error(), "value out of range"):
		want = "is out of range"
	case flag.Value.Type() == "bool":
		want = "must be true or false"
	case flag.Value.Type() == "duration":
		want = "must be a duration, such as 10s, 5m or 1h30m"
	default:
		want = "must be an integer"
	}
	return fmt.Errorf("%s %s: %s", match[2], match[1], want)
}

// flagError is the error of a command line with an invalid flag.
func flagError(cmd *cobra.Command, err error) error {
	match := unknownFlag.FindStringSubmatch(err.Error())
	args := cmd.Flags().Args() // those before the flag
	if match != nil && cmd.Name() == "run" && len(args) > 1 && isImage(args[0]) {
		if !canBePod(args[0]) {
			return &failure{status: statusUsage, err: err, hints: []string{imageHint}}
		}
		hint := fmt.Sprintf("put -- before a command with flags: podstead run %s -- %s ...", args[0], args[1])
		return &failure{status: statusUsage, err: err, hints: []string{hint, "if " + args[0] + " is an image: " + imageHint}}
	}
	i := slices.IndexFunc(flagHints, func(h flagHint) bool {
		return match != nil && slices.Contains(h.flags, match[1]) && (h.commands == nil || slices.Contains(h.commands, cmd.Name()))
	})
	if i < 0 {
		return usage(cmd, "%w", cmp.Or(valueError(cmd, err), err))
	}
	return &failure{status: statusUsage, err: err, hints: []string{flagHints[i].hint}}
}
