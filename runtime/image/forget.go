package image

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
)

// forgotten is a record that [Store.ForgetUnless] removes.
type forgotten struct {
	images.Image
	byHand bool
}

// ForgetUnless is [Store.Forget] for several records, of which some may be unknown. Then it calls used. If something uses one of them now,
// or if that is not certain, it restores all, so that a pod that was accepted meanwhile needs no pull. It reports whether they were
// removed.
func (s *Store) ForgetUnless(ctx context.Context, records []string, used func() (bool, error)) (removed bool, err error) {
	release, before, err := s.holdRecords(ctx, records)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, rec := range before {
		if err = s.Forget(ctx, rec.Name); errdefs.IsNotFound(err) {
			err = nil
		}
		if err != nil {
			break
		}
	}
	inUse := false
	if err == nil {
		inUse, err = used()
	}
	if err == nil && !inUse {
		return len(before) > 0, nil
	}
	return false, errors.Join(err, s.restore(ctx, before))
}

// holdRecords keeps the content of images until release is called, and returns their records.
func (s *Store) holdRecords(ctx context.Context, records []string) (release func() error, held []forgotten, err error) {
	marked, err := s.claimed(ctx, byPerson)
	if err != nil {
		return nil, nil, err
	}
	lease, release, err := s.hold(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range records {
		rec, err := s.client.ImageService().Get(ctx, name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = s.client.LeasesService().AddResource(ctx, lease, leases.Resource{ID: rec.Target.Digest.String(), Type: contentResource})
		}
		if err != nil && !errdefs.IsNotFound(err) { // content that is missing cannot be kept
			return nil, nil, errors.Join(err, release())
		}
		_, byHand := marked[name]
		held = append(held, forgotten{rec, byHand})
	}
	return release, held, nil
}

// restore creates records again, unless they exist by now.
func (s *Store) restore(ctx context.Context, list []forgotten) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, rec := range list {
		if rec.byHand {
			_, err := s.claim(ctx, byPerson, rec.Name)
			errs = append(errs, err)
		}
		if _, err := s.client.ImageService().Create(ctx, rec.Image); err != nil && !errdefs.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("restore image %q: %w", imageName(rec.Name), err))
		}
	}
	return errors.Join(errs...)
}
