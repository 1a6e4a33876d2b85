package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/spec"
)

func (a *app) bundleCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "bundle",
		Short: "Carry pods with their images to hosts without a network",
		Long: `Write pod files with their images to one file, and apply it on a host that has no network and no registry. A bundle has the
images for one platform and, on request, the config maps and secrets of the pods.`,
		Example: `  # Write a bundle with the pods of a directory
  podstead bundle create pods/ -o shop.bundle

  # Apply it on another host, and return to the state before if a pod does not become ready
  podstead bundle apply shop.bundle --wait`,
	}, a.bundleCreateCommand(), a.bundleApplyCommand(), a.bundleListCommand())
}

func (a *app) bundleListCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "inspect FILE|-",
		Aliases: []string{"ls"},
		Short:   "Show what is in a bundle",
		Long: `Show the pods, images, config maps and secrets of a bundle. The whole bundle is verified: an error names the part that is
damaged or missing. Values of config maps and secrets are not printed.`,
		Example: `  # Show what is in a bundle
  podstead bundle inspect shop.bundle

  # Print the manifest of a bundle
  podstead bundle inspect shop.bundle -o json`,
		Args:              oneArgument("bundle or -"),
		ValidArgsFunction: completeBundles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.listBundle(cmd, args[0], format) },
	}
	formats(cmd, &format, "json", "yaml")
	return cmd
}

