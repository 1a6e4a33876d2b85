package image

import (
	"context"
	"maps"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/snapshots"
)

// Forget removes the record of an image, and the note that a person requested it. Content that nothing else refers to remains on disk until
// [Store.Free]. The error for an unknown record is found by [IsNotFound].
func (s *Store) Forget(ctx context.Context, record string) error {
	if err := s.release(ctx, byPerson, record); err != nil { // first: after an interruption the image is one that prune removes
		return err
	}
	if err := s.release(ctx, byImport, record); err != nil {
		return err
	}
	if err := s.client.ImageService().Delete(ctx, record); err != nil {
		return err
	}
	return s.abandonPull(ctx, record)
}

// abandonPull deletes the lease of a pull that was interrupted, which has the start of a newer image. One that runs keeps it.
func (s *Store) abandonPull(ctx context.Context, name string) error {
	unlock := s.names.TryLock(name)
	if unlock == nil {
		return nil
	}
	defer unlock()
	return s.release(ctx, byWork, workPull+name)
}

// Free deletes content that nothing refers to from the disk, and returns its size. It calls remove first.
func (s *Store) Free(ctx context.Context, remove func() error) (freed int64, err error) {
	before, err := s.usage(ctx)
	if err != nil {
		return 0, err
	}
	if err := remove(); err != nil {
		return 0, err
	}
	if err := s.opts.Collect(ctx); err != nil {
		return 0, err
	}
	after, err := s.usage(ctx)
	if err != nil {
		return 0, err
	}
	maps.DeleteFunc(before, func(key string, _ int64) bool { _, remains := after[key]; return remains })
	for _, size := range before {
		freed += size
	}
	return freed, nil
}

// blobSizes returns the sizes of the content of images on disk, by digest.
func (s *Store) blobSizes(ctx context.Context) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := s.client.ContentStore().Walk(ctx, func(i content.Info) error {
		sizes[i.Digest.String()] = i.Size
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sizes, nil
}

// usage returns the sizes of the content and the unpacked layers of images on disk.
func (s *Store) usage(ctx context.Context) (map[string]int64, error) {
	sizes, err := s.blobSizes(ctx)
	if err != nil {
		return nil, err
	}
	return sizes, s.measureLayers(ctx, func(i *snapshots.Info) bool { return i.Kind == snapshots.KindCommitted },
		func(i *snapshots.Info, size int64) { sizes["layer "+i.Name] = size })
}
