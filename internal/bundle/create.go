package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/distribution/reference"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/plain"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// CreateOptions are the options of [Create]. Output, Version, Config, Client, Pull, Note and Transfer are required.
type CreateOptions struct {
	// Output is the path of the bundle.
	Output string
	// Version is that of podstead.
	Version string
	// Platform is that of the images; empty: that of this host.
	Platform string
	// NeverPull contacts no registry: neither for images that are missing, nor for signatures.
	NeverPull bool
	// WithConfig and WithSecrets include the config maps and the secrets of the pods.
	WithConfig, WithSecrets bool
	Config                  *config.Config
	// Client connects to the daemon. It is called if images of the host are needed.
	Client func() (*client.Client, error)
	// Pull pulls an image.
	Pull func(api.PullRequest) error
	// Note prints a remark.
	Note func(format string, args ...any)
	// Transfer shows the export of images.
	Transfer *view.Transfer
}

// PodFile is a pod file that refers to no file of this host.
type PodFile struct {
	// Pod is the pod of the original file, with absolute paths of its archives.
	Pod *spec.Pod
	// Extension is that of the file, with its dot.
	Extension string
	Text      []byte
}

// Create writes a bundle with pods and the images that they name, and returns its manifest and its size in bytes.
func Create(ctx context.Context, pods []PodFile, o CreateOptions) (m *Manifest, size int64, err error) {
	if o.Platform == "" {
		o.Platform = image.HostPlatform()
	}
	c := &creation{o: &o, pods: pods, sources: map[string]string{}, wanted: map[string]bool{}}
	if c.w, err = NewWriter(filepath.Dir(o.Output), o.Version, o.Platform, time.Now()); err != nil {
		return nil, 0, plain.WithoutPath(err)
	}
	defer func() { err = errors.Join(err, c.w.Close()) }()
	if err := c.collect(ctx); err != nil {
		return nil, 0, err
	}
	err = imagefile.Write(o.Output, 0o666, func(w io.Writer) (err error) {
		size, err = c.w.WriteTo(w)
		return err
	})
	return c.w.Manifest(), size, plain.WithoutPath(err)
}

// creation collects the parts of a bundle.
type creation struct {
	o       *CreateOptions
	w       *Writer
	pods    []PodFile
	sources map[string]string // of images in archives, by name: the archive
	wanted  map[string]bool   // images that the pods name
}

// collect adds all parts to the bundle.
func (c *creation) collect(ctx context.Context) error {
	for _, p := range c.pods {
		c.w.AddPod(p.Pod.Name, p.Extension, p.Text)
		for name, policy := range imagesOf(p.Pod) {
			full, err := image.FullName(name)
			if err != nil {
				return err
			}
			c.wanted[full] = true
			if policy == spec.PullAlways {
				c.o.Note("pod %q pulls image %q whenever it starts, also on a host without a registry: set imagePullPolicy", p.Pod.Name,
					name)
			}
		}
	}
	if err := c.addConfig(); err != nil {
		return err
	}
	if err := c.addArchives(); err != nil {
		return err
	}
	return c.addImages(ctx)
}

// imagesOf returns the images that a pod names, with their pull policies.
func imagesOf(pod *spec.Pod) map[string]spec.PullPolicy {
	images := map[string]spec.PullPolicy{}
	for c := range pod.OwnContainers() {
		images[c.Image] = c.ImagePullPolicy
	}
	for i := range pod.Volumes {
		if v := pod.Volumes[i].Image; v != nil {
			images[v.Reference] = v.PullPolicy
		}
	}
	return images
}

