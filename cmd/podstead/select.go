package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// selection holds the pods that a command applies to.
type selection struct {
	names    []string // empty: all pods that the labels select
	files    []string // define more names
	labels   string
	selector labels.Selector
	fields   fieldSelection
	// ignoreMissing is set if names of pods that do not exist are no error.
	ignoreMissing bool
	// schedules is set if labels also select pods that are started by a schedule.
	schedules bool
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
	names, err := a.podNames(cmd.Context(), s.files)
	s.names = append(s.names, names...)
	s.ignoreMissing = s.ignoreMissing || len(a.project.pods) > 0 // of profiles that were not selected
	return err
}

// podNames returns the names of the pods that files and directories define.
func (a *app) podNames(ctx context.Context, paths []string) ([]string, error) {
	paths, err := a.expand(paths)
	if err != nil {
		return nil, err
	}
	var names []string
	o := spec.Options{AllowLoss: true, Others: others(paths), MaxReplicas: spec.MaxReplicas}
	err = readEach(paths, func(path, _ string) (own []string, err error) {
		text, err := a.readText(path)
		if err != nil {
			return nil, err
		}
		// What is lost or refused is not the question here, nor which profiles were selected.
		if isComposeFile(path, text) {
			r, err := a.convertProject(ctx, path, true, []string{"*"})
			if err != nil {
				return nil, err
			}
			if len(r.Pods) == 0 {
				a.problems(r.Problems.Errors())
				return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
			}
			a.project.of(r)
			names = append(names, r.Pods...)
			return r.Pods, nil
		}
		parts, found := besides(o, path).ParseParts(path, text)
		if errs := found.Errors(); len(errs) > 0 {
			a.problems(errs)
			return nil, fmt.Errorf("%s: %w", path, errInvalidFile)
		}
		for i := range parts {
			own = append(own, parts[i].Name)
		}
		names = append(names, own...)
		return own, nil
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
	return (len(s.names) == 0 || slices.Contains(s.names, p.Metadata.Name)) &&
		s.selector.Matches(labels.Set(p.Metadata.Labels)) && s.fields.has(p)
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

// listSelected connects to the daemon and returns the selected pods of a list. The error missing lists the names that do not exist.
func (a *app) listSelected(
	cmd *cobra.Command, s *selection, list func(*client.Client, context.Context) (api.PodList, error),
) (w *watcher, pods []api.Pod, missing, err error) {
	if w, err = a.watcher(cmd); err != nil {
		return nil, nil, nil, err
	}
	all, err := list(w.Client, cmd.Context())
	if err != nil {
		return nil, nil, nil, err
	}
	pods, missing = s.of(all.Items)
	return w, pods, missing, nil
}

// namespace is the namespace of all pods, see [api.Metadata].
const namespace = "default"

// namespaceFlag is the value of --namespace. Commands of scripts for kubectl set it, so the only namespace is accepted.
type namespaceFlag struct{}

// String returns nothing: the flag has no default in the help.
func (namespaceFlag) String() string { return "" }

// Set rejects all other namespaces. A pod of the host must not be taken for a pod of another namespace.
func (namespaceFlag) Set(text string) error {
	if text != namespace {
		return errNamespace
	}
	return nil
}

// Type is the placeholder for the value in the help.
func (namespaceFlag) Type() string { return "name" }

var errNamespace = errors.New("no such namespace: all pods of a host are in the namespace default")

// addNamespaceFlag adds --namespace to the root command, so that it can precede the command as in kubectl.
func addNamespaceFlag(root *cobra.Command) {
	root.PersistentFlags().VarP(namespaceFlag{}, "namespace", "n", "namespace of the pods; a host has only the namespace default")
	hide(root, "namespace")
	_ = root.RegisterFlagCompletionFunc("namespace", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{namespace}, cobra.ShellCompDirectiveNoFileComp
	})
}

// fieldSelection is the part of a [selection] by fields and namespaces.
type fieldSelection struct {
	text          string
	selector      fields.Selector // nil: every pod
	allNamespaces bool
}

// selectableFields are the fields of --field-selector. Kubernetes supports them and some that have no meaning on a single host.
var selectableFields = map[string]func(p *api.Pod) string{
	"metadata.name":      func(p *api.Pod) string { return p.Metadata.Name },
	"metadata.namespace": func(p *api.Pod) string { return p.Metadata.Namespace },
	"spec.restartPolicy": func(p *api.Pod) string { return string(p.Spec.RestartPolicy) },
	"status.phase":       func(p *api.Pod) string { return string(p.Status.Phase) },
	"status.podIP":       func(p *api.Pod) string { return p.Status.PodIP },
}

// fieldFlags adds the flags --field-selector and --all-namespaces.
func (s *selection) fieldFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.fields.text, "field-selector", "",
		"`fields` that pods must have, such as status.phase=Running: "+strings.Join(fieldNames(), ", ")+", with =, == or !=")
	var values []string
	for _, name := range fieldNames() {
		values = append(values, name+"=")
	}
	completeFlag(cmd, "field-selector", values...)
	s.namespacesFlag(cmd)
}

