package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/show"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// getFlags are the flags of get.
type getFlags struct {
	selection
	format string
	sortBy string
	table  view.TableOptions
	watch  bool

	order  *show.Path // nil: by name
	output outputFormat
}

func (a *app) getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get [POD...]",
		Short: "List pods",
		Long: `List all pods, or the named ones, in a table. The formats json and yaml print Kubernetes objects: a Pod if exactly one
name is given, otherwise a PodList. The format toml prints the definitions as a pod file, without the values of secrets;
podstead convert --short writes it in the short forms.

The formats jsonpath=TEMPLATE and go-template=TEMPLATE print text in which expressions in braces are replaced by values of
this object. The format custom-columns=NAME:PATH,... prints a table with these columns. Formats that end with -file read
their expression from a file. Expressions are those of kubectl. Control characters in values are escaped, except line breaks
and tabs of templates.

As in kubectl, "get pods" and "get pod/web" are accepted. "get events" lists events, as podstead events does.

--watch prints a line for each change. podstead tui shows the pods on a screen that follows their changes.`,
		Example: `  # List all pods
  podstead get

  # List the pods that are running
  podstead get --field-selector status.phase=Running

  # Print a pod as JSON
  podstead get web -o json

  # List the pods with a label, and watch them
  podstead get -l app=shop --watch

  # Print the address of a pod
  podstead get web -o jsonpath='{.status.podIP}{"\n"}'

  # Print the names of all pods with a Go template
  podstead get -o go-template='{{range .items}}{{.metadata.name}}{{"\n"}}{{end}}'

  # List the images of all pods
  podstead get -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image

  # List the pods with their labels, the newest pod last
  podstead get --show-labels --sort-by .metadata.creationTimestamp`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.getResources(cmd, args, &f) },
	}
	f.filesFlag(cmd)
	f.flags(cmd)
	f.fieldFlags(cmd)
	f.ignoreFlag(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "watch for changes after listing the pods")
	formats(cmd, &f.format, slices.Concat([]string{"wide"}, objectFormats, columnFormats, []string{"toml"})...)
	cmd.Flags().StringVar(&f.sortBy, "sort-by", "",
		"`path` of the field to sort pods by, such as .metadata.creationTimestamp (default .metadata.name)")
	completeFlag(cmd, "sort-by", sortPaths...)
	cmd.Flags().BoolVar(&f.table.Labels, "show-labels", false, "show labels as the last column of the table")
	cmd.Flags().BoolVar(&f.table.NoHeader, "no-headers", false, "omit the header of a table")
	return cmd
}

// getResources lists pods, or events.
func (a *app) getResources(cmd *cobra.Command, args []string, f *getFlags) error {
	if isEvents(args) {
		return a.getEvents(cmd, args, f)
	}
	if err := a.addFiles(cmd, &f.selection); err != nil {
		return err
	}
	if err := f.read(cmd, args); err != nil {
		return err
	}
	f.table.Namespace = f.fields.allNamespaces
	if err := a.parseGet(cmd, f); err != nil {
		return err
	}
	if f.watch {
		return a.watch(cmd, f)
	}
	return a.get(cmd, f)
}

// sortPaths are the completions of --sort-by.
var sortPaths = []string{
	".metadata.name", ".metadata.creationTimestamp", ".status.containerStatuses[0].restartCount", ".status.phase", ".status.podIP",
	".status.startTime",
}

// parseGet parses the expressions of the flags.
func (a *app) parseGet(cmd *cobra.Command, f *getFlags) (err error) {
	f.table.Wide = f.format == "wide"
	if f.output, err = a.parseFormat(cmd, f.format); err != nil {
		return err
	}
	if f.sortBy != "" {
		path, err := show.ParsePath(f.sortBy)
		if err != nil {
			return usage(cmd, "--sort-by: %w", err)
		}
		f.order = &path
	}
	return nil
}

func (a *app) get(cmd *cobra.Command, f *getFlags) error {
	_, pods, missing, err := a.listSelected(cmd, &f.selection, (*client.Client).Pods)
	if err != nil {
		return err
	}
	if f.order != nil {
		if err := show.Sort(pods, *f.order); err != nil {
			return usage(cmd, "--sort-by: %w", err)
		}
	}
	switch {
	case f.format == "json", f.format == "yaml", f.output.template != nil:
		var v any = api.PodList{Kind: "PodList", APIVersion: "v1", Items: pods}
		if len(f.names) == 1 {
			if len(pods) == 0 {
				return missing
			}
			v = pods[0]
		}
		err = a.printObject(&f.output, v)
	case f.format == "toml":
		err = a.printPodFile(pods...)
	case f.format == "name":
		for _, p := range pods {
			fmt.Fprintln(a.out, "pod/"+p.Metadata.Name)
		}
	default:
		err = a.printTable(f, pods, missing)
	}
	if err != nil {
		return err
	}
	return missing
}

// printPodFile prints the definitions of pods as a pod file.
func (a *app) printPodFile(pods ...api.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	object, err := json.Marshal(api.PodList{Kind: "PodList", APIVersion: "v1", Items: pods})
	if err != nil {
		return err
	}
	text, err := spec.FromOutput(object)
	if err != nil {
		return err
	}
	return a.printLines(string(text))
}

