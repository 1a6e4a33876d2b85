package image

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The start of the key of work is its kind. The rest is the name, digest or archive.
const (
	workPull   = "pull "
	workUnpack = "unpack "
	workImport = "import "

	// ingestResource is the type of content in a lease that has not been received completely.
	ingestResource = "ingests"
)

// DeleteLeases deletes the leases of an earlier daemon that was killed: those that were of use for this daemon only, which would keep
// unfinished containers for a day, those of work that has finished, or that nothing resumes, which would keep removed images for a week,
// and requests of persons for images that are not there. It must be called before other methods, and before anything else creates a lease.
func (s *Store) DeleteLeases(ctx context.Context) error {
	lm := s.client.LeasesService()
	list, err := lm.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range list {
		needed, err := s.needed(ctx, l)
		if err == nil && !needed {
			err = lm.Delete(ctx, l)
		}
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err) // it names the lease
		}
	}
	return errors.Join(errs...)
}

// needed reports whether this daemon needs a lease of an earlier one.
func (s *Store) needed(ctx context.Context, l leases.Lease) (bool, error) {
	if l.Labels[byWork.label] != "" {
		return s.unfinished(ctx, l)
	}
	if record := byPerson.key(l); record != "" {
		_, err := s.client.ImageService().Get(ctx, record)
		if errdefs.IsNotFound(err) {
			return false, nil
		}
		return true, err
	}
	return slices.ContainsFunc(leaseKinds[:], func(k leaseKind) bool { return l.Labels[k.label] != "" }), nil
}

// unfinished reports whether the content of interrupted work is of use.
func (s *Store) unfinished(ctx context.Context, l leases.Lease) (bool, error) {
	work := l.Labels[byWork.label]
	if name, ok := strings.CutPrefix(work, workPull); ok {
		rec, err := s.client.ImageService().Get(ctx, name)
		if errdefs.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if s.lacksLayers(ctx, rec) {
			return true, nil
		}
		return s.holdsMore(ctx, l, rec)
	}
	target, ok := strings.CutPrefix(work, workUnpack)
	if !ok {
		return false, nil // an import starts again
	}
	records, err := s.client.ImageService().List(ctx, "target.digest=="+target)
	if err != nil || len(records) == 0 {
		return false, err
	}
	return s.lacksLayers(ctx, records[0]), nil
}

// holdsMore reports whether a lease has content that is not part of an image: the start of a newer image of the same name.
func (s *Store) holdsMore(ctx context.Context, l leases.Lease, rec images.Image) (bool, error) {
	resources, err := s.client.LeasesService().ListResources(ctx, l)
	if err != nil {
		return false, err
	}
	content := map[string]bool{}
	collect := func(_ context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		content[d.Digest.String()] = true
		return nil, nil
	}
	children := images.FilterPlatforms(images.ChildrenHandler(s.client.ContentStore()), s.platform)
	if err := images.Walk(ctx, images.Handlers(images.HandlerFunc(collect), children), rec.Target); err != nil {
		return false, err
	}
	return slices.ContainsFunc(resources, func(r leases.Resource) bool {
		return r.Type == ingestResource || r.Type == contentResource && !content[r.ID]
	}), nil
}

// lacksLayers reports whether an image is not unpacked, or not known to be.
func (s *Store) lacksLayers(ctx context.Context, rec images.Image) bool {
	img, err := s.describe(ctx, rec)
	if err != nil {
		return true
	}
	ok, err := s.unpacked(ctx, img)
	return !ok || err != nil
}
