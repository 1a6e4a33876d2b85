package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/view"
	"github.com/podstead/podstead/internal/plain"
)

// getFlags are the flags of get.
type getFlags struct {
	selection
	format string
	watch  bool
}

func (a *app) getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get [POD...]",
		Short: "List pods",
		Long: `List all pods, or the named ones, in a table. The formats json and yaml print Kubernetes objects: a Pod if exactly one
name is given, otherwise a PodList.`,
		Example: `  # List all pods
  podstead get

  # Print a pod as JSON
  podstead get web -o json

  # List the pods with a label, and watch them
  podstead get -l app=shop --watch`,
		ValidArgsFunction: a.completePods,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.read(cmd, args); err != nil {
				return err
			}
			if f.watch {
				return a.watch(cmd, &f)
			}
			return a.get(cmd, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.flags(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "watch for changes after listing the pods")
	formats(cmd, &f.format, "wide", "json", "yaml", "name")
	return cmd
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
	switch f.format {
	case "json", "yaml":
		list.Items = pods
		var v any = list
		if len(f.names) == 1 {
			if len(pods) == 0 {
				return missing
			}
			v = pods[0]
		}
		err = a.encode(f.format, v)
	case "name":
		for _, p := range pods {
			fmt.Fprintln(a.out, "pod/"+p.Metadata.Name)
		}
	default:
		if len(pods) == 0 && missing == nil {
			a.note("%v", errNoPods)
			return nil
		}
		if len(pods) > 0 {
			err = view.Table(a.out, pods, f.format == "wide", time.Now())
		}
	}
	if err != nil {
		return err
	}
	return missing
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
	table := view.Watch{W: a.out, Wide: f.format == "wide"}
	for change, err := range client.Watch(cmd.Context()) {
		if err != nil {
			return err
		}
		if change.Type == api.Listed || !f.has(&change.Object) {
			continue
		}
		if err := a.printChange(&table, f.format, &change.Object); err != nil {
			return err
		}
	}
	return nil
}

// printChange prints a pod of a watch.
func (a *app) printChange(table *view.Watch, format string, p *api.Pod) error {
	switch format {
	case "json":
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s\n", plain.JSON(text))
		return err
	case "yaml":
		if _, err := fmt.Fprintln(a.out, "---"); err != nil {
			return err
		}
		return a.encode(format, p)
	case "name":
		_, err := fmt.Fprintln(a.out, "pod/"+p.Metadata.Name)
		return err
	}
	return table.Print(p, time.Now())
}
