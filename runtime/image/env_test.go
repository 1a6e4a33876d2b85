package image_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	introspectionapi "github.com/containerd/containerd/api/services/introspection/v1"
	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/introspection"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/core/metadata"
	"github.com/containerd/containerd/v2/core/mount"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/archive"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/containerd/v2/plugins/snapshots/native"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	bolt "go.etcd.io/bbolt"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

// timeout bounds the wait for conditions in tests.
const timeout = 30 * time.Second

// env is containerd's metadata, content and native snapshots in a directory, with an applier that needs no root.
type env struct {
	dir     string
	client  *containerd.Client
	store   *image.Store
	scope   image.Scope // of the archive that was loaded last, if any
	db      *metadata.DB
	applier *applier
	write   atomic.Pointer[func(context.Context) error] // called before each write of content, if not nil
	open    atomic.Pointer[func(context.Context) error] // called before content is opened, if not nil
	// update is called with the name of an image before its record is updated, if not nil.
	update atomic.Pointer[func(context.Context, string) error]
}

// newEnv returns an env and a context with its namespace, which is cancelled after the test.
func newEnv(t *testing.T, opts image.Options) (context.Context, *env) {
	t.Helper()
	w := &env{dir: t.TempDir(), applier: &applier{}}
	blobs, err := local.NewLabeledStore(filepath.Join(w.dir, "content"), nil)
	if err != nil {
		t.Fatal(err)
	}
	sn, err := native.NewSnapshotter(filepath.Join(w.dir, "native"))
	if err != nil {
		t.Fatal(err)
	}
	bdb, err := bolt.Open(filepath.Join(w.dir, "meta.db"), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	w.db = metadata.NewDB(bdb, blobs, map[string]snapshots.Snapshotter{"native": sn})
	ctx := namespaces.WithNamespace(t.Context(), "test")
	if err := w.db.Init(ctx); err != nil {
		t.Fatal(err)
	}
	w.applier.content = w.db.ContentStore()
	w.client, err = containerd.New("", containerd.WithServices(
		containerd.WithContentStore(slowContent{w.db.ContentStore(), w}),
		containerd.WithImageStore(collectingImages{metadata.NewImageStore(w.db), w}),
		containerd.WithSnapshotters(w.db.Snapshotters()),
		containerd.WithLeasesService(collectingLeases{metadata.NewLeaseManager(w.db), w.db}),
		containerd.WithDiffService(w.applier),
		containerd.WithIntrospectionService(plugins{}),
	))
	if err != nil {
		t.Fatal(err)
	}
	opts.Snapshotter, opts.Collect = "native", w.garbage
	w.store = image.New(w.client, opts)
	w.scope = w.store.In()
	t.Cleanup(func() {
		w.store.Close()
		if err := errors.Join(w.client.Close(), sn.Close(), bdb.Close()); err != nil {
			t.Error(err)
		}
	})
	return ctx, w
}

// load imports an archive and sets the scope.
func (w *env) load(ctx context.Context, archive string) ([]image.Image, error) {
	w.scope = w.store.In(archive)
	return w.store.ImportFile(ctx, archive, nil)
}

// collect runs the garbage collector, which containerd runs by itself.
func (w *env) collect(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := w.garbage(ctx); err != nil {
		t.Fatal(err)
	}
}

// garbage is the Collect of the store.
func (w *env) garbage(ctx context.Context) error {
	_, err := w.db.GarbageCollect(ctx)
	return err
}

// blobs counts the content. snapshots counts the unpacked layers and those being unpacked.
func (w *env) blobs(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	count := func(content.Info) error { n++; return nil }
	if err := w.client.ContentStore().Walk(ctx, count); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *env) snapshots(ctx context.Context, t *testing.T) (n int) {
	t.Helper()
	count := func(context.Context, snapshots.Info) error { n++; return nil }
	if err := w.client.SnapshotService("native").Walk(ctx, count); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *env) leases(ctx context.Context, t *testing.T) int {
	t.Helper()
	list, err := w.client.LeasesService().List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// list returns the images of the catalog.
func (w *env) list(ctx context.Context) (images []image.Image, err error) {
	entries, err := w.store.Catalog(ctx)
	for n := range entries {
		images = append(images, entries[n].Image)
	}
	return images, err
}

// recordIn returns the record of a name in an archive.
func recordIn(t *testing.T, archive, name string) string {
	t.Helper()
	full, err := image.FullName(name)
	if err != nil {
		t.Fatal(err)
	}
	record, err := image.ArchiveRecord(archive, full)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// claims returns the claims on a record and on its image, with who has them.
func (w *env) claims(ctx context.Context, t *testing.T, record string) (list []string) {
	t.Helper()
	claims, err := w.store.Claims(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if e := catalog(ctx, t, w)[record]; c.Image == record || e.ConfigDigest != "" && c.Image == e.ConfigDigest {
			list = append(list, strings.TrimSpace(string(c.By)+" "+c.Who))
		}
	}
	slices.Sort(list)
	return list
}

// wantClaims checks the claims on a record and on its image.
func (w *env) wantClaims(ctx context.Context, t *testing.T, record string, want ...string) {
	t.Helper()
	if got := w.claims(ctx, t, record); !slices.Equal(got, want) {
		t.Errorf("claims on %s: %q, want %q", record, got, want)
	}
}

// wantLeases checks the number of leases, and that the start of a daemon deletes none of them.
func (w *env) wantLeases(ctx context.Context, t *testing.T, want int) {
	t.Helper()
	before := w.leases(ctx, t)
	if err := w.store.DeleteLeases(ctx); err != nil {
		t.Fatal(err)
	}
	if after := w.leases(ctx, t); before != want || after != want {
		t.Errorf("%d leases, and %d after the next start, want %d", before, after, want)
	}
}

// damage overwrites content on disk, as a power failure can.
func (w *env) damage(t *testing.T, d digest.Digest) {
	t.Helper()
	name := filepath.Join(w.dir, "content/blobs", d.Algorithm().String(), d.Encoded())
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, make([]byte, fi.Size()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns a file of the unpacked image.
func (w *env) read(ctx context.Context, t *testing.T, img image.Image, name string) string {
	t.Helper()
	sn := w.client.SnapshotService("native")
	mounts, err := sn.View(ctx, "read-"+t.Name(), img.Snapshot)
	if err != nil {
		t.Fatalf("view the snapshot of %s: %v", img.Name, err)
	}
	data, err := os.ReadFile(filepath.Join(mounts[0].Source, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := sn.Remove(ctx, "read-"+t.Name()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// slowContent calls the functions that the test has set before content is written or opened.
type slowContent struct {
	content.Store
	env *env
}

func (c slowContent) Writer(ctx context.Context, opts ...content.WriterOpt) (content.Writer, error) {
	if write := c.env.write.Load(); write != nil {
		if err := (*write)(ctx); err != nil {
			return nil, err
		}
	}
	return c.Store.Writer(ctx, opts...)
}

func (c slowContent) ReaderAt(ctx context.Context, d ocispec.Descriptor) (content.ReaderAt, error) {
	if open := c.env.open.Load(); open != nil {
		if err := (*open)(ctx); err != nil {
			return nil, err
		}
	}
	return c.Store.ReaderAt(ctx, d)
}

// applier unpacks layers into the directories of the native snapshotter.
type applier struct {
	content content.Provider

	mu      sync.Mutex
	applied int
	synced  int                         // number of layers applied with sync
	before  func(context.Context) error // called before each layer, if not nil
}

func (a *applier) Apply(ctx context.Context, d ocispec.Descriptor, m []mount.Mount, opts ...diff.ApplyOpt) (ocispec.Descriptor, error) {
	var config diff.ApplyConfig
	for _, o := range opts {
		if err := o(ctx, d, &config); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	a.mu.Lock()
	a.applied++
	if config.SyncFs {
		a.synced++
	}
	before := a.before
	a.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	ra, err := a.content.ReaderAt(ctx, d)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer ra.Close()
	plain, err := diff.GetProcessor(ctx, diff.NewProcessorChain(d.MediaType, content.NewReader(ra)), nil)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer plain.Close()
	digester := digest.Canonical.Digester()
	if _, err := archive.Apply(ctx, m[0].Source, io.TeeReader(plain, digester.Hash()), archive.WithNoSameOwner()); err != nil {
		return ocispec.Descriptor{}, err
	}
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: digester.Digest()}, nil
}

func (a *applier) Compare(context.Context, []mount.Mount, []mount.Mount, ...diff.Opt) (ocispec.Descriptor, error) {
	return ocispec.Descriptor{}, errors.New("the applier compares nothing")
}

func (a *applier) counts() (applied, synced int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.applied, a.synced
}

// collectingImages and collectingLeases run the garbage collector on synchronous deletions, as containerd's services do.
type collectingImages struct {
	images.Store
	w *env
}

func (c collectingImages) Update(ctx context.Context, i images.Image, fields ...string) (images.Image, error) {
	if before := c.w.update.Load(); before != nil {
		if err := (*before)(ctx, i.Name); err != nil {
			return images.Image{}, err
		}
	}
	return c.Store.Update(ctx, i, fields...)
}

func (c collectingImages) Delete(ctx context.Context, name string, opts ...images.DeleteOpt) error {
	var o images.DeleteOptions
	for _, opt := range opts {
		if err := opt(ctx, &o); err != nil {
			return err
		}
	}
	err := c.Store.Delete(ctx, name, opts...)
	if err == nil && o.Synchronous {
		_, err = c.w.db.GarbageCollect(ctx)
	}
	return err
}

type collectingLeases struct {
	leases.Manager
	db *metadata.DB
}

func (c collectingLeases) Delete(ctx context.Context, l leases.Lease, opts ...leases.DeleteOpt) error {
	var o leases.DeleteOptions
	for _, opt := range opts {
		if err := opt(ctx, &o); err != nil {
			return err
		}
	}
	err := c.Manager.Delete(ctx, l, opts...)
	if err == nil && o.Synchronous {
		_, err = c.db.GarbageCollect(ctx)
	}
	return err
}

// plugins returns what a pull needs to know of the snapshotter.
type plugins struct{ introspection.Service }

func (plugins) Plugins(context.Context, ...string) (*introspectionapi.PluginsResponse, error) {
	return &introspectionapi.PluginsResponse{Plugins: []*introspectionapi.Plugin{{ID: "native"}}}, nil
}

// sample returns an image of two layers whose files contain its version.
func sample(name, version string) ocitar.Image {
	return ocitar.Image{
		Name: name,
		Gzip: true,
		Config: ocispec.ImageConfig{
			User: "nobody", Env: []string{"VERSION=" + version},
			Entrypoint: []string{"/bin/server"}, Cmd: []string{"-v"}, WorkingDir: "/srv", StopSignal: "SIGINT",
		},
		Layers: []ocitar.Layer{
			{{Path: "bin", Mode: fs.ModeDir | 0o755}, {Path: "bin/server", Mode: 0o755, Data: bytes.Repeat([]byte("server"), 1000)}},
			{{Path: "version", Mode: 0o644, Data: []byte(version)}},
		},
	}
}

// save writes an archive with the images and returns its path.
func save(t *testing.T, images ...ocitar.Image) string {
	t.Helper()
	var buf bytes.Buffer
	if err := ocitar.WriteOCI(&buf, images...); err != nil {
		t.Fatal(err)
	}
	return write(t, buf.Bytes())
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "archive.tar")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
