package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// habit is a command that people know from another tool, with what does the same here.
type habit struct {
	names []string
	hint  string
}

var habitsOfOthers = []habit{
	{[]string{"up", "create", "start", "play"}, "podstead run FILE runs the pods of a file in the foreground"},
	{[]string{"down", "rm", "stop", "kill"}, "podstead delete POD ends a pod and takes it away; Ctrl-C ends those of podstead run"},
	{[]string{"ps", "ls", "list", "pods", "status"}, "podstead get lists the pods"},
	{[]string{"load", "import", "pull"}, "name archives in imageArchives of the pod file: they are imported before the pod starts"},
	{[]string{"edit"}, "edit the pod file, end its podstead run, and run it again"},
	{[]string{"apply"}, "podstead run FILE runs the pods of a file in the foreground"},
	{[]string{"info", "check"}, "podstead doctor looks at the machine, podstead validate at pod files"},
}

// habits are hidden commands that say what to type instead.
func habits() []*cobra.Command {
	var list []*cobra.Command
	for _, h := range habitsOfOthers {
		for _, name := range h.names {
			list = append(list, &cobra.Command{
				Use: name, Hidden: true, DisableFlagParsing: true,
				ValidArgsFunction: cobra.NoFileCompletions,
				RunE: func(*cobra.Command, []string) error {
					return &failure{
						status: statusUsage, err: fmt.Errorf("there is no command %q", name), hints: []string{h.hint},
					}
				},
			})
		}
	}
	return list
}

// unknown is the answer to a word that is no command, and the help to none.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	f := &failure{status: statusUsage, err: fmt.Errorf("there is no command %q", args[0])}
	near := slices.DeleteFunc(cmd.SuggestionsFor(args[0]), func(name string) bool { return isHabit(name) })
	switch {
	case strings.HasSuffix(args[0], ".toml"):
		f.hints = append(f.hints, "to run a pod file: podstead run "+args[0])
	case len(near) > 0:
		f.hints = append(f.hints, "did you mean "+strings.Join(near, " or ")+"?")
	default:
		f.hints = append(f.hints, "podstead help lists the commands")
	}
	return f
}

func isHabit(name string) bool {
	return slices.ContainsFunc(habitsOfOthers, func(h habit) bool { return slices.Contains(h.names, name) })
}

// errNoPods is told where there is nothing to show.
var errNoPods = errors.New("no pods")
