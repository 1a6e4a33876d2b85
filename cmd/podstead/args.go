package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

// commandName returns the name of a command without the name of the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// noArguments rejects arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, "%s accepts no arguments, got %q", commandName(cmd), args[0])
	}
	return nil
}

// minOneArgument requires at least one argument; what names it in the error.
func minOneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, "%s requires %s", commandName(cmd), what)
		}
		return nil
	}
}

// maxOnePod accepts at most one pod, in the forms of kubectl.
func maxOnePod(cmd *cobra.Command, args []string) error {
	var s selection
	if err := s.read(cmd, args); err != nil {
		return err
	}
	if len(s.names) > 1 {
		return usage(cmd, "%s accepts at most one pod, got %s", commandName(cmd), quoted(s.names))
	}
	return nil
}

// quoted returns a list of quoted names.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
}

// formats adds the flag -o and rejects formats that are not supported. A format that ends with = has an expression after it.
func formats(cmd *cobra.Command, format *string, supported ...string) {
	list := strings.Join(supported, ", ")
	cmd.Flags().StringVarP(format, "output", "o", "", "output `format`: "+list+" (default text)")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		is := func(s string) bool { return *format == s || strings.HasSuffix(s, "=") && strings.HasPrefix(*format, s) }
		if *format != "" && !slices.ContainsFunc(supported, is) {
			return usage(cmd, "output format %q is not supported: must be one of %s", *format, list)
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	_ = cmd.RegisterFlagCompletionFunc("output", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return startingWith(prefix, supported...)
	})
}

// startingWith completes values of a flag. After a value that ends with = the user continues.
func startingWith(prefix string, values ...string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var list []string
	for _, value := range values {
		if strings.HasPrefix(value, prefix) {
			list = append(list, value)
		}
	}
	if len(list) == 1 && strings.HasSuffix(list[0], "=") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return list, directive
}

// graceFlag adds the flag --grace-period. A negative value stands for the grace period of the pod.
func graceFlag(cmd *cobra.Command, seconds *int) {
	const name = "grace-period"
	cmd.Flags().IntVar(seconds, name, -1, "`seconds` between the stop signal and SIGKILL, at least 1 (default terminationGracePeriodSeconds of the pod)")
	cmd.Flags().Lookup(name).DefValue = "0" // keeps "(default -1)" out of the help
}

// selection holds the pods that a command applies to.
type selection struct {
	names    []string // empty: all pods that the labels select
	files    []string // define more names
	labels   string
	selector labels.Selector
	fields   fieldSelection
	// ignoreMissing is set if names of pods that do not exist are no error.
	ignoreMissing bool
}

func (s *selection) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "`labels` that pods must have, such as app=web")
}

// filesFlag adds the flag -f, which selects the pods that files define.
func (s *selection) filesFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&s.files, "filename", "f", nil, "select the pods that this `file` or directory defines")
	_ = cmd.RegisterFlagCompletionFunc("filename", completeFiles)
}

// addFiles adds the pods that the files of -f define. Call it before the names in the arguments are read.
func (a *app) addFiles(cmd *cobra.Command, s *selection) error {
	if err := stdinOnce(cmd, s.files); err != nil {
		return err
	}
	names, err := a.podNames(s.files)
	s.names = append(s.names, names...)
	return err
}

// podNames returns the names of the pods that files and directories define.
func (a *app) podNames(paths []string) ([]string, error) {
	paths, err := expand(paths)
	if err != nil {
		return nil, err
	}
	var names []string
	err = readEach(paths, func(path, _ string) (*spec.Pod, error) {
		text, err := a.readText(path)
		if err != nil {
			return nil, err
		}
		pod, found := spec.Parse(path, text)
		if pod == nil {
			for _, p := range found.Errors() {
				a.problem(api.Problem(p))
			}
			return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
		}
		names = append(names, pod.Name)
		return pod, nil
	})
	return names, err
}