func completeBundles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"bundle"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) listBundle(cmd *cobra.Command, path, format string) error {
	in := a.in
	if path != spec.Stdin {
		f, err := spec.OpenFile(path)
		if err != nil {
			return argumentError(fmt.Errorf("read bundle %q: %w", path, plain.WithoutPath(err)))
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
			return nil, plain.WithoutPath(err)
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
		Long: `Write pod files, and the images that they name, to one file. Images that are missing are pulled, unless --pull Never is
given. Archives in imageArchives become images that all pods see, with the signatures in files beside them: the pod files in the bundle name
no files of this host. Images that were pulled come with the signatures that their registries have. Config maps and secrets are in the
bundle only on request. Everybody who can read the bundle can read its secrets.

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
	pods, err := a.readBundled(cmd.Context(), paths)
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
		Client: func() (*client.Client, error) { return a.client(cmd) },
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
func (a *app) readBundled(ctx context.Context, paths []string) (pods []bundle.PodFile, err error) {
	if paths, err = a.expand(paths); err != nil {
		return nil, err
	}
	var list []readPod
	err = readEach(paths, func(path, absolute string) (names []string, err error) {
		parts, err := a.readParts(ctx, path, spec.Options{Archives: true}, "")
		for i := range parts {
			text, err := a.textOf(path, &parts[i])
			if err != nil {
				return nil, err
			}
			r, carried, err := withoutHost(path, absolute, text, parts[i].Pod)
			if err != nil {
				return nil, err
			}
			list, names = append(list, r), append(names, r.pod.Name)
			pods = append(pods, bundle.PodFile{Pod: r.pod, Extension: spec.Extension(path, carried), Text: carried})
		}
		return names, err
	})
	if err == nil && len(a.cyclesAmong(list, nil)) > 0 { // the pods of this host are not those of the host that gets the bundle
		return nil, invalidFiles(nil)
	}
	return pods, err
}

// withoutHost returns a pod file without archives, if it refers to no file of this host by a relative path.
func withoutHost(path, absolute, text string, pod *spec.Pod) (r readPod, carried []byte, err error) {
	if carried, err = spec.WithoutArchives(absolute, []byte(text)); err != nil {
		return r, nil, err
	}
	relocated, err := spec.Relocate(absolute, carried)
	if err != nil || string(relocated) != string(carried) {
		return r, nil, errors.Join(fmt.Errorf("%s: a bundle cannot carry generateName, nor paths that are relative to the file "+
			"(hostPath, envFile, credentialFile)", path), err)
	}
	// The pod with absolute paths of its archives.
	full, _ := spec.Accept(absolute, []byte(text))
	return readPod{path, cmp.Or(full, pod)}, carried, nil
}

// bundleApplyFlags are the flags of bundle apply.
type bundleApplyFlags struct {
	dryRun bool
	level  string
	readiness
}

func (a *app) bundleApplyCommand() *cobra.Command {
	var f bundleApplyFlags
	cmd := &cobra.Command{
		Use:   "apply FILE|-",
		Short: "Create or update the pods of a bundle",
		Long: `Verify a bundle, import its images, write its config maps and secrets, and apply its pod files. Nothing is changed if a part
of the bundle is damaged or missing, if it is for another platform, if an image must be signed and is not, if a pod is invalid or not
admitted, or if the disk has too little space.

Either all pods of the bundle are applied or none: after a failure, the pod files, config maps, secrets and names of images are as they were
before. With --wait, a pod that does not become ready is such a failure. If the command is killed or the host loses power, the daemon undoes
the bundle within 10 seconds, or when it starts. Names that existed refer to their earlier images again. The images of the bundle are kept
for an hour, and then as long as a pod or a generation for a rollback uses them.

A bundle from standard input is first copied to a temporary file ($TMPDIR).

Exit codes: 0 done, 1 failure, 2 the bundle has an invalid pod file, 5 timeout.`,
		Example: `  # Apply a bundle, and return to the state before if a pod does not become ready
  podstead bundle apply shop.bundle --wait

  # Verify a bundle, and show what it would change
  podstead bundle apply shop.bundle --dry-run`,
		Args:              oneArgument("bundle or -"),
		ValidArgsFunction: completeBundles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.applyBundle(cmd, args[0], &f) },
	}
	f.waitFlags(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "verify the bundle and print what would change, and change nothing")
	levelFlag(cmd, &f.level)
	return cmd
}

func (a *app) applyBundle(cmd *cobra.Command, path string, f *bundleApplyFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	file, err := a.openBundle(path)
	if err != nil {
		return argumentError(fmt.Errorf("apply bundle %q: %w", path, err))
	}
	defer file.Close()
	t, err := bundle.Begin(cmd.Context(), file, c)
	if err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, err)
	}
	defer t.Close()
	t.Note, t.Transfer = a.note, &view.Transfer{W: a.err, Width: a.width()}
	if err := a.carryOut(cmd, t, f); err != nil {
		return fmt.Errorf("apply bundle %q: %w", path, err)
	}
	return nil
}

// carryOut checks what is in a bundle, and applies it unless --dry-run is given.
func (a *app) carryOut(cmd *cobra.Command, t *bundle.Transaction, f *bundleApplyFlags) error {
	if err := a.checkBundle(cmd, t, f.level); err != nil {
		return err
	}
	w, err := a.watcher(cmd)
	if err != nil {
		return err
	}
	plans, err := t.Plan(cmd.Context(), w.Client, f.dryRun)
	if err != nil {
		return err
	}
	if f.dryRun {
		for i := range plans {
			fmt.Fprintln(a.out, plain.Text(view.Applied(&plans[i]))+" (dry run)")
		}
		return nil
	}
	// From here on an interruption is a failure: what was done is undone.
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	cmd.SetContext(ctx)
	return t.Apply(ctx, plans, func(results []api.Applied, before []api.Pod) error {
		return a.appliedBundle(cmd, w, f, results, before)
	})
}

// checkBundle checks everything that can be checked without the daemon.
func (a *app) checkBundle(cmd *cobra.Command, t *bundle.Transaction, policy string) error {
	level, err := a.level(cmd, policy)
	if err != nil {
		return err
	}
	var errs []error
	var pods []readPod
	for _, p := range t.Bundle.Pods {
		file := t.File(p)
		pod, err := a.acceptFile(file, t.Bundle.Text[p.File], spec.Options{}, level)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := t.CheckPod(p, pod); err != nil {
			errs = append(errs, err)
		}
		pods = append(pods, readPod{file, pod})
	}
	if len(a.waitCycles(cmd, pods)) > 0 || len(errs) > 0 {
		return invalidFiles(errs)
	}
	return t.CheckHost()
}

// appliedBundle prints the results of the pod files, and waits for the pods with --wait.
func (a *app) appliedBundle(cmd *cobra.Command, w *watcher, f *bundleApplyFlags, results []api.Applied, before []api.Pod) error {
	for i := range results {
		fmt.Fprintln(a.out, plain.Text(view.Applied(&results[i])))
		if !f.wait {
			a.noteRolledBack(cmd.Context(), w.Client, &results[i])
		}
	}
	a.noteBoot(cmd.Context(), w.Client, before, results)
	if !f.wait {
		return nil
	}
	var errs []error
	for i := range results {
		errs = append(errs, a.rolledBack(cmd, w.Client, &results[i]))
	}
	errs = append(errs, a.awaitReady(cmd, w, goalsOf(results, before), &f.readiness))
	return errors.Join(errs...)
}
