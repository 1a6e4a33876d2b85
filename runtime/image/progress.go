package image

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/internal/guard"
)

// progressInterval is the interval between progress reports of a pull or an import.
const progressInterval = 200 * time.Millisecond

// Progress is the progress of a pull, or of an import, which has bytes of the archive only. That of a pull is zero until one of the
// parallel pulls is free and the registry has sent the manifest. Content that is present counts as done.
type Progress struct {
	Bytes, TotalBytes int64
	Layers            int // complete layers
	TotalLayers       int
	// Unpacking is true when everything is fetched. The bytes are then those of the compressed layers that have to be unpacked.
	Unpacking bool
	// MissingSecrets are the names of the pull secrets that cannot be used, separated by commas; only in the first progress of a pull.
	MissingSecrets string
	// Archive is the path of the archive in an image directory that a pod waits for; empty: it waits for a pull.
	Archive string
}

// tracker records the parts of an image while it is pulled.
type tracker struct {
	budget *budget // counts what is unpacked; nil: the image is not unpacked

	mu     sync.Mutex
	parts  []ocispec.Descriptor
	packed []ocispec.Descriptor // the layers that have to be unpacked; nil: they are not known yet, or there are none
}

// wrap records the children that h returns. Only a manifest has children that are counted.
func (t *tracker) wrap(h images.Handler) images.Handler {
	return images.HandlerFunc(func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		children, err := h.Handle(ctx, d)
		if err == nil && images.IsManifestType(d.MediaType) {
			t.mu.Lock()
			t.parts = append(t.parts, children...)
			t.mu.Unlock()
		}
		return children, err
	})
}

// progress counts what has arrived in cs. A part that is neither present nor in progress has not started, or is not needed
// because its layer is unpacked. Which of them applies is known at the end of the pull.
func (t *tracker) progress(ctx context.Context, cs content.Store) Progress {
	t.mu.Lock()
	parts, packed := t.parts, t.packed
	t.mu.Unlock()
	var p Progress
	for _, d := range parts {
		p.TotalBytes += d.Size
		layer := images.IsLayerType(d.MediaType)
		if layer {
			p.TotalLayers++
		}
		if _, err := cs.Info(ctx, d.Digest); err == nil {
			p.Bytes += d.Size
			if layer {
				p.Layers++
			}
		} else if st, err := cs.Status(ctx, remotes.MakeRefKey(ctx, d)); err == nil {
			p.Bytes += st.Offset
		}
	}
	if t.budget != nil && len(packed) > 0 && p.Bytes == p.TotalBytes {
		unpacking := t.budget.unpacking(packed)
		unpacking.Layers, unpacking.TotalLayers = p.Layers, p.TotalLayers
		return unpacking
	}
	return p
}

// unpacking counts what was unpacked of layers.
func (b *budget) unpacking(layers []ocispec.Descriptor) Progress {
	p := Progress{Unpacking: true, Layers: len(layers), TotalLayers: len(layers)}
	for _, d := range layers {
		p.TotalBytes += d.Size
	}
	p.Bytes = min(b.applied.Load(), p.TotalBytes)
	return p
}

// packed returns the layers of an image that have no snapshot yet, which containerd unpacks.
func (s *Store) packed(ctx context.Context, layers []ocispec.Descriptor, diffs []digest.Digest) []ocispec.Descriptor {
	if len(layers) != len(diffs) {
		return nil
	}
	sn := s.client.SnapshotService(s.opts.Snapshotter)
	chain := identity.ChainIDs(slices.Clone(diffs))
	for i := range slices.Backward(chain) {
		if _, err := sn.Stat(ctx, chain[i].String()); err == nil {
			return layers[i+1:]
		}
	}
	return layers
}

// setPacked records which layers have to be unpacked, when the configuration is known.
func (t *tracker) setPacked(ctx context.Context, s *Store, diffs []digest.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var layers []ocispec.Descriptor
	for _, d := range t.parts {
		if images.IsLayerType(d.MediaType) {
			layers = append(layers, d)
		}
	}
	t.packed = s.packed(ctx, layers, diffs)
}

// report calls report at intervals until stop is called, which waits for a call in progress.
func (t *tracker) report(ctx context.Context, cs content.Store, report func(Progress)) (stop func()) {
	return atIntervals(ctx, func(ctx context.Context) { report(t.progress(ctx, cs)) })
}

// atIntervals calls report at intervals until ctx is cancelled or stop is called, which cancels a call in progress and waits for it.
func atIntervals(ctx context.Context, report func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for range guard.Every(ctx, progressInterval) {
			report(ctx)
		}
	})
	return func() {
		cancel()
		reporting.Wait()
	}
}