// printTable prints pods as a table. If there are none and no pod is missing, it prints a message.
func (a *app) printTable(f *getFlags, pods []api.Pod, missing error) error {
	switch {
	case f.output.columns != nil:
		rows, err := f.output.columnRows(pods...)
		if err != nil {
			return err
		}
		if !f.table.NoHeader {
			rows = append([][]string{f.output.columns.Header}, rows...)
		}
		return a.screen().Table(rows)
	case len(pods) > 0:
		return view.Table(a.screen(), pods, f.table, time.Now())
	case missing == nil && len(f.names) == 0:
		a.note("%v", errNoPods)
	}
	return nil
}

// watch lists the pods and then prints every change, until the context ends.
func (a *app) watch(cmd *cobra.Command, f *getFlags) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	if f.order != nil {
		a.note("--sort-by is ignored with --watch")
	}
	table, rows := view.Watch{W: a.out, Width: a.screen().Width, Options: f.table}, view.Rows{W: a.out}
	if f.output.columns != nil && !f.table.NoHeader {
		rows.Header = f.output.columns.Header
	}
	for change, err := range c.Watch(cmd.Context()) {
		if err != nil {
			return err
		}
		if change.Type == api.Listed || !f.has(&change.Object) {
			continue
		}
		if err := a.printChange(&table, &rows, f, &change.Object); err != nil {
			return err
		}
	}
	return nil
}

// printChange prints a pod of a watch.
func (a *app) printChange(table *view.Watch, rows *view.Rows, f *getFlags, p *api.Pod) error {
	switch {
	case f.format == "json":
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s\n", plain.JSON(text))
		return err
	case f.format == "yaml":
		if _, err := fmt.Fprintln(a.out, "---"); err != nil {
			return err
		}
		return a.encode(f.format, p)
	case f.format == "toml":
		return a.printPodFile(*p)
	case f.format == "name":
		_, err := fmt.Fprintln(a.out, "pod/"+p.Metadata.Name)
		return err
	case f.output.template != nil:
		return a.printTemplate(&f.output, p)
	case f.output.columns != nil:
		cells, err := f.output.columnRows(*p)
		if err != nil {
			return err
		}
		return rows.Print(cells[0])
	}
	return table.Print(p, time.Now())
}

func (a *app) psCommand() *cobra.Command {
	var all, quiet bool
	var s selection
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List containers",
		Long: `List the running containers of all pods, or with --all also those that wait, have terminated, or have not started. With
--filename, list those of the pods that files define, such as a Compose file. podstead get lists pods.`,
		Example: `  # List the running containers
  podstead ps

  # List those of a project of Compose
  podstead ps -f compose.yaml

  # List all containers
  podstead ps -a`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.ignoreMissing = true
			if err := errors.Join(a.addFiles(cmd, &s), s.read(cmd, nil)); err != nil {
				return err
			}
			_, pods, missing, err := a.listSelected(cmd, &s, (*client.Client).Pods)
			if err != nil {
				return err
			}
			pods, foreign := a.project.own(pods)
			return errors.Join(a.printContainers(view.Containers(pods, all), quiet), missing, foreign)
		},
	}
	s.filesFlag(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list also containers that do not run")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only names, as POD/CONTAINER")
	return cmd
}

func (a *app) printContainers(list []view.Container, quiet bool) error {
	if quiet {
		for i := range list {
			fmt.Fprintln(a.out, list[i].Pod+"/"+list[i].Name)
		}
		return nil
	}
	if len(list) == 0 {
		a.note("no containers")
		return nil
	}
	return a.screen().Table(view.ContainerTable(list, time.Now()))
}

func (a *app) inspectCommand() *cobra.Command {
	var s selection
	return &cobra.Command{
		Long:              "podstead describe shows a page for people.",
		Args:              minOneArgument("a pod"),
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.read(cmd, args); err != nil {
				return err
			}
			_, pods, missing, err := a.listSelected(cmd, &s, (*client.Client).Pods)
			if err != nil {
				return err
			}
			if len(pods) == 0 {
				return missing
			}
			return errors.Join(a.encode("json", pods), missing)
		},
	}
}

// getEvents is get events, with the flags of get that kubectl users combine with it.
func (a *app) getEvents(cmd *cobra.Command, args []string, f *getFlags) error {
	if len(args) > 1 {
		return usage(cmd, "get events accepts no names, got %q: select the events of a pod with --field-selector involvedObject.name=%s",
			args[1], args[1])
	}
	if f.format != "" && f.format != "wide" && f.format != "json" && f.format != "yaml" {
		return usage(cmd, "get events: output format %q is not supported: must be one of wide, json, yaml", f.format)
	}
	if path := strings.TrimPrefix(strings.Trim(f.sortBy, "{}"), "."); f.sortBy != "" && !slices.Contains(eventTimes, path) {
		return usage(cmd, "get events --sort-by %q: events are sorted by time: must be one of .%s", f.sortBy,
			strings.Join(eventTimes, ", ."))
	}
	e := eventsFlags{follow: f.watch, format: f.format}
	e.labels = f.labels
	var err error
	e.fieldSelector, err = parseFields(cmd, f.fields.text, eventFields,
		" of events is not supported: must be type, reason or involvedObject.name")
	if err != nil {
		return err
	}
	return a.queryEvents(cmd, nil, &e)
}

// isEvents reports whether the arguments of get are the resource type of events.
func isEvents(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"events", "event", "ev"}, args[0])
}
