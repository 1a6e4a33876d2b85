// Package image keeps the images of pods: imported from archives, pulled from
// registries by the rules of imagePullPolicy, unpacked, described, removed. It
// owns the images, content and unpacked layers of the containerd namespace
// that its contexts name. It starts no container and decides no retry.
//
// What keeps what alive, as containerd's garbage collector sees it:
//
//   - An image record holds its content, and the content of its config holds
//     the unpacked layers, by labels that are set before the record is.
//   - A container record holds its own snapshot and, through it, the layers
//     below. So an image may be removed or replaced while containers of it
//     run. They need no lease.
//   - Between Ensure and the record of a container nothing but the image holds
//     the layers. A removal in that moment makes the creation fail with "not
//     found", and the next attempt pulls again.
//   - Work in progress is held by a lease. It outlives a pull that failed or was
//     killed, so that the next one resumes.
package image

import (
	"context"
	"fmt"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/platforms"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/semaphore"
)

// labelArchive is on each image that an archive brought. Its value tells the
// file, so that an unchanged one need not be read again; see fingerprint.
const labelArchive = "podstead.io/image-archive"

// Options are what a Store can be told. The zero value is ready for use.
type Options struct {
	// Snapshotter unpacks the layers; empty means overlayfs.
	Snapshotter string
	// MaxParallelPulls is the number of images pulled at the same time; 0 means 2.
	MaxParallelPulls int
	// CertsDir holds a folder for each registry with its hosts.toml, as
	// containerd's. Empty means that there is none.
	CertsDir string
	// StallTimeout ends a pull whose registry sends nothing for so long; 0
	// means 30 seconds.
	StallTimeout time.Duration
}

// Store gives the images of one containerd. It is safe for concurrent use.
// Each method takes a context that names a containerd namespace: the default
// one of a client does not reach the services of an engine in this process.
type Store struct {
	client   *containerd.Client
	opts     Options
	platform platforms.MatchComparer
	pulls    *semaphore.Weighted
	imports  *semaphore.Weighted // one at a time; see Store.Import
	flights  flights
}

// New gives a store over client, which must outlive it. Close it.
func New(client *containerd.Client, opts Options) *Store {
	if opts.Snapshotter == "" {
		opts.Snapshotter = "overlayfs"
	}
	if opts.MaxParallelPulls <= 0 {
		opts.MaxParallelPulls = 2
	}
	if opts.StallTimeout <= 0 {
		opts.StallTimeout = 30 * time.Second
	}
	return &Store{
		client:   client,
		opts:     opts,
		platform: platforms.Default(),
		pulls:    semaphore.NewWeighted(int64(opts.MaxParallelPulls)),
		imports:  semaphore.NewWeighted(1),
	}
}

// Close cancels all pulls and waits for their end. What they have fetched stays
// for the next store. Ensure fails after it.
func (s *Store) Close() { s.flights.close() }

// Image is an image of this machine: what a name stood for when it was looked up.
type Image struct {
	// Name is the full reference: docker.io/library/busybox:1.36.
	Name string
	// Target is the manifest or the index that the name stands for.
	Target ocispec.Descriptor
	// ConfigDigest identifies the image itself, whatever it is named and
	// however its layers are compressed: the ID that kubectl shows.
	ConfigDigest string
	// Snapshot is the key of the unpacked image, the parent of its containers'
	// snapshots. It is empty for an image without layers.
	Snapshot string
	// Size is that of the packed content, in bytes.
	Size int64
	// FromArchive tells that no registry brought it.
	FromArchive bool
	// Pulled tells that the call that gave this value asked a registry.
	Pulled bool
	// CreatedAt is when its name came to this machine.
	CreatedAt time.Time
}

// List gives all images in no certain order. One whose content is damaged has
// neither ConfigDigest nor Snapshot.
func (s *Store) List(ctx context.Context) ([]Image, error) {
	records, err := s.client.ImageService().List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	list := make([]Image, 0, len(records))
	for _, r := range records {
		img, err := s.describe(ctx, r)
		if err != nil && ctx.Err() != nil {
			return nil, fmt.Errorf("list images: %w", ctx.Err())
		}
		list = append(list, img)
	}
	return list, nil
}

// Remove takes the name of an image away and waits until what nothing else
// holds is gone from disk. Containers of the image run on. An image that is
// not there is an error of errdefs.ErrNotFound.
func (s *Store) Remove(ctx context.Context, ref string) error {
	name, _, err := parse(ref)
	if err != nil {
		return err
	}
	if err := s.client.ImageService().Delete(ctx, name, images.SynchronousDelete()); err != nil {
		return fmt.Errorf("remove image %q: %w", ref, err)
	}
	return nil
}

// Config gives what the image says of its containers: entrypoint, command,
// environment, user, working directory, stop signal.
func (s *Store) Config(ctx context.Context, img Image) (ocispec.Image, error) {
	config, err := s.Handle(img).Spec(ctx)
	if err != nil {
		return ocispec.Image{}, fmt.Errorf("read config of image %q: %w", img.Name, err)
	}
	return config, nil
}

// Handle gives the image as containerd's client knows it, for the options of
// NewContainer.
func (s *Store) Handle(img Image) containerd.Image {
	return containerd.NewImageWithPlatform(s.client, images.Image{Name: img.Name, Target: img.Target}, s.platform)
}

// describe reads what is known of an image. With an error, which is one of
// missing or unreadable content, the fields that need no content are still set.
func (s *Store) describe(ctx context.Context, rec images.Image) (Image, error) {
	_, archived := rec.Labels[labelArchive]
	img := Image{Name: rec.Name, Target: rec.Target, FromArchive: archived, CreatedAt: rec.CreatedAt}

	cs := s.client.ContentStore()
	manifest, err := images.Manifest(ctx, cs, rec.Target, s.platform)
	if err != nil {
		return img, fmt.Errorf("read manifest: %w", err)
	}
	img.Size = manifest.Config.Size
	for _, l := range manifest.Layers {
		img.Size += l.Size
	}
	diffs, err := images.RootFS(ctx, cs, manifest.Config)
	if err != nil {
		return img, fmt.Errorf("read config: %w", err)
	}
	img.ConfigDigest = manifest.Config.Digest.String()
	img.Snapshot = identity.ChainID(diffs).String()
	return img, nil
}
