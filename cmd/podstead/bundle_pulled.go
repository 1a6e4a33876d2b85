package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/distribution/reference"
	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/imagefile"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// addImages adds the images that are in no archive, with their signatures. It pulls those that are missing.
func (c *bundling) addImages(cmd *cobra.Command) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.wanted)) {
		if c.sources[name] == "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	client, err := c.a.client(cmd)
	if err != nil {
		return err
	}
	if err := c.pullMissing(cmd, client, names); err != nil {
		return err
	}
	groups, err := c.withSignatures(cmd, client, names)
	if err != nil {
		return err
	}
	t := view.Transfer{W: c.a.err, Width: c.a.width()}
	defer t.Done()
	var n int64
	for _, g := range groups {
		_, err = c.w.AddImages(func(w io.Writer) error {
			return client.ExportImages(cmd.Context(), writerFunc(func(b []byte) (int, error) {
				n += int64(len(b))
				t.Bytes("Exporting images to "+strconv.Quote(c.f.output), n, 0)
				return w.Write(b)
			}), c.f.platform, g.Images...)
		}, g.Signatures...)
		if err != nil {
			return err
		}
	}
	return nil
}

// pullMissing pulls the images that are missing.
func (c *bundling) pullMissing(cmd *cobra.Command, client *api.Client, names []string) error {
	present, err := client.Images(cmd.Context())
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(present.Items, func(img api.Image) bool {
			return img.Name == name && !img.Archive && !img.Damaged && image.PlatformMatches(img.Platform, c.f.platform)
		}) {
			continue
		}
		if c.f.pull == string(spec.PullNever) {
			return fmt.Errorf("image %q is not present for platform %s", name, c.f.platform)
		}
		if err := c.a.pullImage(cmd, api.PullRequest{Name: name, Platform: c.f.platform, Policy: spec.PullIfNotPresent}); err != nil {
			return err
		}
	}
	return nil
}

// withSignatures returns the archives that the bundle has for images, with the signatures that the registries have. A registry that cannot
// be reached is an error only if this host requires a signature: then other hosts are likely to require it too.
func (c *bundling) withSignatures(cmd *cobra.Command, client *api.Client, names []string) ([]imagefile.Group, error) {
	settings, err := c.a.config(cmd)
	if err != nil {
		return nil, err
	}
	policy, err := settings.Verification()
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
		if c.f.pull != string(spec.PullNever) {
			if signatures, err = c.signaturesOf(cmd.Context(), client, name, required); err != nil {
				return nil, err
			}
		}
		if len(signatures) == 0 && required {
			c.a.note("the bundle has no signature of image %q, which images.verify of this host requires: %s", name, c.unsigned())
		}
		groups.Add(name, signatures)
	}
	return groups, nil
}

// unsigned says how an image gets a signature into the bundle.
func (c *bundling) unsigned() string {
	if c.f.pull == string(spec.PullNever) {
		return "--pull Never contacts no registry"
	}
	return "list its archive in imageArchives, with the signature beside it"
}

// signaturesOf returns the signatures of an image in its registry.
func (c *bundling) signaturesOf(ctx context.Context, client *api.Client, name string, required bool) ([]string, error) {
	found, err := client.ImageSignatures(ctx, name, c.f.platform)
	if err == nil {
		err = imagefile.CheckSize(found.Items)
	}
	switch {
	case err == nil:
		return found.Items, nil
	case ctx.Err() != nil || errors.Is(err, api.ErrUnavailable):
		return nil, err
	case required:
		return nil, &failure{
			status: statusFailed, err: fmt.Errorf("image %q must be signed: %w", name, err),
			hints: []string{"try again when the registry responds, or create a bundle without its signatures with --pull Never"},
		}
	}
	c.a.note("the bundle has no signatures of image %q: %v", name, err)
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
