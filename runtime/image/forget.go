package image

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
)

// ForgetUnless removes the records of images, of which some may be unknown. Then it calls used. If something uses one of them now, a person
// has pulled or imported one again, or that is not certain, it restores all, so that a pod that was accepted meanwhile needs no pull.
// Otherwise it releases the claims of persons; other claims that were made meanwhile stay. It reports whether the records were removed.
func (s *Store) ForgetUnless(ctx context.Context, records []string, used func() (bool, error)) (removed bool, err error) {
	requested, err := s.claimed(ctx, byPerson)
	if err != nil {
		return false, err
	}
	lease, free, err := s.hold(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, free()) }()
	var gone []images.Image
	for _, name := range records {
		rec, err := s.unname(ctx, name, lease)
		if err != nil && !errdefs.IsNotFound(err) {
			return false, errors.Join(err, s.restore(ctx, gone))
		}
		if err == nil {
			gone = append(gone, rec)
		}
	}
	inUse, err := used()
	s.persons.Lock()
	defer s.persons.Unlock()
	now, nowErr := s.claimed(ctx, byPerson)
	if err = errors.Join(err, nowErr); err == nil && !inUse {
		inUse = slices.ContainsFunc(gone, func(rec images.Image) bool {
			l, is := now[rec.Name]
			return is && !l.CreatedAt.Equal(requested[rec.Name].CreatedAt)
		})
	}
	if inUse || err != nil {
		return false, errors.Join(err, s.restore(ctx, gone))
	}
	for _, rec := range gone {
		if _, is := requested[rec.Name]; is {
			err = errors.Join(err, s.release(ctx, byPerson, rec.Name))
		}
		err = errors.Join(err, s.abandonPull(ctx, rec.Name))
	}
	return len(gone) > 0, err
}

// unname removes a record, whose content a lease keeps.
func (s *Store) unname(ctx context.Context, name string, lease leases.Lease) (images.Image, error) {
	rec, err := s.client.ImageService().Get(ctx, name)
	if err != nil {
		return rec, err
	}
	content := leases.Resource{ID: rec.Target.Digest.String(), Type: contentResource}
	if err := s.client.LeasesService().AddResource(ctx, lease, content); err != nil && !errdefs.IsNotFound(err) {
		return rec, err // content that is missing cannot be kept
	}
	return rec, s.client.ImageService().Delete(ctx, name)
}

// restore creates records again, unless they exist by now.
func (s *Store) restore(ctx context.Context, list []images.Image) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, rec := range list {
		if _, err := s.client.ImageService().Create(ctx, rec); err != nil && !errdefs.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("restore image %q: %w", imageName(rec.Name), err))
		}
	}
	return errors.Join(errs...)
}
