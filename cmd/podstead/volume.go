package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/cmd/podstead/internal/view"
)

func (a *app) volumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "volume",
		Short: "Show and remove persistent volumes",
		Long: `A persistent volume is what persistentVolumeClaim of a pod file names: a folder of this machine that outlives its pods.
It is made when a pod first names it.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(cmd, "there is no command %q", "volume "+args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.volumeListCommand(), a.volumeRemoveCommand())
	return cmd
}

func (a *app) volumeListCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the persistent volumes and the pods that name them",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listVolumes(cmd, format) },
	}
	formats(cmd, &format, "json", "yaml", "name")
	return cmd
}

func (a *app) listVolumes(cmd *cobra.Command, format string) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	list, err := client.Volumes(cmd.Context())
	if err != nil {
		return err
	}
	if format == "json" || format == "yaml" {
		return a.encode(format, list)
	}
	rows := [][]string{{"NAME", "PODS"}}
	for _, v := range list.Items {
		if format == "name" {
			fmt.Fprintln(a.out, v.Name)
		}
		rows = append(rows, []string{v.Name, cmp.Or(strings.Join(v.Pods, ","), "<none>")})
	}
	switch {
	case format == "name":
		return nil
	case len(list.Items) == 0:
		a.note("no volumes")
		return nil
	}
	return view.Columns(a.out, rows)
}

func (a *app) volumeRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm VOLUME...",
		Short: "Remove persistent volumes with all that is in them",
		Long:  "A volume that a pod names is not removed: delete the pod first. What was in a volume cannot be had again.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, "name volumes")
			}
			client, err := a.client(cmd)
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range args {
				if err := client.RemoveVolume(cmd.Context(), name); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(a.out, "volume %q removed\n", name)
			}
			return errors.Join(errs...)
		},
	}
}
