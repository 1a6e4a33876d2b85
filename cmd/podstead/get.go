package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/query"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
	"github.com/podstead/podstead/internal/plain"
)

// getFlags are the flags of get.
type getFlags struct {
	selection
	format string
	sortBy string
	table  view.TableOptions
	watch  bool

	order    *query.Path     // nil: by name
	template *query.Template // of -o jsonpath=
	columns  *query.Columns  // of -o custom-columns=
}

func (a *app) getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get [POD...]",
		Short: "List pods",
		Long: `List all pods, or the named ones, in a table. The formats json and yaml print Kubernetes objects: a Pod if exactly one
name is given, otherwise a PodList.

The format jsonpath=TEMPLATE prints text in which expressions in braces are replaced by values of this object. The format
custom-columns=NAME:PATH,... prints a table with these columns. Expressions are those of kubectl. Control characters in
values are escaped, except line breaks and tabs in the format jsonpath.

As in kubectl, "get pods" and "get pod/web" are accepted. "get events" lists events, as podstead events does.`,
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

  # List the images of all pods
  podstead get -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image

  # List the pods with their labels, the newest pod last
  podstead get --show-labels --sort-by .metadata.creationTimestamp`,
		ValidArgsFunction: a.completePods,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.getResources(cmd, args, &f) },
	}
	cmd.Flags().SortFlags = false
	f.filesFlag(cmd)
	f.flags(cmd)
	f.fieldFlags(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "watch for changes after listing the pods")
	formats(cmd, &f.format, "wide", "json", "yaml", "name", "jsonpath=", "custom-columns=")
	cmd.Flags().StringVar(&f.sortBy, "sort-by", "", "`path` of the field to sort pods by, such as .metadata.creationTimestamp (default .metadata.name)")
	_ = cmd.RegisterFlagCompletionFunc("sort-by", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return startingWith(prefix, sortPaths...)
	})
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
	if err := f.parse(cmd); err != nil {
		return err
	}
	if f.watch {
		return a.watch(cmd, f)
	}
	return a.get(cmd, f)
}

// sortPaths are the completions of --sort-by.
var sortPaths = []string{
	".metadata.name", ".metadata.creationTimestamp", ".status.containerStatuses[0].restartCount", ".status.phase", ".status.podIP", ".status.startTime",
}

// parse parses the expressions of the flags.
func (f *getFlags) parse(cmd *cobra.Command) (err error) {
	format, expression, _ := strings.Cut(f.format, "=")
	switch format {
	case "wide":
		f.table.Wide = true
	case "jsonpath":
		f.template, err = query.ParseTemplate(expression)
	case "custom-columns":
		f.columns, err = query.ParseColumns(expression)
	}
	if err != nil {
		return usage(cmd, "--output %s: %w", format, err)
	}
	if f.sortBy != "" {
		path, err := query.ParsePath(f.sortBy)
		if err != nil {
			return usage(cmd, "--sort-by: %w", err)
		}
		f.order = &path
	}
	return nil
}

func (a *app) get(cmd *cobra.Command, f *getFlags) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	list, err := client.Pods(cmd.Context())
	if err != nil {
		return err
	}
	pods, missing := f.of(list.Items)
	if f.order != nil {
		if err := query.Sort(pods, *f.order); err != nil {
			return usage(cmd, "--sort-by: %w", err)
		}
	}
	list.Items = pods
	switch {
	case f.format == "json", f.format == "yaml", f.template != nil:
		var v any = list
		if len(f.names) == 1 {
			if len(pods) == 0 {
				return missing
			}
			v = pods[0]
		}
		if f.template != nil {
			err = a.printTemplate(f.template, v)
		} else {
			err = a.encode(f.format, v)
		}
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

// printTable prints pods as a table. If there are none and no pod is missing, it prints a message.
func (a *app) printTable(f *getFlags, pods []api.Pod, missing error) error {
	switch {
	case f.columns != nil:
		rows, err := columnRows(f, pods...)
		if err != nil {
			return err
		}
		if !f.table.NoHeader {
			rows = append([][]string{f.columns.Header}, rows...)
		}
		return a.screen().Table(rows)
	case len(pods) > 0:
		return view.Table(a.screen(), pods, f.table, time.Now())
	case missing == nil:
		a.note("%v", errNoPods)
	}
	return nil
}

// columnRows returns the rows of the format custom-columns.
func columnRows(f *getFlags, pods ...api.Pod) ([][]string, error) {
	var rows [][]string
	for i := range pods {
		object, err := query.Object(&pods[i])
		if err != nil {
			return nil, err
		}
		row, err := f.columns.Row(object)
		if err != nil {
			return nil, fmt.Errorf("--output custom-columns: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// printTemplate prints the text of the format jsonpath for a value. As in kubectl, no line break follows.
func (a *app) printTemplate(t *query.Template, v any) error {
	object, err := query.Object(v)
	if err != nil {
		return err
	}
	text, err := t.Text(object)
	if err != nil {
		return fmt.Errorf("--output jsonpath: %w", err)
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = plain.Text(lines[i])
	}
	_, err = fmt.Fprint(a.out, strings.Join(lines, "\n"))
	return err
}

// encode prints a value as indented JSON or as YAML.
func (a *app) encode(format string, v any) error {
	text, err := json.MarshalIndent(v, "", "    ")
	if err == nil && format == "yaml" {
		text, err = plain.YAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", plain.JSON(text))
	return err
}

// watch lists the pods and then prints every change, until the context ends.
func (a *app) watch(cmd *cobra.Command, f *getFlags) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	if f.order != nil {
		a.note("--sort-by is ignored with --watch")
	}
	table, rows := view.Watch{W: a.out, Options: f.table}, view.Rows{W: a.out}
	if f.columns != nil && !f.table.NoHeader {
		rows.Header = f.columns.Header
	}
	for change, err := range client.Watch(cmd.Context()) {
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
	case f.format == "name":
		_, err := fmt.Fprintln(a.out, "pod/"+p.Metadata.Name)
		return err
	case f.template != nil:
		return a.printTemplate(f.template, p)
	case f.columns != nil:
		cells, err := columnRows(f, *p)
		if err != nil {
			return err
		}
		return rows.Print(cells[0])
	}
	return table.Print(p, time.Now())
}