// addConfig adds the config maps and secrets of the pods that were requested.
func (c *creation) addConfig() error {
	source := configsource.Source{Dir: c.o.Config.ConfigDir}
	done := map[string]bool{}
	for _, p := range c.pods {
		for _, k := range []struct {
			kind     string
			names    map[string]bool
			included bool
			flag     string
			read     func(*spec.Pod, string) (map[string][]byte, error)
		}{
			{"configmap", p.Pod.ConfigMapNames(), c.o.WithConfig, "--with-config", source.ConfigMap},
			{"secret", p.Pod.SecretNames(), c.o.WithSecrets, "--with-secrets", source.Secret},
		} {
			for _, name := range slices.Sorted(maps.Keys(k.names)) {
				if isInline(p.Pod, k.kind, name) || done[k.kind+name] {
					continue
				}
				done[k.kind+name] = true
				if !k.included {
					c.o.Note("%s %q of pod %q is not in the bundle: include it with %s, or create it on the host", k.kind, name,
						p.Pod.Name, k.flag)
					continue
				}
				values, err := k.read(p.Pod, name)
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
	if c.o.WithSecrets && slices.ContainsFunc(c.w.Manifest().Objects(), func(o Object) bool { return o.Kind == "secret" }) {
		c.o.Note("the bundle contains secrets: everybody who can read it can read them")
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
func (c *creation) addArchives() error {
	done := map[string]bool{}
	for _, p := range c.pods {
		for _, archive := range p.Pod.ImageArchives {
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

// addImages adds the images that are in no archive, with their signatures. It pulls those that are missing.
func (c *creation) addImages(ctx context.Context) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.wanted)) {
		if c.sources[name] == "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	daemon, err := c.o.Client()
	if err != nil {
		return err
	}
	if err := c.pullMissing(ctx, daemon, names); err != nil {
		return err
	}
	groups, err := c.withSignatures(ctx, daemon, names)
	if err != nil {
		return err
	}
	defer c.o.Transfer.Done()
	shown := c.o.Transfer.Counter("Exporting images to "+strconv.Quote(c.o.Output), 0)
	for _, g := range groups {
		_, err = c.w.AddImages(func(w io.Writer) error {
			return daemon.ExportImages(ctx, io.MultiWriter(w, shown), c.o.Platform, g.Images...)
		}, g.Signatures...)
		if err != nil {
			return err
		}
	}
	return nil
}

// pullMissing pulls the images that are missing.
func (c *creation) pullMissing(ctx context.Context, daemon *client.Client, names []string) error {
	present, err := daemon.Images(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(present.Items, func(img api.Image) bool {
			return img.Name == name && !img.Archive && !img.Damaged && image.PlatformMatches(img.Platform, c.o.Platform)
		}) {
			continue
		}
		if c.o.NeverPull {
			return fmt.Errorf("image %q is not present for platform %s", name, c.o.Platform)
		}
		if err := c.o.Pull(api.PullRequest{Name: name, Platform: c.o.Platform, Policy: spec.PullIfNotPresent}); err != nil {
			return err
		}
	}
	return nil
}

// withSignatures returns the archives that the bundle has for images, with the signatures that the registries have. A registry that cannot
// be reached is an error only if this host requires a signature: then other hosts are likely to require it too.
func (c *creation) withSignatures(ctx context.Context, daemon *client.Client, names []string) ([]imagefile.Group, error) {
	policy, err := c.o.Config.Verification()
	if err != nil {
		return nil, err
	}
	var groups imagefile.Groups
	for _, name := range names {
		rule, err := ruleFor(policy, name)
		if err != nil {
			return nil, err
		}
		required := rule.Type == signature.Signed
		var signatures []string
		if !c.o.NeverPull {
			if signatures, err = c.signaturesOf(ctx, daemon, name, required); err != nil {
				return nil, err
			}
		}
		if len(signatures) == 0 && required {
			c.o.Note("the bundle has no signature of image %q, which images.verify of this host requires: %s", name, c.unsigned())
		}
		groups.Add(name, signatures)
	}
	return groups, nil
}

// unsigned says how an image gets a signature into the bundle.
func (c *creation) unsigned() string {
	if c.o.NeverPull {
		return "--pull Never contacts no registry"
	}
	return "list its archive in imageArchives, with the signature beside it"
}

// signaturesOf returns the signatures of an image in its registry.
func (c *creation) signaturesOf(ctx context.Context, daemon *client.Client, name string, required bool) ([]string, error) {
	found, err := daemon.ImageSignatures(ctx, name, c.o.Platform)
	if err == nil {
		err = imagefile.CheckSize(found.Items)
	}
	switch {
	case err == nil:
		return found.Items, nil
	case ctx.Err() != nil || errors.Is(err, api.ErrUnavailable):
		return nil, err
	case required:
		return nil, &Error{
			Err:  fmt.Errorf("image %q must be signed: %w", name, err),
			Hint: "try again when the registry responds, or create a bundle without its signatures with --pull Never",
		}
	}
	c.o.Note("the bundle has no signatures of image %q: %v", name, err)
	return nil, nil
}

// ruleFor returns the rule of a policy for an image.
func ruleFor(policy *signature.Policy, name string) (signature.Rule, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return signature.Rule{}, fmt.Errorf("image %q: %w", name, err)
	}
	return policy.For(named.Name()), nil
}
