package image

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

const (
	// labelImported marks the leases that protect images of [Store.ImportUsed] until a pod uses them. Its value is the record.
	labelImported = "podstead.io/imported"
	// importedPrefix starts the IDs of these leases.
	importedPrefix = "podstead-imported-"
	// labelExpire is the label of containerd with the time after which it deletes a lease.
	labelExpire = "containerd.io/gc.expire"
	// importedTTL is how long an image is protected after an import: the rest of a bundle may be large.
	importedTTL = time.Hour
)

func importedLease(record string) leases.Lease {
	return leases.Lease{ID: importedPrefix + digest.FromString(record).Encoded()}
}

// protectImported protects an image from now on for importedTTL.
func (s *Store) protectImported(ctx context.Context, record string) error {
	if err := s.unprotectImported(ctx, record); err != nil {
		return err
	}
	_, err := s.client.LeasesService().Create(
		ctx, leases.WithID(importedLease(record).ID), leases.WithLabel(labelImported, record), leases.WithExpiration(importedTTL),
	)
	if err != nil && !errdefs.IsAlreadyExists(err) { // a concurrent import has created it
		return err
	}
	return nil
}

func (s *Store) unprotectImported(ctx context.Context, record string) error {
	if err := s.client.LeasesService().Delete(ctx, importedLease(record)); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// Protected returns images that must not be removed although no pod uses them: those of [Store.Held], and those that were imported for pods
// that may not exist yet, see [Store.ImportUsed]. It implements [Protected].
func (s *Store) Protected(ctx context.Context) (map[string]string, error) {
	list, err := s.client.LeasesService().List(ctx, fmt.Sprintf("labels.%q", labelImported))
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	for _, l := range list {
		until, err := time.Parse(time.RFC3339, l.Labels[labelExpire])
		if err == nil && time.Now().Before(until) {
			reasons[l.Labels[labelImported]] = "imported for a pod"
		}
	}
	held, err := s.Held(ctx)
	maps.Copy(reasons, held)
	return reasons, err
}