// read reads the names in the forms of kubectl: NAME, pod NAME, pod/NAME.
func (s *selection) read(cmd *cobra.Command, args []string) error {
	args, err := resourcesOf(cmd, args)
	if err != nil {
		return err
	}
	for _, arg := range args {
		resource, name, found := strings.Cut(arg, "/")
		if found && !slices.Contains(podResources, resource) {
			return usage(cmd, "%q: resource type %q is not supported: must be pod", arg, resource)
		}
		if !found {
			name = arg
		}
		s.names = append(s.names, name)
	}
	if err := errors.Join(s.parseLabels(cmd), s.fields.parse(cmd)); err != nil {
		return err
	}
	return s.checkCombination(cmd)
}

// require reads the names, and requires names, labels or --all.
func (s *selection) require(cmd *cobra.Command, args []string, all bool) error {
	if err := s.read(cmd, args); err != nil {
		return err
	}
	switch {
	case all && !s.all():
		return usage(cmd, "--all cannot be combined with pod names or --selector")
	case !all && s.all():
		return usage(cmd, "%s requires pod names, --selector or --all", commandName(cmd))
	}
	return nil
}

// all reports whether neither names nor labels nor fields restrict the selection.
func (s *selection) all() bool { return len(s.names) == 0 && s.labels == "" && s.fields.text == "" }

func (s *selection) has(p *api.Pod) bool {
	return (len(s.names) == 0 || slices.Contains(s.names, p.Metadata.Name)) && s.selector.Matches(labels.Set(p.Metadata.Labels)) && s.fields.has(p)
}

// of returns the selected pods. The error lists the names that do not exist; it does not affect the pods that do.
func (s *selection) of(list []api.Pod) (selected []api.Pod, err error) {
	selected = slices.DeleteFunc(slices.Clone(list), func(p api.Pod) bool { return !s.has(&p) })
	var missing []error
	var hints []string
	for _, name := range s.names {
		if !slices.ContainsFunc(list, func(p api.Pod) bool { return p.Metadata.Name == name }) {
			missing = append(missing, fmt.Errorf("no such pod %q", name))
			hints = append(hints, hintResource(name)...)
		}
	}
	if len(missing) > 0 && !s.ignoreMissing {
		return selected, &failure{status: statusNotFound, err: errors.Join(missing...), hints: hints}
	}
	return selected, nil
}

// completePods completes names of pods if the daemon is running.
func (a *app) completePods(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := a.running(s.Client).Pods(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, p := range list.Items {
		if name := resourcePrefix(prefix) + p.Metadata.Name; strings.HasPrefix(name, prefix) && !slices.Contains(args, name) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// resourcePrefix returns the resource type before the name of a pod with its slash, such as pod/; empty: there is none.
func resourcePrefix(arg string) string {
	if resource, _, found := strings.Cut(arg, "/"); found && slices.Contains(podResources, resource) {
		return resource + "/"
	}
	return ""
}

// completeContainers completes names of containers of the pod in the arguments, if the daemon is running.
func (a *app) completeContainers(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var pods selection
	if err := pods.read(cmd, args); err != nil || len(pods.names) != 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeContainersOf(cmd, pods.names[0], prefix)
}

func (a *app) completeContainersOf(cmd *cobra.Command, name, prefix string) ([]string, cobra.ShellCompDirective) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	pod, err := a.running(s.Client).Pod(cmd.Context(), name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers, pod.Spec.EphemeralContainers) {
		if strings.HasPrefix(c.Name, prefix) {
			names = append(names, c.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeVolumes completes names of persistent volumes if the daemon is running.
func (a *app) completeVolumes(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	s, err := a.connect(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	list, err := a.running(s.Client).Volumes(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, v := range list.Items {
		if strings.HasPrefix(v.Name, prefix) && !slices.Contains(args, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeFiles completes names of pod files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml", "yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// isImage reports whether an argument looks like an image reference rather than a pod file.
func isImage(arg string) bool {
	_, err := os.Stat(arg)
	return errors.Is(err, fs.ErrNotExist) && arg != spec.Stdin && !strings.HasSuffix(arg, ".toml") && !strings.HasSuffix(arg, ".yaml") &&
		!strings.HasSuffix(arg, ".yml") && !strings.HasSuffix(arg, ".json") && !strings.HasPrefix(arg, ".") && !strings.HasPrefix(arg, "/")
}
