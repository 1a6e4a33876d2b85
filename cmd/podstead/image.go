package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) imageCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "image",
		Short: "Manage images",
		Long: `List, pull, import, export and remove the images of this host. Pods pull their images themselves: these commands are for
images that must be present before, for hosts without a registry, and for the disk.`,
		Example: `  # List the images, with the pods that use them
  podstead image ls

  # Pull an image before a pod needs it
  podstead image pull docker.io/library/nginx:1.27

  # Remove the images that nothing uses
  podstead image prune`,
	}, a.imageListCommand(), a.imagePullCommand(), a.imageImportCommand(), a.imageExportCommand(), a.imageRemoveCommand(),
		a.imagePruneCommand(), a.imageInspectCommand(), a.imageHistoryCommand())
	cmd.AddCommand(hintCommands(imageHints)...)
	return cmd
}

// imageListFlags are the flags of image ls.
type imageListFlags struct {
	format string
	quiet  bool
	table  view.TableOptions
}

func (a *app) imageListCommand() *cobra.Command {
	var f imageListFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List images",
		Long: `List the names of the images of this host, with the pods that use them. SIZE is that of the compressed layers. KEPT is why
podstead image prune keeps an image: a pod or a pod file uses it, an earlier generation of a pod that is kept for a rollback ran it, it is
in an archive of an image directory, or it was pulled or imported by hand.`,
		Example: `  # List the images, with the pods that use them
  podstead image ls

  # Print the names only
  podstead image ls -o name

  # Print the images as JSON
  podstead image ls -o json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.listImages(cmd, &f) },
	}
	formats(cmd, &f.format, "wide", "json", "yaml", "name")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only names")
	cmd.Flags().BoolVar(&f.table.NoHeader, "no-headers", false, "omit the header of a table")
	hide(cmd, "quiet")
	return cmd
}

func (a *app) listImages(cmd *cobra.Command, f *imageListFlags) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	list, err := c.Images(cmd.Context())
	if err != nil {
		return err
	}
	switch {
	case f.format == "json", f.format == "yaml":
		return a.encode(f.format, list)
	case f.quiet, f.format == "name":
		for _, name := range imageNames(list.Items) {
			fmt.Fprintln(a.out, name)
		}
		return nil
	case len(list.Items) == 0:
		a.note("no images")
		return nil
	}
	f.table.Wide = f.format == "wide"
	return a.screen().Table(view.ImageTable(list.Items, f.table, time.Now()))
}

func (a *app) imageRemoveCommand() *cobra.Command {
	var platform string
	var force bool
	cmd := &cobra.Command{
		Use:   "rm IMAGE...",
		Short: "Remove images that no pod uses",
		Long: `Remove the names of images, and delete what no other name, container or generation needs from the disk. An image is not
removed while a pod or a pod file uses it, or while it is kept for a rollback. With --force, it is removed unless a pod runs that uses it;
what a rollback needs remains on the disk without a name. A pod that starts later pulls its image again.`,
		Example: `  # Remove an image
  podstead image rm docker.io/library/nginx:1.27

  # Remove an image that was pulled for another platform
  podstead image rm docker.io/library/nginx:1.27 --platform linux/arm64`,
		Args:              minOneArgument("an image"),
		ValidArgsFunction: a.completeImages,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			defer a.waiting("Removing images")()
			var freed int64
			var errs []error
			for _, name := range args {
				removed, err := c.RemoveImage(cmd.Context(), name, platform, force)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				freed += removed.Freed
				a.printRemoved(removed.Items, "removed")
			}
			if len(errs) < len(args) {
				fmt.Fprintf(a.out, "%s freed\n", view.Size(freed))
			}
			return errors.Join(errs...)
		}),
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "remove the name also if pods that do not run or a rollback need the image")
	platformFlag(cmd, &platform, "remove only the image for this `platform`, such as linux/arm64 (default all)")
	return cmd
}

func (a *app) printRemoved(list []api.Image, what string) {
	for i := range list {
		name := "image/" + list[i].Name
		if list[i].Foreign {
			name += " (" + list[i].Platform + ")"
		}
		fmt.Fprintf(a.out, "%s %s\n", name, what)
	}
}

// platformFlag adds the flag --platform.
func platformFlag(cmd *cobra.Command, platform *string, help string) {
	cmd.Flags().StringVar(platform, "platform", "", help)
	completeFlag(cmd, "platform", "linux/amd64", "linux/arm64", "linux/arm/v7", "linux/riscv64")
}

func (a *app) imagePruneCommand() *cobra.Command {
	var all, dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove images that nothing uses",
		Long: `Remove the images that no pod, no file of the pods directory and no generation that is kept for a rollback uses, and print
how much disk space that has freed. Images that were pulled or imported by hand are kept, unless --all is given.`,
		Example: `  # List what would be removed
  podstead image prune --dry-run

  # Remove what nothing uses, also images that were pulled or imported by hand
  podstead image prune --all`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			defer a.waiting("Removing images that nothing uses")()
			removed, err := c.PruneImages(cmd.Context(), all, dryRun)
			if err != nil && len(removed.Items) == 0 {
				return err
			}
			if len(removed.Items) == 0 {
				a.note("no unused images")
			}
			if dryRun {
				a.printRemoved(removed.Items, "removed (dry run)")
				return err
			}
			a.printRemoved(removed.Items, "removed")
			if len(removed.Items) > 0 || removed.Freed > 0 {
				fmt.Fprintf(a.out, "%s freed\n", view.Size(removed.Freed))
			}
			return err
		}),
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "remove also images that were pulled or imported by hand")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be removed, and remove nothing")
	return cmd
}

func (a *app) imageInspectCommand() *cobra.Command {
	var platform string
	cmd := &cobra.Command{
		Use:   "inspect IMAGE...",
		Short: "Print images as JSON",
		Long: `Print images as a JSON array, with their configuration, layers, labels and history, the platforms that their index lists, and
the pods that use them.`,
		Example: `  # Print an image
  podstead image inspect docker.io/library/nginx:1.27

  # Print the command of an image
  podstead image inspect docker.io/library/nginx:1.27 | jq '.[0].config.cmd'`,
		Args:              minOneArgument("an image"),
		ValidArgsFunction: a.completeImages,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			list := []api.ImageDetail{}
			var errs []error
			for _, name := range args {
				d, err := c.InspectImage(cmd.Context(), name, platform)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				list = append(list, d)
			}
			if len(list) == 0 {
				return errors.Join(errs...)
			}
			return errors.Join(append([]error{a.encode("json", list)}, errs...)...)
		}),
	}
	platformFlag(cmd, &platform, "print the image for this `platform`, such as linux/arm64 (default that of the host if it is present)")
	return cmd
}

func (a *app) imageHistoryCommand() *cobra.Command {
	var platform string
	cmd := &cobra.Command{
		Use:   "history IMAGE",
		Short: "List the build steps of an image",
		Long:  "List the steps of the build of an image, the newest first, with the sizes of the compressed layers that they added.",
		Example: `  # List the steps of the build of an image
  podstead image history docker.io/library/nginx:1.27

  # List those of the image for another platform
  podstead image history docker.io/library/nginx:1.27 --platform linux/arm64`,
		Args:              oneArgument("image"),
		ValidArgsFunction: a.completeImages,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, args []string) error {
			d, err := c.InspectImage(cmd.Context(), args[0], platform)
			if err != nil {
				return err
			}
			return a.screen().Table(view.HistoryTable(d.History, time.Now()))
		}),
	}
	platformFlag(cmd, &platform,
		"list those of the image for this `platform`, such as linux/arm64 (default that of the host if it is present)")
	return cmd
}

func (a *app) imagePullCommand() *cobra.Command {
	var platform, policy string
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image from a registry",
		Long: `Pull an image from its registry, and keep it until it is removed with podstead image rm or podstead image prune --all. The
name must have a registry, unless it is that of an image of this host. A pull that was interrupted continues where it was.

An image for another platform is kept for podstead image export. Pods do not see it.`,
		Example: `  # Pull an image
  podstead image pull docker.io/library/nginx:1.27

  # Pull an image if it is not present
  podstead image pull docker.io/library/nginx:1.27 --policy IfNotPresent

  # Pull an image to be carried to a host with another processor
  podstead image pull docker.io/library/nginx:1.27 --platform linux/arm64`,
		Args:              oneArgument("image"),
		ValidArgsFunction: a.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := api.PullRequest{Name: args[0], Platform: platform, Policy: spec.PullPolicy(policy)}
			if q.Policy != spec.PullAlways && q.Policy != spec.PullIfNotPresent {
				return usage(cmd, "--policy %q: must be Always or IfNotPresent", policy)
			}
			return a.pullImage(cmd, q)
		},
	}
	platformFlag(cmd, &platform, "`platform`, such as linux/arm64 (default that of the host)")
	cmd.Flags().StringVar(&policy, "policy", string(spec.PullAlways), "when to contact the registry: Always or IfNotPresent")
	completeFlag(cmd, "policy", string(spec.PullAlways), string(spec.PullIfNotPresent))
	return cmd
}

func (a *app) pullImage(cmd *cobra.Command, q api.PullRequest) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	pulling, unpacking := fmt.Sprintf("Pulling image %q", q.Name), fmt.Sprintf("Unpacking image %q", q.Name)
	t := view.Transfer{W: a.err, Width: a.width()}
	defer t.Done()
	layers, unpacks := -1, false
	for u, err := range c.PullImage(cmd.Context(), q) {
		if err != nil {
			return err
		}
		if p := u.Progress; p != nil {
			switch {
			case p.Unpacking:
				t.Bytes(unpacking, p.Done, p.Total)
				if !unpacks {
					t.Step(fmt.Sprintf("%s: %d layers, %s", unpacking, p.TotalLayers, view.Size(p.Total)))
				}
			default:
				t.Bytes(pulling, p.Done, p.Total)
				if p.TotalLayers > 0 && p.Layers != layers {
					layers = p.Layers
					t.Step(fmt.Sprintf("%s: %d of %d layers, %s of %s",
						pulling, p.Layers, p.TotalLayers, view.Size(p.Done), view.Size(p.Total)))
				}
			}
			unpacks = p.Unpacking
		}
		if img := u.Image; img != nil {
			t.Done()
			outcome := "present"
			if u.Pulled {
				outcome = "pulled"
			}
			a.printImage(img, outcome)
		}
	}
	return nil
}

// printImage prints what has become of an image.
func (a *app) printImage(img *api.Image, outcome string) {
	platform := ""
	if img.Foreign {
		platform = " for " + img.Platform
	}
	fmt.Fprintf(a.out, "image/%s %s%s (%s)\n", img.Name, outcome, platform, img.Digest)
}

func (a *app) imageImportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE|DIR|-",
		Short: "Import images from an archive",
		Long: `Import the images of an archive that docker save, podman save, skopeo copy or podstead image export has written, of a
directory in the OCI layout, or of standard input. The archive may be compressed. All pods know the names in it, and use the images without
a registry. They are kept until they are removed with podstead image rm or podstead image prune --all.

If a name exists already, it refers to the imported image afterwards. A pod that runs keeps its image.`,
		Example: `  # Import an archive
  podstead image import shop.tar

  # Import images from Docker
  docker save nginx:1.27 | podstead image import -`,
		Args:              oneArgument("file, directory or -"),
		ValidArgsFunction: completeArchives,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.importImages(cmd, args[0]) },
	}
}

// completeArchives completes names of image archives.
func completeArchives(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"tar", "gz", "tgz", "zst", "oci"}, cobra.ShellCompDirectiveFilterFileExt
}

// loadCommand is image import with the arguments of docker and podman.
func (a *app) loadCommand() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Long:              "Without --input, the archive is read from standard input.",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.importImages(cmd, input) },
	}
	cmd.Flags().StringVarP(&input, "input", "i", spec.Stdin, "`file` or directory to import (default standard input)")
	cmd.Flags().Lookup("input").DefValue = ""
	_ = cmd.RegisterFlagCompletionFunc("input", completeArchives)
	return cmd
}

func (a *app) importImages(cmd *cobra.Command, path string) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	archive, what := &imagefile.Archive{ReadCloser: io.NopCloser(a.in)}, "standard input"
	var signatures []string
	if path == spec.Stdin {
		if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return usage(cmd, "import images: standard input is a terminal")
		}
	} else {
		var err error
		what = strconv.Quote(path)
		if archive, err = imagefile.Open(ctx, path); err != nil {
			return argumentError(fmt.Errorf("import images from %s: %w", what, plain.WithoutPath(err)))
		}
		if signatures, err = imagefile.Signatures(path); err != nil {
			return errors.Join(fmt.Errorf("import images from %s: %w", what, err), archive.Close())
		}
	}
	defer archive.Close()
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	t := view.Transfer{W: a.err, Width: a.width()}
	defer t.Done()
	list, err := c.ImportImages(ctx, io.TeeReader(archive, t.Counter("Importing images from "+what, archive.Size)), signatures...)
	if e, ok := errors.AsType[*api.Error](err); ok {
		e.Message = "import images from " + what + ": " + strings.TrimPrefix(e.Message, "import images: ")
	}
	if err != nil {
		return err
	}
	t.Done()
	for i := range list.Items {
		a.printImage(&list.Items[i], "imported")
	}
	return nil
}

func (a *app) imageExportCommand() *cobra.Command {
	var output, platform string
	cmd := &cobra.Command{
		Use:   "export IMAGE...",
		Short: "Write images to an archive",
		Long: `Write images to an archive that podstead image import, docker load and podman load read. It has the image for one platform. A
file appears, or is replaced, when it is complete.`,
		Example: `  # Write an image to a file
  podstead image export docker.io/library/nginx:1.27 -o nginx.tar

  # Copy an image to another host
  podstead image export docker.io/library/nginx:1.27 -o - | ssh edge1 podstead image import -`,
		Args:              minOneArgument("an image"),
		ValidArgsFunction: a.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case output == "":
				return usage(cmd, "image export requires --output FILE, or --output - for standard output")
			case output == spec.Stdin && a.isTerminal():
				return usage(cmd, "export images: standard output is a terminal")
			}
			return a.exportImages(cmd, output, platform, args)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write; - for standard output (required)")
	platformFlag(cmd, &platform, "export the images for this `platform`, such as linux/arm64 (default that of the host if it is present)")
	return cmd
}

func (a *app) exportImages(cmd *cobra.Command, output, platform string, names []string) error {
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if output != spec.Stdin { // as in cp
		var stop context.CancelFunc
		ctx, stop = untilSignal(ctx)
		defer stop()
	}
	t := view.Transfer{W: a.err, Width: a.width()}
	defer t.Done()
	write := func(w io.Writer) error {
		return c.ExportImages(ctx, io.MultiWriter(w, t.Counter("Exporting images to "+strconv.Quote(output), 0)), platform, names...)
	}
	if output == spec.Stdin {
		return write(a.out)
	}
	if err := imagefile.Write(output, 0o666, write); err != nil {
		return fmt.Errorf("export images to %q: %w", output, plain.WithoutPath(err))
	}
	return nil
}
