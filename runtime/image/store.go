// Package image manages the images of pods: import from archives, pull from registries by imagePullPolicy, unpacking,
// description, removal. It owns the images, content and unpacked layers of the containerd namespace that its contexts name. It
// starts no container and decides no retry.
//
// What keeps what alive for containerd's garbage collector:
//
//   - An image record holds its content, and the content of its config holds the unpacked layers, by labels that are set before
//     the record is created.
//   - A container record holds its own snapshot and, through it, the layers below. So an image may be removed or replaced while
//     containers of it run. They need no lease. With [KeepLabels] it also holds the content of the image, so that the container can
//     be started again from the same image.
//   - Between Ensure and the creation of a container record only the image holds the layers. If the image is removed in between,
//     the creation fails with "not found", and the next attempt pulls again.
//   - A lease holds work in progress. It survives a failed or killed pull, so that the next one resumes.
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

// labelArchive marks images that were imported from an archive. Its value identifies the file, so that an unchanged file is not
// read again; see fingerprint.
const labelArchive = "podstead.io/image-archive"

// Options configure a Store. The zero value is usable.
type Options struct {
	// Snapshotter unpacks the layers. The default is overlayfs.
	Snapshotter string
	// MaxParallelPulls is the maximum number of concurrent pulls. The default is 2.
	MaxParallelPulls int
	// CertsDir contains a directory for each registry with its hosts.toml, as in containerd. Empty means none.
	CertsDir string
	// StallTimeout aborts a pull whose registry sends nothing for this time. The default is 30 seconds.
	StallTimeout time.Duration
}

// Store manages the images of one containerd. It is safe for concurrent use. Each method takes a context that names a containerd
// namespace, because the default namespace of a client does not reach the services of an engine in this process.
type Store struct {
	client   *containerd.Client
	opts     Options
	platform platforms.MatchComparer
	pulls    *semaphore.Weighted
	imports  *semaphore.Weighted // one at a time; see load
	flights  flights
}

// New returns a store that uses client, which must outlive it. Close the store after use.
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

// Close cancels all pulls and waits for them to return. Partial downloads are kept for the next store. Afterwards Ensure fails.
func (s *Store) Close() { s.flights.close() }

// Image is an image of this host, as the name referred to it when it was looked up.
type Image struct {
	// Name is the full reference: docker.io/library/busybox:1.36.
	Name string
	// Target is the manifest or index that the name refers to.
	Target ocispec.Descriptor
	// ConfigDigest identifies the image independent of its name and the compression of its layers. It is the image ID that
	// kubectl shows.
	ConfigDigest string
	// Snapshot is the key of the unpacked image, the parent of its containers' snapshots. It is empty for an image without
	// layers.
	Snapshot string
	// Size is the size of the compressed content in bytes.
	Size int64
	// FromArchive is true if the image was imported from an archive.
	FromArchive bool
	// Pulled is true if the call that returned this value contacted a registry.
	Pulled bool
	// CreatedAt is the time when the name was created on this host.
	CreatedAt time.Time
}

// List returns all images in unspecified order. An image with damaged content has no ConfigDigest and no Snapshot.
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

// Remove removes the name of an image and waits until unreferenced content is deleted from disk. Containers of the image keep
// running. The error for an unknown image is errdefs.ErrNotFound.
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

// Config returns the image's configuration for containers: entrypoint, command, environment, user, working directory, stop
// signal.
func (s *Store) Config(ctx context.Context, img Image) (ocispec.Image, error) {
	config, err := s.Handle(img).Spec(ctx)
	if err != nil {
		return ocispec.Image{}, fmt.Errorf("read config of image %q: %w", img.Name, err)
	}
	return config, nil
}

// Handle returns the image as a type of containerd's client, for the options of NewContainer.
func (s *Store) Handle(img Image) containerd.Image {
	return containerd.NewImageWithPlatform(s.client, images.Image{Name: img.Name, Target: img.Target}, s.platform)
}

// describe reads the properties of an image. If content is missing or unreadable it returns an error, and the fields that need no
// content are still set.
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