// ignoreFlag adds the flag --ignore-not-found.
func (s *selection) ignoreFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.ignoreMissing, "ignore-not-found", false, "do not fail if pods with these names do not exist")
}

// namespacesFlag adds the flag --all-namespaces.
func (s *selection) namespacesFlag(cmd *cobra.Command) {
	help := "the pods of all namespaces, which are those of the namespace default"
	if cmd.Name() == "get" {
		help = "add the column NAMESPACE; cannot be combined with names"
	}
	cmd.Flags().BoolVarP(&s.fields.allNamespaces, "all-namespaces", "A", false, help)
	hide(cmd, "all-namespaces")
}

func fieldNames() []string { return slices.Sorted(maps.Keys(selectableFields)) }

// parse parses --field-selector.
func (s *fieldSelection) parse(cmd *cobra.Command) (err error) {
	s.selector, err = parseFields(cmd, s.text, selectableFields, " is not supported: must be one of "+strings.Join(fieldNames(), ", "))
	return err
}

func (s *fieldSelection) has(p *api.Pod) bool { return hasFields(s.selector, selectableFields, p) }

// parseFields parses a value of --field-selector; nil: it is empty. The problem of a field that is not known follows its name.
func parseFields[T any](cmd *cobra.Command, text string, known map[string]func(*T) string, problem string) (fields.Selector, error) {
	if text == "" {
		return nil, nil
	}
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, usage(cmd, "--field-selector %q: %w", text, err)
	}
	for _, r := range selector.Requirements() {
		if known[r.Field] == nil {
			return nil, usage(cmd, "--field-selector %q: field %q%s", text, r.Field, problem)
		}
	}
	return selector, nil
}

// hasFields reports whether a selector, nil for every object, selects an object.
func hasFields[T any](selector fields.Selector, known map[string]func(*T) string, object *T) bool {
	if selector == nil {
		return true
	}
	set := fields.Set{}
	for name, value := range known {
		set[name] = value(object)
	}
	return selector.Matches(set)
}

// checkCombination rejects names with flags that select pods.
func (s *selection) checkCombination(cmd *cobra.Command) error {
	for _, c := range []struct {
		set  bool
		flag string
	}{{s.labels != "", "--selector"}, {s.fields.text != "", "--field-selector"}, {s.fields.allNamespaces, "--all-namespaces"}} {
		if c.set && len(s.names) > 0 {
			return usage(cmd, "pod names cannot be combined with %s", c.flag)
		}
	}
	return nil
}

// resourcesOf returns the resource types in the first argument, which are comma-separated as in kubectl, and the other arguments. It
// returns none if the first argument is a name.
func resourcesOf(cmd *cobra.Command, args []string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	types := strings.Split(args[0], ",")
	if len(types) == 1 && !slices.Contains(podResources, types[0]) {
		return args, nil
	}
	for _, r := range types {
		if !slices.Contains(podResources, r) {
			return nil, usage(cmd, "%q: resource type %q is not supported: must be pod", args[0], r)
		}
	}
	return args[1:], nil
}

// podResources are the names of the resource type of pods.
var podResources = []string{"pod", "pods", "po"}

// parseLabels parses --selector.
func (s *selection) parseLabels(cmd *cobra.Command) error {
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return usage(cmd, "--selector %q: %w", s.labels, err)
	}
	s.selector = selector
	return nil
}

// hintResource adds a hint to the error of a pod that does not exist, if its name is a resource type of Kubernetes.
func hintResource(name string) []string {
	switch name {
	case "deployments", "deployment", "deploy", "services", "service", "svc", "nodes", "node", "no", "namespaces", "ns", "all",
		"configmaps", "configmap", "cm", "secrets", "secret", "jobs", "cronjobs", "cronjob", "daemonsets", "ds", "statefulsets", "sts",
		"replicasets", "rs", "ingress", "ing":
		return []string{fmt.Sprintf("%q is read as the name of a pod: a host has only pods and events", name)}
	case "persistentvolumeclaims", "pvc", "persistentvolumes", "pv", "volumes":
		return []string{"list persistent volumes with podstead volume ls"}
	case "images":
		return []string{"list images with podstead image ls"}
	case "containers":
		return []string{"list containers with podstead ps"}
	}
	return hintService(name)
}

// serviceName matches the names that services of Compose files can have.
var serviceName = lazyregexp.New(`^[A-Za-z0-9._-]+$`)

// hintService is the hint for the name of a Compose service that no pod can have.
func hintService(name string) []string {
	pod := compose.DNSName(name)
	if canBePod(name) || !serviceName.MatchString(name) {
		return nil
	}
	return []string{"use the name of the pod, " + pod}
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

// onePod requires the name of one pod, in the forms of kubectl.
func onePod(cmd *cobra.Command, args []string) error {
	if err := maxOnePod(cmd, args); err != nil {
		return err
	}
	if podName(cmd, args) == "" {
		return usage(cmd, "%s requires a pod", commandName(cmd))
	}
	return nil
}

// podName returns the name in arguments that [onePod] has accepted.
func podName(cmd *cobra.Command, args []string) string {
	var s selection
	if err := s.read(cmd, args); err != nil || len(s.names) == 0 {
		return ""
	}
	return s.names[0]
}
