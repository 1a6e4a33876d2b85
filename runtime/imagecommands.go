package runtime

import (
	"context"
	"io"

	"github.com/podstead/podstead/runtime/enginecall"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// Images manages the images of the host for people.
type Images struct{ store *image.Store }

// Images returns the images of the host.
func (r *Runtime) Images() *Images { return &Images{r.images} }

// Catalog returns all names of images, see [image.Store.Catalog].
func (i *Images) Catalog(ctx context.Context) ([]image.Entry, error) {
	return i.store.Catalog(enginecall.Context(ctx))
}

// Detail returns an image with its configuration.
func (i *Images) Detail(ctx context.Context, record string) (image.Detail, error) {
	return i.store.Detail(enginecall.Context(ctx), record)
}

// Pull pulls an image for a platform; empty: that of the host. See [image.Store.PullByHand].
func (i *Images) Pull(
	ctx context.Context, ref, platform string, policy spec.PullPolicy, progress func(image.Progress),
) (record string, img image.Image, err error) {
	p, err := i.store.ParsePlatform(platform)
	if err != nil {
		return "", image.Image{}, err
	}
	img, err = i.store.PullByHand(enginecall.Context(ctx), ref, p, policy, progress)
	return p.Record(img.Name), img, err
}

// Platform returns the normalized name of a platform; empty: that of the host.
func (i *Images) Platform(text string) (string, error) { return i.store.PlatformName(text) }

// Import adds the images of an archive, see [image.Store.Import].
func (i *Images) Import(ctx context.Context, r io.Reader, signatures ...signature.Signature) ([]image.Image, error) {
	return i.store.Import(enginecall.Context(ctx), r, signatures...)
}

// SetVerification sets which images must be signed, see [image.Store.SetVerification].
func (i *Images) SetVerification(p *signature.Policy) { i.store.SetVerification(p) }

// Export writes images to an archive, see [image.Store.Export].
func (i *Images) Export(ctx context.Context, w io.Writer, records ...string) error {
	return i.store.Export(enginecall.Context(ctx), w, records...)
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

// Requested returns the records of the images that a person requested, see [image.Store.Requested].
func (i *Images) Requested(ctx context.Context) (map[string]bool, error) {
	return i.store.Requested(enginecall.Context(ctx))
}

// Forget removes the name of an image, see [image.Store.Forget].
func (i *Images) Forget(ctx context.Context, record string) error {
	return i.store.Forget(enginecall.Context(ctx), record)
}

// Free deletes what nothing refers to after remove, see [image.Store.Free].
func (i *Images) Free(ctx context.Context, remove func() error) (int64, error) {
	return i.store.Free(enginecall.Context(ctx), remove)
}
