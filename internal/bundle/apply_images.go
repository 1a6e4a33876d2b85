package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/signature"
)

// checkSignatures refuses images that the import would refuse: they are rejected, or must be signed and come without a signature. The
// import verifies the signatures of the others.
func (t *Transaction) checkSignatures(ctx context.Context) error {
	policy, err := t.config.Verification()
	if err != nil {
		return err
	}
	var present api.ImageList
	var errs []error
	for _, i := range t.Bundle.Images {
		rule, err := ruleFor(policy, i.Name)
		if err != nil {
			return err
		}
		switch {
		case rule.Type == signature.Reject:
			errs = append(errs, fmt.Errorf("image %q: %w", i.Name, rule.Refuse("")))
		case rule.Type == signature.Accept || t.Bundle.Signed[i.Archive] || len(t.Bundle.Signatures[i.Archive]) > 0:
		default:
			if present.Items == nil {
				if present, err = t.client.Images(ctx); err != nil {
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
	return &Error{
		Err: errors.Join(errs...),
		Hint: "create the bundle on a host that reaches the registry, or from an archive in imageArchives with its signature beside it, " +
			"or change images.verify",
	}
}

// importImages imports the image archives. The bundle is verified again while it is read.
func (t *Transaction) importImages(ctx context.Context) error {
	before, err := t.client.Images(ctx)
	if err != nil {
		return err
	}
	t.images = before.Items
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	defer t.Transfer.Done()
	return Archives(t.file, &t.Bundle.Manifest, func(f File, r io.Reader) error {
		r = io.TeeReader(r, t.Transfer.Counter("Importing images", f.Size))
		_, err := t.client.ImportUsedImages(ctx, r, t.Bundle.Signatures[f.Path]...)
		return err
	})
}

// restoreImages makes the names of images refer to those before the bundle, and names those that it could not restore.
func (t *Transaction) restoreImages(ctx context.Context) error {
	if len(t.images) == 0 {
		return nil
	}
	var errs []error
	for _, i := range t.Bundle.Images {
		if _, err := t.client.RestoreImage(ctx, i.Name, t.began); err != nil {
			errs = append(errs, fmt.Errorf("restore: %w", err))
		}
	}
	now, err := t.client.Images(ctx)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("restore: %w", err))...)
	}
	for _, i := range t.Bundle.Images {
		same := func(img api.Image) bool {
			return img.Name == i.Name && !img.Archive && image.PlatformMatches(img.Platform, image.HostPlatform())
		}
		was, is := slices.IndexFunc(t.images, same), slices.IndexFunc(now.Items, same)
		if was >= 0 && is >= 0 && t.images[was].Digest != now.Items[is].Digest {
			t.Note("image %q was changed, and is not restored; before, it was %s. Import that image again, or apply the bundle that has it",
				i.Name, t.images[was].Digest)
		}
	}
	return errors.Join(errs...)
}
