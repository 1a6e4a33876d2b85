package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

// bundleCreateFlags are the flags of bundle create.
type bundleCreateFlags struct {
	files       []string
	output      string
	platform    string
	pull        string
	withConfig  bool
	withSecrets bool
}

func (a *app) bundleCreateCommand() *cobra.Command {
	var f bundleCreateFlags
	cmd := &cobra.Command{
		Use:   "create FILE|DIR...",
		Short: "Write a bundle of pod files and their images",
		Long: `Write pod files, and the images that they name, to one file. Images that are missing are pulled, unless --pull Never is given. Archives
in imageArchives become images that all pods see, with the signatures in files beside them: the pod files in the bundle name no files
of this host. Images that were pulled come with the signatures that their registries have. Config maps and secrets are in the bundle only on request. Everybody who can read the bundle can read its secrets.

Temporary files are written beside the bundle. They need as much space as the images.`,
		Example: `  # Write a bundle with the pods of a directory
  podstead bundle create pods/ -o shop.bundle

  # Write a bundle for hosts with another processor, with the config maps of the pods
  podstead bundle create web.toml --platform linux/arm64 --with-config -o web-arm64.bundle`,
		Args: func(cmd *cobra.Command, args []string) error {
			return podFileArguments(cmd, append(args, f.files...))
		},
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.createBundle(cmd, append(args, f.files...), &f)
		},
	}
	cmd.Flags().SortFlags = false
	fileFlag(cmd, &f.files)
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "`file` to write (required)")
	platformFlag(cmd, &f.platform, "`platform` of the images, such as linux/arm64 (default that of the host)")
	cmd.Flags().StringVar(&f.pull, "pull", string(spec.PullIfNotPresent), "when to pull images: IfNotPresent or Never")
	cmd.Flags().BoolVar(&f.withConfig, "with-config", false, "include the config maps of the pods")
	cmd.Flags().BoolVar(&f.withSecrets, "with-secrets", false, "include the secrets of the pods, without encryption")
	return cmd
}

func (a *app) createBundle(cmd *cobra.Command, paths []string, f *bundleCreateFlags) error {
	switch {
	case f.output == "" || f.output == spec.Stdin:
		return usage(cmd, "bundle create requires --output FILE")
	case f.pull != string(spec.PullIfNotPresent) && f.pull != string(spec.PullNever):
		return usage(cmd, "--pull %q: must be IfNotPresent or Never", f.pull)
	}
	pods, err := a.readBundled(paths)
	if err != nil {
		return err
	}
	c, err := a.config(cmd)
	if err != nil {
		return fmt.Errorf("create bundle %q: %w", f.output, err)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	cmd.SetContext(ctx)
	m, size, err := bundle.Create(ctx, pods, bundle.CreateOptions{
		Output: f.output, Version: version, Platform: f.platform, NeverPull: f.pull == string(spec.PullNever),
		WithConfig: f.withConfig, WithSecrets: f.withSecrets, Config: c,
		Client: func() (*api.Client, error) { return a.client(cmd) },
		Pull:   func(q api.PullRequest) error { return a.pullImage(cmd, q) },
		Note:   a.note, Transfer: &view.Transfer{W: a.err, Width: a.width()},
	})
	if err != nil {
		return fmt.Errorf("create bundle %q: %w", f.output, err)
	}
	fmt.Fprintf(a.out, "%s (%s, pods: %d, images: %d, %s)\n", f.output, m.Platform, len(m.Pods), len(m.Images), view.Size(size))
	return nil
}

// readBundled reads pod files, and changes them so that they refer to no file of this host by a relative path.
func (a *app) readBundled(paths []string) (pods []bundle.PodFile, err error) {
	if paths, err = expand(paths); err != nil {
		return nil, err
	}
	var list []readPod
	err = readEach(paths, func(path, absolute string) (*spec.Pod, error) {
		pod, text, err := a.readFile(path, spec.Options{Archives: true}, "")
		if err != nil {
			return nil, err
		}
		carried, err := spec.WithoutArchives(absolute, []byte(text))
		if err != nil {
			return nil, err
		}
		relocated, err := spec.Relocate(absolute, carried)
		if err != nil || string(relocated) != string(carried) {
			return nil, errors.Join(fmt.Errorf("%s: a bundle cannot carry generateName, nor paths that are relative to the file (hostPath, envFile)", path), err)
		}
		// The pod with absolute paths of its archives.
		full, _ := spec.Accept(absolute, []byte(text))
		if full != nil {
			pod = full
		}
		list = append(list, readPod{path, pod})
		pods = append(pods, bundle.PodFile{Pod: pod, Extension: spec.Extension(path, carried), Text: carried})
		return pod, nil
	})
	if err == nil && len(a.cyclesAmong(list, nil)) > 0 { // the pods of this host are not those of the host that gets the bundle
		return nil, invalidFiles(nil)
	}
	return pods, err
}
