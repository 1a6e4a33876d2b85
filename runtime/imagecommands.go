package runtime

import (
	"context"
	"io"
	"time"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/files"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

// Images manages the images of the host for people.
type Images struct {
	store *image.Store
	files *files.Service
}

// Images returns the images of the host.
func (r *Runtime) Images() *Images { return &Images{r.images, r.files} }

// Catalog returns all names of images, see [image.Store.Catalog].
func (i *Images) Catalog(ctx context.Context) ([]image.Entry, error) {
	return i.store.Catalog(engine.Context(ctx))
}

// Detail returns an image with its configuration.
func (i *Images) Detail(ctx context.Context, record string) (image.Detail, error) {
	return i.store.Detail(engine.Context(ctx), record)
}

// Programs returns the directories in which the containers of an image find programs, and where programs are in it, see
// [files.Service.Programs]. The map is nil if the image is not unpacked.
func (i *Images) Programs(ctx context.Context, d *image.Detail, names []string) (found map[string]string, search []string, err error) {
	search = oci.SearchPath(d.Config.Config.Env)
	if d.Snapshot == "" {
		return nil, search, nil
	}
	found, err = i.files.Programs(engine.Context(ctx), d.Snapshot, search, names)
	return found, search, err
}

// Pull pulls an image for a platform; empty: that of the host. See [image.Store.PullByHand].
func (i *Images) Pull(
	ctx context.Context, ref, platform string, policy spec.PullPolicy, progress func(image.Progress),
) (record string, img image.Image, err error) {
	p, err := i.store.ParsePlatform(platform)
	if err != nil {
		return "", image.Image{}, err
	}
	img, err = i.store.PullByHand(engine.Context(ctx), ref, p, policy, progress)
	return p.Record(img.Name), img, err
}

// Platform returns the normalized name of a platform; empty: that of the host.
func (i *Images) Platform(text string) (string, error) { return i.store.PlatformName(text) }

// SetVerification sets which images must be signed, see [image.Store.SetVerification].
func (i *Images) SetVerification(p *signature.Policy) { i.store.SetVerification(p) }

// Import adds the images of an archive, see [image.Store.Import].
func (i *Images) Import(ctx context.Context, r io.Reader, keep bool, signatures ...signature.Signature) ([]image.Image, error) {
	return i.store.Import(engine.Context(ctx), r, keep, signatures...)
}

// SetFiles sets the archives in the image directories, see [image.Store.SetFiles].
func (i *Images) SetFiles(list []image.DirFile) { i.store.SetFiles(list) }

// ImportDirFile imports an archive of an image directory, see [image.Store.ImportDirFile].
func (i *Images) ImportDirFile(ctx context.Context, f image.DirFile,
	open func() (io.ReadCloser, error),
) (list []image.Image, read bool, err error) {
	return i.store.ImportDirFile(engine.Context(ctx), f, open)
}

// PublishFiles gives the names in archives to all pods, see [image.Store.PublishFiles].
func (i *Images) PublishFiles(ctx context.Context) error {
	return i.store.PublishFiles(engine.Context(ctx))
}

// Export writes images to an archive, see [image.Store.Export].
func (i *Images) Export(ctx context.Context, w io.Writer, records ...string) error {
	return i.store.Export(engine.Context(ctx), w, records...)
}

// Restore makes the name of an image refer to the one before an import, see [image.Store.Restore].
func (i *Images) Restore(ctx context.Context, record string, after time.Time) (bool, error) {
	return i.store.Restore(engine.Context(ctx), record, after)
}

// Signatures returns the signatures of an image in its registry, see [image.Store.Signatures].
func (i *Images) Signatures(ctx context.Context, record string) ([]signature.Signature, error) {
	return i.store.Signatures(engine.Context(ctx), record)
}

// Login checks and saves credentials for a registry, see [image.Store.Login].
func (i *Images) Login(ctx context.Context, registry string, l credentials.Login) error {
	return i.store.Login(ctx, registry, l)
}

// Logout deletes the credentials for a registry, see [image.Store.Logout].
func (i *Images) Logout(ctx context.Context, registry string) error {
	return i.store.Logout(ctx, registry)
}

// SetPullBandwidth changes the limit of all pulls, see [image.Store.SetBandwidth].
func (r *Runtime) SetPullBandwidth(bytesPerSecond int64) { r.images.SetBandwidth(bytesPerSecond) }

// Claims returns who needs which images, but for pods, see [image.Store.Claims].
func (i *Images) Claims(ctx context.Context) ([]image.Claim, error) {
	return i.store.Claims(engine.Context(ctx))
}

// Forget removes the name of an image, see [image.Store.Forget].
func (i *Images) Forget(ctx context.Context, record string) error {
	return i.store.Forget(engine.Context(ctx), record)
}

// ForgetUnless removes names of images unless something uses them afterwards, see [image.Store.ForgetUnless].
func (i *Images) ForgetUnless(ctx context.Context, records []string, used func() (bool, error)) (removed bool, err error) {
	return i.store.ForgetUnless(engine.Context(ctx), records, used)
}

// Free deletes what nothing refers to after remove, see [image.Store.Free].
func (i *Images) Free(ctx context.Context, remove func() error) (int64, error) {
	return i.store.Free(engine.Context(ctx), remove)
}
