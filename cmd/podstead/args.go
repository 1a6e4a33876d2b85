package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/api"
)

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, "%s takes no arguments, found %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// someArguments wants at least one.
func someArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, "%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

// formats adds the flag -o with the formats that a command has.
func formats(cmd *cobra.Command, format *string, known ...string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "format: "+strings.Join(known, ", "))
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if *format != "" && !slices.Contains(known, *format) {
			return usage(cmd, "there is no format %q: want %s", *format, strings.Join(known, ", "))
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// selection is which pods a command is for.
type selection struct {
	names    []string // none: all that the labels match
	labels   string
	selector labels.Selector
}

func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "only pods with these labels, such as app=web")
}

// read takes the names as kubectl has them too: pods, pod/NAME.
func (s *selection) read(cmd *cobra.Command, args []string) error {
	kinds := []string{"pod", "pods", "po"}
	if len(args) > 0 && slices.Contains(kinds, args[0]) {
		args = args[1:]
	}
	for _, arg := range args {
		kind, name, has := strings.Cut(arg, "/")
		if has && !slices.Contains(kinds, kind) {
			return usage(cmd, "%q: there are only pods", arg)
		}
		if !has {
			name = arg
		}
		s.names = append(s.names, name)
	}
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return usage(cmd, "--selector %q: %w", s.labels, err)
	}
	s.selector = selector
	return nil
}

// all says that nothing narrows the selection.
func (s *selection) all() bool { return len(s.names) == 0 && s.labels == "" }

func (s *selection) has(p *api.Pod) bool {
	return (len(s.names) == 0 || slices.Contains(s.names, p.Metadata.Name)) && s.selector.Matches(labels.Set(p.Metadata.Labels))
}

// of picks the pods and says which names there are none of.
func (s *selection) of(list []api.Pod) (picked []api.Pod, err error) {
	picked = slices.DeleteFunc(slices.Clone(list), func(p api.Pod) bool { return !s.has(&p) })
	var missing []error
	for _, name := range s.names {
		if !slices.ContainsFunc(list, func(p api.Pod) bool { return p.Metadata.Name == name }) {
			missing = append(missing, fmt.Errorf("no such pod %q", name))
		}
	}
	if len(missing) > 0 {
		return picked, &failure{status: statusNotFound, err: errors.Join(missing...)}
	}
	return picked, nil
}

// completePods completes names of pods, if a daemon answers.
func (a *app) completePods(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := s.Client.Pods(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range list.Items {
		if strings.HasPrefix(p.Metadata.Name, prefix) && !slices.Contains(args, p.Metadata.Name) {
			names = append(names, p.Metadata.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeFiles completes pod files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml", "yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// isImage reports whether somebody seems to mean an image where a pod file is wanted.
func isImage(arg string) bool {
	_, err := os.Stat(arg)
	return errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(arg, ".toml") && !strings.HasSuffix(arg, ".yaml") &&
		!strings.HasSuffix(arg, ".yml") && !strings.HasSuffix(arg, ".json") && !strings.HasPrefix(arg, ".") && !strings.HasPrefix(arg, "/")
}
