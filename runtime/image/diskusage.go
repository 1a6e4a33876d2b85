package image

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// DiskUsage is what images and containers have on the disk. A blob is compressed content, and a layer is unpacked.
type DiskUsage struct {
	// Blobs and Layers are the sizes in bytes, by digest and chain ID.
	Blobs, Layers map[string]int64
	// Images are the blobs and the layers of each record. Several images can have the same.
	Images map[string]Parts
	// Writable are the sizes of the writable layers, by the key of the snapshot, which is the ID of the container.
	Writable map[string]int64
	// InUse are the layers below writable ones.
	InUse map[string]bool
}

// Parts are the blobs and layers of an image.
type Parts struct{ Blobs, Layers []string }

// DiskUsage measures what images and containers have on the disk. It walks the writable layers of the containers, which are known by the
// keys of their snapshots. It omits those of deleted containers: the next collection removes them.
func (s *Store) DiskUsage(ctx context.Context, containers map[string]bool) (DiskUsage, error) {
	u := DiskUsage{Images: map[string]Parts{}, Writable: map[string]int64{}, InUse: map[string]bool{}}
	var err error
	if u.Blobs, err = s.blobSizes(ctx); err != nil {
		return u, err
	}
	parents := map[string]string{}
	if u.Layers, u.Writable, err = s.layerSizes(ctx, containers, parents); err != nil {
		return u, err
	}
	for key := range u.Writable {
		for layer := parents[key]; layer != ""; layer = parents[layer] {
			u.InUse[layer] = true
		}
	}
	records, err := s.client.ImageService().List(ctx)
	if err != nil {
		return u, err
	}
	for _, rec := range records {
		p, err := s.parts(ctx, rec, parents, u.Blobs)
		if err != nil {
			return u, err
		}
		u.Images[rec.Name] = p
	}
	return u, nil
}

// parts returns the blobs that are present, and the layers, of an image.
func (s *Store) parts(ctx context.Context, rec images.Image, parents map[string]string, blobs map[string]int64) (p Parts, err error) {
	seen := map[string]bool{}
	collect := func(_ context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		id := d.Digest.String()
		if _, present := blobs[id]; !present || seen[id] {
			return nil, images.ErrSkipDesc
		}
		seen[id] = true
		p.Blobs = append(p.Blobs, id)
		return nil, nil
	}
	children := images.ChildrenHandler(s.client.ContentStore())
	// the rest of an image that is damaged is not known
	_ = images.Walk(ctx, images.Handlers(images.HandlerFunc(collect), children), rec.Target)
	d, err := s.detail(ctx, rec)
	if err != nil {
		return p, err
	}
	for layer := d.Snapshot; layer != ""; layer = parents[layer] {
		p.Layers = append(p.Layers, layer)
	}
	return p, nil
}

// layerSizes returns the sizes of unpacked and of writable layers, and adds the parent of each layer.
func (s *Store) layerSizes(ctx context.Context, containers map[string]bool,
	parents map[string]string,
) (layers, writable map[string]int64, err error) {
	layers, writable = map[string]int64{}, map[string]int64{}
	err = s.measureLayers(ctx, func(i *snapshots.Info) bool {
		return i.Kind != snapshots.KindActive || containers[i.Name] || strings.HasPrefix(i.Name, snapshots.UnpackKeyPrefix)
	}, func(i *snapshots.Info, size int64) {
		parents[i.Name] = i.Parent
		if i.Kind == snapshots.KindCommitted {
			layers[i.Name] = size
		} else {
			writable[i.Name] = size
		}
	})
	return layers, writable, err
}

// measureLayers calls found with the sizes of the layers that match. One that is removed meanwhile is left out.
func (s *Store) measureLayers(ctx context.Context, match func(*snapshots.Info) bool, found func(i *snapshots.Info, size int64)) error {
	sn := s.client.SnapshotService(s.opts.Snapshotter)
	var layers []snapshots.Info
	err := sn.Walk(ctx, func(_ context.Context, i snapshots.Info) error {
		if match(&i) {
			layers = append(layers, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for n := range layers { // not within the walk, which holds a transaction
		u, err := sn.Usage(ctx, layers[n].Name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("measure layer %s: %w", layers[n].Name, err)
		}
		found(&layers[n], u.Size)
	}
	return nil
}
