package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// flagHint maps flags of other tools (kubectl, docker, podman) to a hint. Flags with one letter are in it as the letter.
type flagHint struct {
	commands []string // nil: all
	flags    []string
	hint     string
}

var flagHints = []flagHint{
	{[]string{"run"}, []string{
		"image", "name", "port", "p", "publish", "expose", "e", "env", "v", "volume", "mount", "l", "label", "labels", "restart", "network", "entrypoint", "command",
	}, imageHint},
	{[]string{"run"}, []string{"wait"}, "run pods in the background and wait until they are ready with podstead apply FILE --wait"},
	{[]string{"run"}, []string{"build"}, otherTool},
	{[]string{"run"}, []string{"remove-orphans"}, "delete the pods that the files do not define with podstead apply FILE --prune"},
	{[]string{"run"}, []string{"force-recreate", "no-recreate"}, "replace the pods that run with podstead rollout restart POD"},
	{[]string{"run"}, []string{"scale"}, "write a pod file for each replica, and apply them with podstead apply DIR"},
	{[]string{"run"}, []string{"env-file"}, "set envFrom in the pod file, and envFile in an entry of its configMaps or secrets"},
	{[]string{"run"}, []string{"pull"}, "set imagePullPolicy in the pod file, or pull the image first with podstead image pull IMAGE"},
	{[]string{"apply", "create", "run"}, []string{"dry-run"}, "check files with podstead validate FILE, and show what apply would change with podstead plan FILE"},
	{[]string{"delete", "rm", "down"}, []string{"dry-run"}, "list the pods first, with podstead get and the same selection"},
	{[]string{"apply", "create", "diff"}, []string{"server-side", "force-conflicts", "k", "kustomize"}, "omit it; the files are pod files, or directories with pod files"},
	{[]string{"down", "rm"}, []string{"v", "volumes"}, "delete persistent volumes with podstead volume rm VOLUME"},
	{[]string{"get"}, []string{"L", "label-columns"}, "show labels with podstead get --show-labels, or as columns with -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app"},
	{[]string{"get"}, []string{"raw"}, "send requests to the API socket with curl, see docs/reference/api.md"},
	{[]string{"ps", "inspect", "images"}, []string{"format", "filter", "f"}, "print fields with podstead get -o json, -o go-template= or -o jsonpath=, or images with podstead images -o json"},
	{[]string{"stop", "restart", "rm", "down", "kill"}, []string{"t", "time"}, "set the grace period with podstead stop POD --grace-period SECONDS"},
	{[]string{"kill"}, []string{"s", "signal"}, "send a signal to the main process of a container with podstead exec POD -- kill -HUP 1"},
	{[]string{"exec"}, []string{"u", "user", "w", "workdir", "e", "env"}, "the command has the user, the directory and the environment of the container: change them in it, such as in podstead exec POD -- env A=1 COMMAND"},
	{
		[]string{"debug"},
		[]string{"share-processes", "set-image"},
		"podstead debug POD adds a container to the pod itself; see processes of another one with podstead debug POD --target CONTAINER",
	},
	{nil, []string{"context", "kubeconfig", "cluster", "server", "as", "user", "token", "host", "H", "connection"}, "a host has one daemon: choose it with the flag --socket"},
}

// unknownFlag matches errors of package pflag about flags that a command does not have.
var unknownFlag = regexp.MustCompile(`^unknown (?:flag: --|shorthand flag: ')([a-zA-Z0-9-]+)`)

// invalidValue matches errors of package pflag about values, which have the error of package strconv or time at the end.
var invalidValue = regexp.MustCompile(`(?s)^invalid argument (".*") for "(?:-[A-Za-z0-9], )?(--[a-z0-9-]+)" flag: (?:strconv\.|time: ).*$`)

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
		hint := fmt.Sprintf("put -- before a command with flags: podstead run %s -- %s ...", args[0], args[1])
		return &failure{status: statusUsage, err: err, hints: []string{hint}}
	}
	i := slices.IndexFunc(flagHints, func(h flagHint) bool {
		return match != nil && slices.Contains(h.flags, match[1]) && (h.commands == nil || slices.Contains(h.commands, cmd.Name()))
	})
	if i < 0 {
		return usage(cmd, "%w", cmp.Or(valueError(cmd, err), err))
	}
	return &failure{status: statusUsage, err: err, hints: []string{flagHints[i].hint}}
}
