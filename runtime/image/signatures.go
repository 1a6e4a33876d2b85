package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/remotes"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
)

// Signatures returns the signatures that the registry of a pulled image has, of the target of its record and of its manifest. It verifies
// none of them. It uses the credentials of a pull. An imported image has none: its archive has them. The error for an unknown record is
// found by [IsNotFound], others are an [*Error] or that of ctx.
func (s *Store) Signatures(ctx context.Context, record string) ([]signature.Signature, error) {
	rec, err := s.client.ImageService().Get(ctx, record)
	if err != nil {
		return nil, err
	}
	if _, archived := rec.Labels[labelArchive]; archived {
		return nil, nil
	}
	d, err := s.detail(ctx, rec)
	if err != nil {
		return nil, err
	}
	if d.Damaged {
		return nil, fail(ctx, ReasonInspect, "get signatures of image", d.Name, errDamaged)
	}
	subjects := []ocispec.Descriptor{d.Target}
	if d.manifest.Digest != d.Target.Digest {
		subjects = append(subjects, d.manifest)
	}
	list, err := s.fetchSignatures(ctx, d.Name, subjects)
	if err != nil {
		return nil, fail(ctx, ReasonPull, "get signatures of image", d.Name, err)
	}
	return list, nil
}

// fetchSignatures returns the signatures of subjects in the registry of an image. A place that cannot be read is an error only if the
// others have no signatures.
func (s *Store) fetchSignatures(ctx context.Context, name string, subjects []ocispec.Descriptor) (list []signature.Signature, err error) {
	m := &meter{}
	release, err := s.pulls.hold(ctx, m)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := s.signatureTimeout(ctx)
	defer cancel()
	repo, _ := repository(name)
	a := &access{store: s, name: name, ring: &credentials.Keyring{}, meter: m}
	err = a.try(ctx, func(r remotes.Resolver) (err error) {
		list, err = (&registrySource{resolver: r, rule: &signature.Rule{}, name: name, repo: repo}).all(ctx, subjects)
		return err
	})
	if err != nil {
		return nil, inTime(ctx, err)
	}
	return list, nil
}

// all returns the signatures of all subjects at all places.
func (f *registrySource) all(ctx context.Context, subjects []ocispec.Descriptor) (list []signature.Signature, err error) {
	var failed []error
	for _, d := range subjects {
		for place, more := 0, true; more; place++ {
			var some []signature.Signature
			if some, more, err = f.signatures(ctx, d, place); err != nil {
				failed = append(failed, unruled(err))
			}
			list = append(list, some...)
		}
	}
	if len(list) > signature.MaxSignatures {
		return nil, fmt.Errorf("the image has more than %d signatures", signature.MaxSignatures)
	}
	if len(list) > 0 {
		return list, nil
	}
	return nil, errors.Join(failed...)
}

// unruled returns an error of a source without the rule of a policy, which has no part in it.
func unruled(err error) error {
	if e, ok := errors.AsType[*signature.Error](err); ok {
		return errors.New(e.Cause)
	}
	return err
}
