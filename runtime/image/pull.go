package image

import (
	"context"
	"errors"
	"strings"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/credentials"
)

// cleanupTimeout bounds cleanup after a context was cancelled.
const cleanupTimeout = 10 * time.Second

// pull pulls an image by its full name and unpacks it. It uses the credentials of a pod, and those of the host. Pulls of a name with
// different credentials share a lease and its partial content, so they run one after the other.
func (s *Store) pull(ctx context.Context, name string, ring *credentials.Keyring, report func(Progress)) (Image, error) {
	unlock, err := s.names.Lock(ctx, name)
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	m, b, release, err := s.begin(ctx, &s.pulls)
	if err != nil {
		return Image{}, err
	}
	defer release()
	var pulled containerd.Image
	err = s.leased(ctx, workPull+name, resume, func(ctx context.Context) error {
		a := &access{store: s, name: name, ring: ring, meter: m}
		return b.explain(a.try(ctx, func(r remotes.Resolver) (err error) {
			pulled, err = s.pullLeased(withBudget(ctx, b), name, r, report, b)
			return err
		}))
	})
	if err != nil {
		return Image{}, err
	}
	img, err := s.describe(ctx, pulled.Metadata())
	img.Pulled = true
	return img, err
}

func (s *Store) pullLeased(
	ctx context.Context, name string, resolver remotes.Resolver, report func(Progress), b *budget,
) (containerd.Image, error) {
	resolver, signed, err := s.pin(ctx, resolver, name, s.platform)
	if err != nil {
		return nil, err
	}
	t, parts := &tracker{budget: b}, newTree(b)
	defer t.report(ctx, s.client.ContentStore(), report)()
	img, err := s.client.Pull(ctx, name,
		containerd.WithResolver(resolver),
		containerd.WithPlatformMatcher(s.platform),
		containerd.WithImageHandlerWrapper(func(h images.Handler) images.Handler { return parts.guard(t.wrap(s.checkLayers(h, t))) }),
		containerd.WithPullUnpack,
		containerd.WithPullSnapshotter(s.opts.Snapshotter),
		containerd.WithUnpackOpts([]containerd.UnpackOpt{durable}))
	if err != nil {
		return nil, err
	}
	return img, s.remember(ctx, &signed, s.platform)
}

// checkLayers checks the configuration that h has fetched, before its layers are unpacked, and tells t about them.
func (s *Store) checkLayers(h images.Handler, t *tracker) images.Handler {
	return images.HandlerFunc(func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		list, err := h.Handle(ctx, d)
		if err != nil || !images.IsConfigType(d.MediaType) {
			return list, err
		}
		diffs, err := images.RootFS(ctx, s.client.ContentStore(), d)
		if err == nil {
			err = checkDiffs(diffs)
		}
		if err == nil && t.budget != nil {
			t.setPacked(ctx, s, diffs)
		}
		return list, err
	})
}

// checkDiffs checks that layers are digests. A single one is the key of a snapshot.
func checkDiffs(diffs []digest.Digest) error {
	for _, d := range diffs {
		if err := d.Validate(); err != nil {
			return exceeds("layer %q of the configuration: %v", d, err)
		}
	}
	return nil
}

// unpack creates the missing snapshots of the layers.
func (s *Store) unpack(ctx context.Context, img Image, report func(Progress)) error {
	b, err := s.newBudget(nil)
	if err != nil {
		return err
	}
	if err := b.content(img.Size); err != nil {
		return err
	}
	manifest, err := images.Manifest(ctx, s.client.ContentStore(), img.Target, s.platform)
	if err != nil {
		return err
	}
	diffs, err := images.RootFS(ctx, s.client.ContentStore(), manifest.Config)
	if err != nil {
		return err
	}
	layers := s.packed(ctx, manifest.Layers, diffs)
	defer atIntervals(ctx, func(context.Context) { report(b.unpacking(layers)) })()
	// An image that claims the layers of another one must not share its fate.
	return s.leased(ctx, workUnpack+img.Target.Digest.String(), resume, func(ctx context.Context) error {
		return b.explain(s.Handle(img).Unpack(withBudget(ctx, b), s.opts.Snapshotter, durable))
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
	if _, err := s.claim(ctx, byWork, id); err != nil {
		return err
	}
	lease := leases.Lease{ID: byWork.id(id), Labels: map[string]string{byWork.label: id}}
	err := work(leases.WithLease(ctx, lease.ID))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var opts []leases.DeleteOpt
	if err != nil {
		empty := s.empty(ctx, lease)
		// A wrong digest is detected at the end, and resuming would keep the same bytes.
		if rest == resume && !empty && !refused(err) && !errdefs.IsFailedPrecondition(err) && s.resumable(ctx, lease) {
			return err
		}
		if !empty || !strings.HasPrefix(id, workPull) { // an unpacked layer is on the disk without a lease until the collection
			opts = append(opts, leases.SynchronousDelete)
		}
	}
	return errors.Join(err, s.release(ctx, byWork, id, opts...))
}

// empty reports whether a lease holds nothing.
func (s *Store) empty(ctx context.Context, lease leases.Lease) bool {
	held, err := s.client.LeasesService().ListResources(ctx, lease)
	return err == nil && len(held) == 0
}

// resumable reports whether a lease has content that the next attempt needs. The lease of a pull that was cancelled has all content of the
// image if that is present, and would keep it after its removal.
func (s *Store) resumable(ctx context.Context, lease leases.Lease) bool {
	unfinished, err := s.unfinished(ctx, lease)
	return err != nil || unfinished
}
