package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) imagePullCommand() *cobra.Command { return a.pullImageCommand("podstead image pull") }

// pullCommand is the command of docker and podman.
func (a *app) pullCommand() *cobra.Command { return a.pullImageCommand("podstead pull") }

func (a *app) pullImageCommand(path string) *cobra.Command {
	var platform, policy string
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image from a registry",
		Long: `Pull an image from its registry, and keep it until it is removed with podstead image rm or podstead image prune --all. The name must
have a registry, unless it is that of an image of this host. A pull that was interrupted continues where it was.

An image for another platform is kept for podstead image export. Pods do not see it.`,
		Example: fmt.Sprintf(`  # Pull an image
  %[1]s docker.io/library/nginx:1.27

  # Pull an image if it is not present
  %[1]s docker.io/library/nginx:1.27 --policy IfNotPresent

  # Pull an image to be carried to a host with another processor
  %[1]s docker.io/library/nginx:1.27 --platform linux/arm64`, path),
		Args:              oneImage,
		ValidArgsFunction: a.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := api.PullRequest{Name: args[0], Platform: platform, Policy: spec.PullPolicy(policy)}
			if q.Policy != spec.PullAlways && q.Policy != spec.PullIfNotPresent {
				return usage(cmd, "--policy %q: must be Always or IfNotPresent", policy)
			}
			return a.pullImage(cmd, q)
		},
	}
	cmd.Flags().SortFlags = false
	platformFlag(cmd, &platform, "`platform`, such as linux/arm64 (default that of the host)")
	cmd.Flags().StringVar(&policy, "policy", string(spec.PullAlways), "when to contact the registry: Always or IfNotPresent")
	_ = cmd.RegisterFlagCompletionFunc("policy", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return startingWith(prefix, string(spec.PullAlways), string(spec.PullIfNotPresent))
	})
	return cmd
}

func (a *app) pullImage(cmd *cobra.Command, q api.PullRequest) error {
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Pulling image %q", q.Name)
	t := view.Transfer{W: a.err, Width: a.width()}
	defer t.Done()
	layers := -1
	for u, err := range client.PullImage(cmd.Context(), q) {
		if err != nil {
			return err
		}
		if p := u.Progress; p != nil {
			t.Bytes(what, p.Done, p.Total)
			if p.TotalLayers > 0 && p.Layers != layers {
				layers = p.Layers
				t.Step(fmt.Sprintf("%s: %d of %d layers, %s of %s", what, p.Layers, p.TotalLayers, view.Size(p.Done), view.Size(p.Total)))
			}
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
		Long: `Import the images of an archive that docker save, podman save, skopeo copy or podstead image export has written, of a directory in the
OCI layout, or of standard input. The archive may be compressed. All pods know the names in it, and use the images without a registry.
They are kept until they are removed with podstead image rm or podstead image prune --all.

If a name exists already, it refers to the imported image afterwards. A pod that runs keeps its image.`,
		Example: `  # Import an archive
  podstead image import shop.tar

  # Import images from Docker
  docker save nginx:1.27 | podstead image import -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "%s requires one file, directory or -, got %d arguments", commandName(cmd), len(args))
			}
			return nil
		},
		ValidArgsFunction: completeArchives,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.importImages(cmd, args[0]) },
	}
}

// completeArchives completes names of image archives.
func completeArchives(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"tar", "gz", "tgz", "zst", "oci"}, cobra.ShellCompDirectiveFilterFileExt
}

// loadCommand is the command of docker and podman.
func (a *app) loadCommand() *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Import images from an archive",
		Long:  "Import the images of an archive or of standard input, as podstead image import.",
		Example: `  # Import an archive
  podstead load -i shop.tar

  # Import images from Docker
  docker save nginx:1.27 | podstead load`,
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
			return argumentError(fmt.Errorf("import images from %s: %w", what, imagefile.WithoutPath(err)))
		}
		if signatures, err = imagefile.Signatures(path); err != nil {
			return errors.Join(fmt.Errorf("import images from %s: %w", what, err), archive.Close())
		}
	}
	defer archive.Close()
	client, err := a.client(cmd)
	if err != nil {
		return err
	}
	t := view.Transfer{W: a.err, Width: a.width()}
	defer t.Done()
	list, err := client.ImportImages(ctx, io.TeeReader(archive, t.Counter("Importing images from "+what, archive.Size)), signatures...)
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
		Long: `Write images to an archive that podstead image import, docker load and podman load read. It has the image for one platform. A file
appears, or is replaced, when it is complete.`,
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
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write; - for standard output (required)")
	platformFlag(cmd, &platform, "export the images for this `platform`, such as linux/arm64 (default that of the host if it is present)")
	return cmd
}

func (a *app) exportImages(cmd *cobra.Command, output, platform string, names []string) error {
	client, err := a.client(cmd)
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
		return client.ExportImages(ctx, io.MultiWriter(w, t.Counter("Exporting images to "+strconv.Quote(output), 0)), platform, names...)
	}
	if output == spec.Stdin {
		return write(a.out)
	}
	if err := imagefile.Write(output, 0o666, write); err != nil {
		return fmt.Errorf("export images to %q: %w", output, imagefile.WithoutPath(err))
	}
	return nil
}
