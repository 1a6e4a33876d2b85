package image

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// labelReplacement is the label with the [replacement].
const labelReplacement = "podstead.io/replacement"

// replacement says which image had a name before an import.
type replacement struct {
	MediaType string            `json:"mediaType"`
	Digest    digest.Digest     `json:"digest"`
	Size      int64             `json:"size"`
	Labels    map[string]string `json:"labels,omitempty"` // of the record
	By        digest.Digest     `json:"by"`               // the image that was imported
}

// keepReplaced keeps the image of a record for importedTTL before the record refers to another one.
func (s *Store) keepReplaced(ctx context.Context, record string, by digest.Digest) error {
	rec, err := s.client.ImageService().Get(ctx, record)
	if errdefs.IsNotFound(err) || err == nil && rec.Target.Digest == by {
		return nil
	}
	if err != nil {
		return err
	}
	label, err := json.Marshal(replacement{rec.Target.MediaType, rec.Target.Digest, rec.Target.Size, rec.Labels, by})
	if err != nil {
		return err
	}
	if err := s.renew(ctx, byReplacement, record, map[string]string{labelReplacement: string(label)}); err != nil {
		return err
	}
	lease := leases.Lease{ID: byReplacement.id(record)}
	return s.client.LeasesService().AddResource(ctx, lease, leases.Resource{ID: rec.Target.Digest.String(), Type: contentResource})
}

// Restore makes a record refer again to the image that it had before [Store.Import] has replaced it after a time. It reports whether it
// has done so: not if nothing was replaced, if the record has been changed or removed since, or if the earlier image is not on the host any
// more.
func (s *Store) Restore(ctx context.Context, record string, after time.Time) (restored bool, err error) {
	claimed, err := s.claimed(ctx, byReplacement)
	if err != nil {
		return false, err
	}
	var r replacement
	l, known := claimed[record]
	if !known || l.CreatedAt.Before(after) || json.Unmarshal([]byte(l.Labels[labelReplacement]), &r) != nil {
		return false, nil
	}
	if restored, err = s.moveBack(ctx, record, &r); err == nil {
		err = s.release(ctx, byReplacement, record)
	}
	if err != nil {
		return restored, fmt.Errorf("restore image %q: %w", record, err)
	}
	return restored, nil
}

func (s *Store) moveBack(ctx context.Context, record string, r *replacement) (bool, error) {
	rec, err := s.client.ImageService().Get(ctx, record)
	if errdefs.IsNotFound(err) || err == nil && rec.Target.Digest != r.By {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := s.content.Info(ctx, r.Digest); err != nil {
		if errdefs.IsNotFound(err) {
			return false, nil
		}
		return false, err
	}
	was := images.Image{Name: record, Target: ocispec.Descriptor{MediaType: r.MediaType, Digest: r.Digest, Size: r.Size}, Labels: r.Labels}
	_, err = s.client.ImageService().Update(ctx, was)
	return err == nil, err
}
