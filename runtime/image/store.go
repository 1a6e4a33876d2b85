// Package image manages the images of pods: import from archives, pull from registries by imagePullPolicy, unpacking, description,
// removal. It owns the images, content and unpacked layers of the containerd namespace that its contexts name. It starts no container and
// decides no retry.
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
//   - [Store.Keep] holds images in a lease for each pod, without names and without containers.
//   - Records of archives in the image directories hold their images while the archives are there.
//
// Nothing removes a record but [Store.PublishFiles], [Store.Forget] and [Store.ForgetUnless], and an unpacking that refuses the image.
// [Store.Claims] returns who needs which image. The decision which images are removed is not made here.
package image

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/platforms"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/semaphore"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
)

// maxParallelImports is the number of archives that are read at a time.
const maxParallelImports = 2

// labelArchive marks images that were imported from an archive. Its value identifies the file, so that an unchanged file is not
// read again; see fingerprint.
const labelArchive = "podstead.io/image-archive"

// Options configure a Store. Only Collect is required.
type Options struct {
	// Collect removes what no record refers to, and returns when that is gone from the disk.
	Collect func(context.Context) error
	// Snapshotter unpacks the layers. The default is overlayfs.
	Snapshotter string
	// MaxParallelPulls is the maximum number of concurrent pulls. The default is 2.
	MaxParallelPulls int
	// CertsDir contains a directory for each registry with its hosts.toml, as in containerd. Empty means none.
	CertsDir string
	// Credentials is the credentials file of the host. Nil means none.
	Credentials *credentials.File
	// Bandwidth is the limit of all pulls together in bytes per second. Zero means unlimited. See [Store.SetBandwidth].
	Bandwidth int64
	// MaxUnpackedSize is how many bytes an image may have when it is unpacked, and an archive when it is decompressed. The default is half
	// of the free space of the disk that contains the directory Disk, if that is set, when the work begins.
	MaxUnpackedSize int64
	// Disk is a directory on the disk of the content and the snapshots.
	Disk string
	// StallTimeout aborts a pull whose registry sends nothing for this time. The default is 30 seconds.
	StallTimeout time.Duration
	// RateWindow is the time in which a connection to a registry must deliver a mean of 1 KiB/s while a pull waits for it. The default is
	// a minute. A pull or an import gives up its slot after a sixth of that below 16 KiB/s.
	RateWindow time.Duration
	// Verification says which images must be signed; nil: none. See [Store.SetVerification].
	Verification *signature.Policy
}

// Store manages the images of one containerd. It is safe for concurrent use. Each method takes a context that names a containerd
// namespace, because the default namespace of a client does not reach the services of an engine in this process.
type Store struct {
	client   *containerd.Client // reads content through bounded
	content  content.Store      // unbounded
	opts     Options
	platform platforms.MatchComparer
	pulls    slots
	imports  slots
	archives guard.KeyedMutex // by prefix of records; held during an import
	kept     guard.KeyedMutex // by pod; held while the kept images are changed
	persons  sync.Mutex       // held while claims of persons are renewed, or released after they were looked at
	reads    reads
	peeks    peeks
	names    guard.KeyedMutex                 // by image; held during a pull
	policy   atomic.Pointer[signature.Policy] // of signatures
	flights  flights
	files    dirFiles

	bandwidth bandwidth
	quotas    quotas
}

// New returns a store that uses the services of engine, which must outlive it. Close the store after use.
func New(engine *containerd.Client, opts Options) *Store {
	opts.Snapshotter = cmp.Or(opts.Snapshotter, "overlayfs")
	if opts.MaxParallelPulls <= 0 {
		opts.MaxParallelPulls = 2
	}
	if opts.StallTimeout <= 0 {
		opts.StallTimeout = 30 * time.Second
	}
	if opts.RateWindow <= 0 {
		opts.RateWindow = time.Minute
	}
	opts.Credentials = cmp.Or(opts.Credentials, &credentials.File{})
	register()
	newSlots := func(n int) slots { return slots{free: semaphore.NewWeighted(int64(n)), interval: opts.RateWindow / 6} }
	client, err := containerd.New("", containerd.WithServices(
		containerd.WithContentStore(bounded{engine.ContentStore()}),
		containerd.WithImageStore(engine.ImageService()),
		containerd.WithSnapshotters(map[string]snapshots.Snapshotter{opts.Snapshotter: labelling{engine.SnapshotService(opts.Snapshotter)}}),
		containerd.WithLeasesService(engine.LeasesService()),
		containerd.WithDiffService(inspecting{engine.DiffService()}),
		containerd.WithIntrospectionService(engine.IntrospectionService()),
	))
	if err != nil {
		panic(fmt.Sprintf("client of given services: %v", err)) // it makes no connection
	}
	s := &Store{
		client:   client,
		content:  engine.ContentStore(),
		opts:     opts,
		platform: platforms.Default(),
		pulls:    newSlots(opts.MaxParallelPulls),
		imports:  newSlots(maxParallelImports),
	}
	s.pulls.limit = s.bandwidth.Rate
	s.SetBandwidth(opts.Bandwidth)
	s.SetVerification(opts.Verification)
	return s
}

// SetBandwidth changes the limit of all pulls together, in bytes per second, also of those in progress; 0: unlimited.
func (s *Store) SetBandwidth(bytesPerSecond int64) { s.bandwidth.Set(bytesPerSecond) }

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

// Config returns the image's configuration for containers: entrypoint, command, environment, user, working directory, stop
// signal.
func (s *Store) Config(ctx context.Context, img Image) (ocispec.Image, error) {
	config, err := s.Handle(img).Spec(ctx)
	if err != nil {
		return ocispec.Image{}, fmt.Errorf("image %q: %w", img.Name, err)
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
	return s.describeFor(ctx, rec, s.platform)
}

// describeFor is describe for a platform.
func (s *Store) describeFor(ctx context.Context, rec images.Image, platform platforms.MatchComparer) (Image, error) {
	_, archived := rec.Labels[labelArchive]
	img := Image{Name: imageName(rec.Name), Target: rec.Target, FromArchive: archived, CreatedAt: rec.CreatedAt}

	cs := s.client.ContentStore()
	manifest, err := images.Manifest(ctx, cs, rec.Target, platform)
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
	if len(diffs) != len(manifest.Layers) {
		return img, fmt.Errorf("read config: %d layers in the manifest, %d in the configuration", len(manifest.Layers), len(diffs))
	}
	if err := checkDiffs(diffs); err != nil {
		return img, fmt.Errorf("read config: %w", err)
	}
	img.ConfigDigest = manifest.Config.Digest.String()
	img.Snapshot = identity.ChainID(diffs).String()
	return img, nil
}
