package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/internal/statefile"
)

// restoreTimeout bounds the time in which images are restored. Their content is read completely.
const restoreTimeout = 10 * time.Minute

// saveTimeout bounds the wait for the list of images when the engine stops.
const saveTimeout = 5 * time.Second

// ImageListFormat is the format of the list of images.
var ImageListFormat = statefile.Format{Version: 1, Unversioned: true, Migrate: statefile.Array("images"), Loss: statefile.Ordered}

// imageList is the list of images. Version 0 was an array.
type imageList struct {
	Images []listedImage `json:"images"`
}

// writeImageList replaces a list of images. Fields of a later version are not kept: that version writes the list again when it starts.
func writeImageList(path string, list []listedImage) error {
	return ImageListFormat.Write(path, imageList{list}, statefile.Unknown{})
}

// listedImage is an image in the list, which is kept beside the engine's records, so that images survive the loss of the records: their
// content is in files.
type listedImage struct {
	Name   string             `json:"name"`
	Target ocispec.Descriptor `json:"target"`
	Labels map[string]string  `json:"labels,omitempty"`
}

func (e *Engine) imageList() string { return filepath.Join(e.opt.Root, "images.json") }

// lostImageList is the list of images whose records are lost and that are not restored yet.
func (e *Engine) lostImageList() string { return filepath.Join(e.opt.Root, "images-lost.json") }

// keepImages restores images whose records are lost, and keeps the list of images up to date until ctx ends.
func (e *Engine) keepImages(ctx context.Context) error {
	ctx = namespaces.WithNamespace(ctx, Namespace)
	restoring, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	if err := e.restoreImages(restoring); err != nil {
		return fmt.Errorf("restore images: %w", err)
	}
	changes, failed := e.client.EventService().Subscribe(ctx, `topic~="^/images/"`)
	e.saver = make(chan struct{})
	go func() {
		defer close(e.saver)
		for {
			if err := e.saveImages(ctx); err != nil && ctx.Err() == nil {
				e.opt.Log.WarnContext(ctx, "cannot save the list of images", slog.Any("error", err))
			}
			select {
			case <-changes:
			case <-ctx.Done():
				return
			case err := <-failed:
				if ctx.Err() == nil {
					e.opt.Log.WarnContext(ctx, "the list of images is no longer saved", slog.Any("error", err))
				}
				return
			}
		}
	}()
	return nil
}

// awaitSaver waits until the list of images is no longer written. The disk may hang.
func (e *Engine) awaitSaver() {
	if e.saver == nil {
		return
	}
	select {
	case <-e.saver:
	case <-time.After(saveTimeout):
	}
}

// saveImages writes the list of images.
func (e *Engine) saveImages(ctx context.Context) error {
	records, err := e.client.ImageService().List(ctx)
	if err != nil {
		return err
	}
	list := make([]listedImage, 0, len(records))
	for _, r := range records {
		list = append(list, listedImage{r.Name, r.Target, r.Labels})
	}
	return writeImageList(e.imageList(), list)
}

// restoreImages creates the records of lost images again. An image whose content is missing or damaged is left out.
func (e *Engine) restoreImages(ctx context.Context) error {
	var lost imageList
	_, err := ImageListFormat.Read(e.lostImageList(), &lost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, statefile.ErrNewer) {
		e.opt.Log.WarnContext(ctx, "cannot read the list of images, they must be pulled again", slog.Any("error", err))
		return nil // the later version restores them
	}
	if err != nil {
		e.opt.Log.WarnContext(ctx, "cannot read the list of images, they must be pulled again", slog.Any("error", err))
		return os.Remove(e.lostImageList())
	}
	leased, release, err := e.client.WithLease(ctx, leases.WithRandomID(), leases.WithExpiration(restoreTimeout))
	if err != nil {
		return err
	}
	for n, i := range lost.Images {
		err := e.restoreImage(leased, i)
		if ctx.Err() != nil { // the next start continues
			return errors.Join(writeImageList(e.lostImageList(), lost.Images[n:]), release(context.WithoutCancel(ctx)))
		}
		if err != nil {
			e.opt.Log.WarnContext(ctx, "cannot restore image, it must be pulled again", slog.String("image", i.Name),
				slog.Any("error", err))
		}
	}
	return errors.Join(os.Remove(e.lostImageList()), release(context.WithoutCancel(ctx)))
}

func (e *Engine) restoreImage(ctx context.Context, i listedImage) error {
	cs := e.client.ContentStore()
	adopt := func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		return nil, e.adoptContent(ctx, d)
	}
	children := images.FilterPlatforms(images.ChildrenHandler(cs), platforms.Default())
	handler := images.Handlers(images.HandlerFunc(adopt), images.SetChildrenLabels(cs, children))
	if err := images.Walk(ctx, handler, i.Target); err != nil {
		return err
	}
	_, err := e.client.ImageService().Create(ctx, images.Image{Name: i.Name, Target: i.Target, Labels: i.Labels})
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// adoptContent verifies a file of the content store and creates its record. A damaged file is deleted: containerd would take it for
// present when the image is pulled.
func (e *Engine) adoptContent(ctx context.Context, d ocispec.Descriptor) error {
	if err := d.Digest.Validate(); err != nil {
		return err
	}
	path := filepath.Join(e.opt.Root, contentDir, "blobs", d.Digest.Algorithm().String(), d.Digest.Encoded())
	if err := verifyFile(path, d.Digest); err != nil {
		return err
	}
	w, err := e.client.ContentStore().Writer(ctx, content.WithRef("restore-"+d.Digest.String()), content.WithDescriptor(d))
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = w.Commit(ctx, d.Size, d.Digest)
	if errdefs.IsAlreadyExists(err) {
		err = nil
	}
	return errors.Join(err, w.Close())
}

// verifyFile deletes a file that does not match its digest. The error is a [damageError] then.
func verifyFile(path string, want digest.Digest) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	v := want.Verifier()
	if _, err := io.Copy(v, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if !v.Verified() {
		return errors.Join(&damageError{File: path, Reason: reasonContent, Detail: "content does not match its digest"}, os.Remove(path))
	}
	return nil
}
