package image

import (
	"context"
	"sync"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// progressInterval is how often a pull is looked at.
const progressInterval = 200 * time.Millisecond

// Progress is how far the download of an image is. All of it is zero until a
// place among the parallel pulls is free and the registry has said what the
// image consists of. What is on this machine already counts as done.
type Progress struct {
	Bytes, TotalBytes int64
	Layers            int // whole ones
	TotalLayers       int
}

// tracker learns the parts of an image while it is pulled.
type tracker struct {
	mu    sync.Mutex
	parts []ocispec.Descriptor
}

// wrap notes what h names as parts. Only a manifest has parts worth counting.
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

// look counts what has arrived in cs. A part that is neither there nor under
// way has not begun, or is not needed because its layer is unpacked; the end
// of the pull tells them apart.
func (t *tracker) look(ctx context.Context, cs content.Store) Progress {
	t.mu.Lock()
	parts := t.parts
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
	return p
}

// report calls report at intervals until ctx ends.
func (t *tracker) report(ctx context.Context, cs content.Store, report func(Progress)) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			report(t.look(ctx, cs))
		}
	}
}
