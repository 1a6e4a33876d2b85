package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/distribution/reference"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

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
	client, err := c.o.Client()
	if err != nil {
		return err
	}
	if err := c.pullMissing(ctx, client, names); err != nil {
		return err
	}
	groups, err := c.withSignatures(ctx, client, names)
	if err != nil {
		return err
	}
	defer c.o.Transfer.Done()
	shown := c.o.Transfer.Counter("Exporting images to "+strconv.Quote(c.o.Output), 0)
	for _, g := range groups {
		_, err = c.w.AddImages(func(w io.Writer) error {
			return client.ExportImages(ctx, io.MultiWriter(w, shown), c.o.Platform, g.Images...)
		}, g.Signatures...)
		if err != nil {
			return err
		}
	}
	return nil
}

// pullMissing pulls the images that are missing.
func (c *creation) pullMissing(ctx context.Context, client *api.Client, names []string) error {
	present, err := client.Images(ctx)
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
func (c *creation) withSignatures(ctx context.Context, client *api.Client, names []string) ([]imagefile.Group, error) {
	policy, err := c.o.Config.Verification()
	if err != nil {
		return nil, err
	}
	var groups imagefile.Groups
	for _, name := range names {
		required, err := mustBeSigned(policy, name)
		if err != nil {
			return nil, err
		}
		var signatures []string
		if !c.o.NeverPull {
			if signatures, err = c.signaturesOf(ctx, client, name, required); err != nil {
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
func (c *creation) signaturesOf(ctx context.Context, client *api.Client, name string, required bool) ([]string, error) {
	found, err := client.ImageSignatures(ctx, name, c.o.Platform)
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

// mustBeSigned reports whether a policy requires a signature of an image.
func mustBeSigned(policy *signature.Policy, name string) (bool, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return false, fmt.Errorf("image %q: %w", name, err)
	}
	rule := policy.For(named.Name())
	return rule.Type == signature.Signed, nil
}
