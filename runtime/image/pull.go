package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
)

const (
	// labelLease marks the leases of this package.
	labelLease = "podstead.io/image-work"
	// partialTTL is how long the content of a failed pull is kept.
	partialTTL = 7 * 24 * time.Hour
	// cleanupTimeout bounds cleanup after a context was cancelled.
	cleanupTimeout = 10 * time.Second
)

// pull pulls an image by its full name and unpacks it.
func (s *Store) pull(ctx context.Context, name string, report func(Progress)) (Image, error) {
	if err := s.pulls.Acquire(ctx, 1); err != nil {
		return Image{}, err
	}
	defer s.pulls.Release(1)

	var pulled containerd.Image
	err := s.leased(ctx, "pull "+name, resume, func(ctx context.Context) error {
		resolver, release := s.resolver(ctx)
		defer release()
		t := &tracker{}
		watch, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			t.report(watch, s.client.ContentStore(), report)
		}()
		defer func() { stop(); <-watched }()

		var err error
		pulled, err = s.client.Pull(ctx, name,
			containerd.WithResolver(resolver),
			containerd.WithPlatformMatcher(s.platform),
			containerd.WithImageHandlerWrapper(t.wrap),
			containerd.WithPullUnpack,
			containerd.WithPullSnapshotter(s.opts.Snapshotter),
			containerd.WithUnpackOpts([]containerd.UnpackOpt{durable}))
		return err
	})
	if err != nil {
		return Image{}, err
	}
	img, err := s.describe(ctx, pulled.Metadata())
	img.Pulled = true
	return img, err
}

// unpack creates the missing snapshots of the layers.
func (s *Store) unpack(ctx context.Context, img Image) error {
	return s.leased(ctx, "unpack "+img.Snapshot, resume, func(ctx context.Context) error {
		return s.Handle(img).Unpack(ctx, s.opts.Snapshotter, durable)
	})
}

// durable syncs each layer to disk before its snapshot is recorded. Otherwise a power failure can leave a record of empty files,
// which nothing would detect.
func durable(_ context.Context, c *containerd.UnpackConfig) error {
	c.ApplyOpts = append(c.ApplyOpts, diff.WithSyncFs(true))
	return nil
}

// leftover is what happens to unfinished content when work fails.
type leftover bool

const (
	resume  leftover = true  // kept, the next attempt resumes from it
	discard leftover = false // deleted
)

// leased runs work with a lease named id. The lease holds what is not yet part of an image: partial downloads, and a snapshot
// being unpacked. After a kill the lease still exists, and the next work with this id takes it over.
func (s *Store) leased(ctx context.Context, id string, rest leftover, work func(context.Context) error) error {
	lm := s.client.LeasesService()
	lease := leases.Lease{ID: "podstead-image-" + digest.FromString(id).Encoded()}
	_, err := lm.Create(ctx, leases.WithID(lease.ID), leases.WithExpiration(partialTTL),
		leases.WithLabel(labelLease, id))
	if err != nil && !errdefs.IsAlreadyExists(err) {
		return fmt.Errorf("create lease for content: %w", err)
	}
	err = work(leases.WithLease(ctx, lease.ID))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var opts []leases.DeleteOpt
	if err != nil {
		// A wrong digest is detected at the end, and resuming would keep the same bytes.
		if rest == resume && !errdefs.IsFailedPrecondition(err) && s.holds(ctx, lease) {
			return err
		}
		opts = append(opts, leases.SynchronousDelete)
	}
	if derr := lm.Delete(ctx, lease, opts...); derr != nil && !errdefs.IsNotFound(derr) {
		return errors.Join(err, fmt.Errorf("recreate lease for content: %w", derr))
	}
	return err
}

// Owns reports whether a lease was created by this package, for content that is not yet part of an image.
func Owns(l leases.Lease) bool { return l.Labels[labelLease] != "" }

// holds reports whether a lease has resources.
func (s *Store) holds(ctx context.Context, lease leases.Lease) bool {
	list, err := s.client.LeasesService().ListResources(ctx, lease)
	return err != nil || len(list) > 0
}
