package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) bundleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Carry pods with their images to hosts without a network",
		Long: `Write pod files with their images to one file, and apply it on a host that has no network and no registry. A bundle has the images
for one platform and, on request, the config maps and secrets of the pods.`,
		Example: `  # Write a bundle with the pods of a directory
  podstead bundle create pods/ -o shop.bundle

  # Apply it on another host, and return to the state before if a pod does not become ready
  podstead bundle apply shop.bundle --wait`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.bundleCreateCommand(), a.bundleApplyCommand(), a.bundleListCommand())
	return cmd
}

func (a *app) bundleListCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "inspect FILE|-",
		Aliases: []string{"ls"},
		Short:   "Show what is in a bundle",
		Long: `Show the pods, images, config maps and secrets of a bundle. The whole bundle is verified: an error names the part that is damaged or
missing. Values of config maps and secrets are not printed.`,
		Example: `  # Show what is in a bundle
  podstead bundle inspect shop.bundle

  # Print the manifest of a bundle
  podstead bundle ls shop.bundle -o json`,
		Args:              oneBundle,
		ValidArgsFunction: completeBundles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.listBundle(cmd, args[0], format) },
	}
	cmd.Flags().SortFlags = false
	formats(cmd, &format, "json", "yaml")
	return cmd
}

func oneBundle(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(cmd, "%s requires one bundle or -, got %d arguments", commandName(cmd), len(args))
	}
	return nil
}

func completeBundles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"bundle"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) listBundle(cmd *cobra.Command, path, format string) error {
	in := a.in
	if path != spec.Stdin {
		f, err := spec.OpenFile(path)
		if err != nil {
			return argumentError(fmt.Errorf("read bundle %q: %w", path, imagefile.WithoutPath(err)))
		}
		defer f.Close()
		in = f
	}
	b, err := bundle.Read(cmd.Context(), in)
	if err != nil {
		return fmt.Errorf("read bundle %q: %w", path, err)
	}
	if format != "" {
		return a.encode(format, b.Manifest)
	}
	lines := []string{
		"Created:  " + b.Created.Format("2006-01-02T15:04:05Z") + " by podstead " + b.Podstead,
		"Platform: " + b.Platform,
		fmt.Sprintf("Images:   %s, %s unpacked", view.Size(b.ImageSize()), view.Size(b.UnpackedSize)),
	}
	for _, p := range b.Pods {
		lines = append(lines, "pod/"+p.Name)
	}
	for _, i := range b.Images {
		line := "image/" + i.Name
		if i.Digest != "" {
			line += " (" + i.Digest + ")"
		}
		lines = append(lines, line)
	}
	for _, o := range b.Objects() {
		lines = append(lines, fmt.Sprintf("%s/%s (%s)", o.Kind, o.Name, strings.Join(o.Keys, ", ")))
	}
	for _, line := range lines {
		fmt.Fprintln(a.out, plain.Text(line))
	}
	return nil
}

// openBundle opens a bundle that is read twice. Standard input is copied to a temporary file, which has no name.
func (a *app) openBundle(path string) (f *os.File, err error) {
	if path != spec.Stdin {
		if f, err = spec.OpenFile(path); err != nil {
			return nil, imagefile.WithoutPath(err)
		}
		return f, nil
	}
	if f, err = os.CreateTemp("", "podstead-bundle-"); err != nil {
		return nil, err
	}
	_, err = io.Copy(f, a.in)
	if err = errors.Join(os.Remove(f.Name()), err); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}
