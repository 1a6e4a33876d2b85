package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/distribution/reference"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/bundle"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
)

// checkSignatures refuses images that the import would refuse: they are rejected, or must be signed and come without a signature. The
// import verifies the signatures of the others.
func (c *carrying) checkSignatures() error {
	policy, err := c.config.Verification()
	if err != nil {
		return err
	}
	var present api.ImageList
	var errs []error
	for _, i := range c.bundle.Images {
		named, err := reference.ParseNormalizedNamed(i.Name)
		if err != nil {
			return fmt.Errorf("image %q: %w", i.Name, err)
		}
		rule := policy.For(named.Name())
		switch {
		case rule.Type == signature.Reject:
			errs = append(errs, fmt.Errorf("image %q: %w", i.Name, rule.Refuse("")))
		case rule.Type == signature.Accept || c.bundle.Signed[i.Archive] || len(c.bundle.Signatures[i.Archive]) > 0:
		default:
			if present.Items == nil {
				if present, err = c.w.Client.Images(c.cmd.Context()); err != nil {
					return err
				}
			}
			if !slices.ContainsFunc(present.Items, func(p api.Image) bool {
				return p.Name == i.Name && p.Digest == i.Digest && p.Verification == api.ImageVerified
			}) {
				errs = append(errs, fmt.Errorf("image %q: %w", i.Name, rule.Refuse("the bundle has no signature of it")))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &failure{
		status: statusFailed, err: errors.Join(errs...),
		hints: []string{"create the bundle on a host that reaches the registry, or from an archive in imageArchives with its signature beside it, or change images.verify"},
	}
}

// importImages imports the image archives. The bundle is verified again while it is read.
func (c *carrying) importImages(ctx context.Context) error {
	before, err := c.w.Client.Images(ctx)
	if err != nil {
		return err
	}
	c.images = before.Items
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	t := view.Transfer{W: c.a.err, Width: c.a.width()}
	defer t.Done()
	return bundle.Archives(c.file, &c.bundle.Manifest, func(f bundle.File, r io.Reader) error {
		report := func(n int64) { t.Bytes("Importing images", n, f.Size) }
		_, err := c.w.Client.ImportUsedImages(ctx, &counted{r: r, report: report}, c.bundle.Signatures[f.Path]...)
		return err
	})
}

// restoreImages makes the names of images refer to those before the bundle, and names those that it could not restore.
func (c *carrying) restoreImages(ctx context.Context) error {
	if len(c.images) == 0 {
		return nil
	}
	var errs []error
	for _, i := range c.bundle.Images {
		if _, err := c.w.Client.RestoreImage(ctx, i.Name, c.began); err != nil {
			errs = append(errs, fmt.Errorf("restore: %w", err))
		}
	}
	now, err := c.w.Client.Images(ctx)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("restore: %w", err))...)
	}
	for _, i := range c.bundle.Images {
		same := func(img api.Image) bool {
			return img.Name == i.Name && !img.Archive && image.PlatformMatches(img.Platform, image.HostPlatform())
		}
		was, is := slices.IndexFunc(c.images, same), slices.IndexFunc(now.Items, same)
		if was >= 0 && is >= 0 && c.images[was].Digest != now.Items[is].Digest {
			c.a.note("image %q was changed, and is not restored; before, it was %s. Import that image again, or apply the bundle that has it", i.Name, c.images[was].Digest)
		}
	}
	return errors.Join(errs...)
}
