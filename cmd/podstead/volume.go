package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) volumeCommand() *cobra.Command {
	cmd := group(&cobra.Command{
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
	}, a.volumeListCommand(), a.volumeRemoveCommand(), a.volumeExportCommand(), a.volumeImportCommand())
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
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	list, err := c.Volumes(cmd.Context())
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
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			defer a.waiting("Deleting persistent volumes")()
			var errs []error
			for _, name := range args {
				if err := c.RemoveVolume(cmd.Context(), name); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(a.out, "volume/%s deleted\n", name)
			}
			return errors.Join(errs...)
		}),
	}
}

func (a *app) volumeExportCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "export VOLUME",
		Short: "Write a persistent volume to a tar archive",
		Long: `Write the files of a persistent volume to a tar archive, with their owners, permissions, extended attributes, holes and
hard links. Devices, FIFOs and sockets are left out with a warning.

If a pod that uses the volume is running, the archive is as consistent as a disk after a power failure, or less: files change while
they are read. Stop the pod first, or use the backup tool of the database.`,
		Example: `  # Back up the volume of a database at rest
  podstead stop db
  podstead volume export pgdata -o pgdata.tar
  podstead start db

  # Compress the archive
  podstead volume export pgdata | zstd >pgdata.tar.zst`,
		Args:              cobra.MatchAll(minOneArgument("a volume"), maxOneVolume(1)),
		ValidArgsFunction: a.completeVolumes,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.exportVolume(cmd, args[0], output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", spec.Stdin, "`file` to write; - is standard output")
	return cmd
}

// maxOneVolume accepts at most n arguments, the first of which is a volume.
func maxOneVolume(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage(cmd, "%s accepts one volume, got %s", commandName(cmd), quoted(args))
		}
		return nil
	}
}

func (a *app) exportVolume(cmd *cobra.Command, name, output string) error {
	if output == spec.Stdin && a.isTerminal() {
		return usage(cmd, "an archive cannot be written to a terminal: redirect standard output, or set --output")
	}
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	pod, err := runningUser(ctx, c, name)
	if err != nil {
		return err
	}
	if pod != "" {
		a.note("warning: pod %q is running: files that change during the export may be inconsistent", pod)
	}
	if output == spec.Stdin {
		result, err := c.ExportVolume(ctx, name, a.out)
		a.warnCopy(&result)
		return err
	}
	ctx, stop := untilSignal(ctx) // an incomplete file is removed
	defer stop()
	t := view.Transfer{W: a.err, Width: a.width()}
	err = imagefile.Write(output, 0o600, func(w io.Writer) error {
		result, err := c.ExportVolume(ctx, name, io.MultiWriter(w, t.Counter("Exporting the volume", 0)))
		a.warnCopy(&result)
		return err
	})
	t.Done()
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("export: interrupted")
	}
	if cause := plain.WithoutPath(err); cause != err { //nolint:errorlint // an error of the file, not of the volume
		return fmt.Errorf("export volume %q to %q: %w", name, output, cause)
	}
	return err
}

func (a *app) warnCopy(r *api.CopyResult) {
	for _, text := range r.Warnings {
		a.note("warning: %s", text)
	}
}

// runningUser returns a pod that uses a volume and is not at rest; empty: there is none.
func runningUser(ctx context.Context, c *client.Client, volume string) (string, error) {
	volumes, err := c.Volumes(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(volumes.Items, func(v api.Volume) bool { return v.Name == volume })
	if i < 0 {
		return "", nil // the export reports it
	}
	pods, err := c.Pods(ctx)
	for _, p := range pods.Items {
		if slices.Contains(volumes.Items[i].Pods, p.Metadata.Name) && !p.Status.AtRest {
			return p.Metadata.Name, err
		}
	}
	return "", err
}

func (a *app) volumeImportCommand() *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "import VOLUME FILE|-",
		Short: "Create a persistent volume from a tar archive",
		Long: `Create a persistent volume with the files of a tar archive, or with --replace, replace the files of one that is not
empty. The archive is not compressed, or is decompressed by another program. The file - is standard input.

The volume has all files of the archive, or is not changed. No pod that uses it may run: stop it before. An archive with names or links
that lead out of the volume is refused.`,
		Example: `  # Restore the volume of a database
  podstead stop db
  podstead volume import pgdata pgdata.tar --replace
  podstead start db

  # Copy a volume to another host
  podstead volume export pgdata | ssh other podstead volume import pgdata-copy -`,
		Args: cobra.MatchAll(func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(cmd, "volume import requires a volume and a file")
			}
			return nil
		}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.completeVolumes(cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.importVolume(cmd, args[0], args[1], replace) },
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the files of a volume that is not empty")
	return cmd
}

func (a *app) importVolume(cmd *cobra.Command, name, path string, replace bool) error {
	in := a.in
	if path == spec.Stdin {
		if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return usage(cmd, "volume import: standard input is a terminal")
		}
	} else {
		f, err := os.Open(path)
		if err != nil {
			return argumentError(fmt.Errorf("import volume %q from %q: %w", name, path, plain.WithoutPath(err)))
		}
		defer f.Close()
		in = f
	}
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	defer a.waiting("Importing the volume")()
	archive := &readToEnd{Reader: in}
	result, err := c.ImportVolume(ctx, name, replace, archive)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		if archive.ended.Load() { // the daemon may have had all of it
			return errors.New("import: interrupted, the volume may have been replaced")
		}
		return errors.New("import: interrupted, the volume was not changed")
	}
	if err != nil {
		return err
	}
	a.warnCopy(&result)
	fmt.Fprintf(a.out, "volume/%s imported (%d files, %s)\n", name, result.Files, view.Size(result.Bytes))
	return nil
}

// readToEnd knows whether its reader was read to the end.
type readToEnd struct {
	io.Reader
	ended atomic.Bool
}

func (r *readToEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		r.ended.Store(true)
	}
	return n, err
}
