package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/image"
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

func (a *app) createBundle(cmd *cobra.Command, paths []string, f *bundleCreateFlags) (err error) {
	switch {
	case f.output == "" || f.output == spec.Stdin:
		return usage(cmd, "bundle create requires --output FILE")
	case f.pull != string(spec.PullIfNotPresent) && f.pull != string(spec.PullNever):
		return usage(cmd, "--pull %q: must be IfNotPresent or Never", f.pull)
	case f.platform == "":
		f.platform = image.HostPlatform()
	}
	c := &bundling{a: a, f: f, sources: map[string]string{}, wanted: map[string]bool{}}
	if err := c.read(paths); err != nil {
		return err
	}
	if c.w, err = bundle.NewWriter(filepath.Dir(f.output), version, f.platform, time.Now()); err != nil {
		return fmt.Errorf("create bundle %q: %w", f.output, withoutPath(err))
	}
	defer func() { err = errors.Join(err, c.w.Close()) }()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	cmd.SetContext(ctx)
	if err := c.collect(cmd); err != nil {
		return fmt.Errorf("create bundle %q: %w", f.output, err)
	}
	var size int64
	err = imagefile.Write(f.output, 0o666, func(w io.Writer) (err error) {
		size, err = c.w.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("create bundle %q: %w", f.output, withoutPath(err))
	}
	m := c.w.Manifest()
	fmt.Fprintf(a.out, "%s (%s, pods: %d, images: %d, %s)\n", f.output, m.Platform, len(m.Pods), len(m.Images), view.Size(size))
	return nil
}

// bundling collects the parts of a bundle.
type bundling struct {
	a       *app
	f       *bundleCreateFlags
	w       *bundle.Writer
	pods    []carried
	sources map[string]string // of images in archives, by name: the archive
	wanted  map[string]bool   // images that the pods name
}

// carried is a pod file of a bundle.
type carried struct {
	pod       *spec.Pod
	path      string
	extension string
	text      []byte
}

// read reads the pod files, and changes them so that they refer to no file of this host by a relative path.
func (c *bundling) read(paths []string) error {
	paths, err := expand(paths)
	if err != nil {
		return err
	}
	return readEach(paths, func(path, absolute string) (*spec.Pod, error) {
		pod, text, err := c.a.readFile(path, spec.Options{Archives: true}, "")
		if err != nil {
			return nil, err
		}
		carriedText, err := spec.WithoutArchives(absolute, []byte(text))
		if err != nil {
			return nil, err
		}
		relocated, err := spec.Relocate(absolute, carriedText)
		if err != nil || string(relocated) != string(carriedText) {
			return nil, errors.Join(fmt.Errorf("%s: a bundle cannot carry generateName, nor paths that are relative to the file (hostPath, envFile)", path), err)
		}
		// The pod with absolute paths of its archives.
		full, _ := spec.Accept(absolute, []byte(text))
		if full != nil {
			pod = full
		}
		c.pods = append(c.pods, carried{pod, path, spec.Extension(path, carriedText), carriedText})
		return pod, nil
	})
}

// collect adds all parts to the bundle.
func (c *bundling) collect(cmd *cobra.Command) error {
	for _, p := range c.pods {
		c.w.AddPod(p.pod.Name, p.extension, p.text)
		for name, policy := range imagesOf(p.pod) {
			full, err := image.FullName(name)
			if err != nil {
				return err
			}
			c.wanted[full] = true
			if policy == spec.PullAlways {
				c.a.note("pod %q pulls image %q whenever it starts, also on a host without a registry: set imagePullPolicy", p.pod.Name, name)
			}
		}
	}
	if err := c.addConfig(cmd); err != nil {
		return err
	}
	if err := c.addArchives(); err != nil {
		return err
	}
	return c.addImages(cmd)
}

// imagesOf returns the images that a pod names, with their pull policies.
func imagesOf(pod *spec.Pod) map[string]spec.PullPolicy {
	images := map[string]spec.PullPolicy{}
	for _, list := range [...][]spec.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			images[list[i].Image] = list[i].ImagePullPolicy
		}
	}
	for i := range pod.Volumes {
		if v := pod.Volumes[i].Image; v != nil {
			images[v.Reference] = v.PullPolicy
		}
	}
	return images
}

// addConfig adds the config maps and secrets of the pods that were requested.
func (c *bundling) addConfig(cmd *cobra.Command) error {
	settings, err := c.a.config(cmd)
	if err != nil {
		return err
	}
	source := configsource.Source{Dir: settings.ConfigDir}
	done := map[string]bool{}
	for _, p := range c.pods {
		for _, k := range []struct {
			kind     string
			names    map[string]bool
			included bool
			flag     string
			read     func(*spec.Pod, string) (map[string][]byte, error)
		}{
			{"configmap", p.pod.ConfigMapNames(), c.f.withConfig, "--with-config", source.ConfigMap},
			{"secret", p.pod.SecretNames(), c.f.withSecrets, "--with-secrets", source.Secret},
		} {
			for _, name := range slices.Sorted(maps.Keys(k.names)) {
				if isInline(p.pod, k.kind, name) || done[k.kind+name] {
					continue
				}
				done[k.kind+name] = true
				if !k.included {
					c.a.note("%s %q of pod %q is not in the bundle: include it with %s, or create it on the host", k.kind, name, p.pod.Name, k.flag)
					continue
				}
				values, err := k.read(p.pod, name)
				if _, missing := errors.AsType[*configsource.NotFoundError](err); missing && !k.names[name] {
					continue // optional
				}
				if err != nil {
					return err
				}
				for _, key := range slices.Sorted(maps.Keys(values)) {
					c.w.AddValue(k.kind, name, key, values[key])
				}
			}
		}
	}
	if c.f.withSecrets && slices.ContainsFunc(c.w.Manifest().Objects(), func(o bundle.Object) bool { return o.Kind == "secret" }) {
		c.a.note("the bundle contains secrets: everybody who can read it can read them")
	}
	return nil
}

// isInline reports whether the pod file itself has a config map or a secret.
func isInline(pod *spec.Pod, kind, name string) bool {
	if kind == "secret" {
		return slices.ContainsFunc(pod.Secrets, func(s spec.Secret) bool { return s.Name == name })
	}
	return slices.ContainsFunc(pod.ConfigMaps, func(m spec.ConfigMap) bool { return m.Name == name })
}

// addArchives adds the archives that pods list.
func (c *bundling) addArchives() error {
	done := map[string]bool{}
	for _, p := range c.pods {
		for _, archive := range p.pod.ImageArchives {
			if done[archive] {
				continue
			}
			done[archive] = true
			signatures, err := imagefile.Signatures(archive)
			if err != nil {
				return fmt.Errorf("image archive %q: %w", archive, err)
			}
			found, err := c.w.AddImages(func(w io.Writer) error {
				f, err := spec.OpenFile(archive)
				if err != nil {
					return err
				}
				defer f.Close()
				r, err := image.Decompress(f)
				if err != nil {
					return err
				}
				defer r.Close()
				_, err = io.Copy(w, r)
				return err
			}, signatures...)
			if err != nil {
				return fmt.Errorf("image archive %q: %w", archive, err)
			}
			for _, img := range found {
				if other := c.sources[img.Name]; other != "" {
					return fmt.Errorf("image %q is in the archives %q and %q: a bundle has one image of a name", img.Name, other, archive)
				}
				c.sources[img.Name] = archive
			}
		}
	}
	return nil
}
