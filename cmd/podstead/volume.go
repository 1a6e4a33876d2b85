package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) volumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "volume",
		Short: "Manage persistent volumes",
		Long: `List, delete, export and import persistent volumes. A persistent volume is a directory on this host that keeps its data
when pods are deleted. It is created by the first pod that uses it with persistentVolumeClaim, or by volume import.`,
		Example: `  # List persistent volumes
  podstead volume ls

  # Write a persistent volume to an archive
  podstead volume export pgdata -o pgdata.tar

  # Delete a persistent volume and its data
  podstead volume rm pgdata`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.volumeListCommand(), a.volumeRemoveCommand(), a.volumeExportCommand(), a.volumeImportCommand())
	cmd.AddCommand(hintCommands(volumeHints)...)
	return cmd
}

func (a *app) volumeListCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List persistent volumes",
		Long:    "List the persistent volumes of this host and the pods that use them.",
		Example: `  # List persistent volumes
  podstead volume ls

  # Print the names only
  podstead volume ls -o name`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listVolumes(cmd, format) },
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
	return a.screen().Table(rows)
}

func (a *app) volumeRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm VOLUME...",
		Short: "Delete persistent volumes and their data permanently",
		Long:  "Delete persistent volumes and their data permanently. A volume that a pod uses cannot be deleted; delete the pod first.",
		Example: `  # Delete a persistent volume
  podstead volume rm pgdata

  # Delete several persistent volumes
  podstead volume rm pgdata uploads`,
		Args:              minOneArgument("a volume"),
		ValidArgsFunction: a.completeVolumes,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client(cmd)
			if err != nil {
				return err
			}
			defer a.waiting("Deleting persistent volumes")()
			var errs []error
			for _, name := range args {
				if err := client.RemoveVolume(cmd.Context(), name); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(a.out, "volume/%s deleted\n", name)
			}
			return errors.Join(errs...)
		},
	}
}
