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

// progressInterval is the interval between progress reports of a pull or an import.
const progressInterval = 200 * time.Millisecond

// Progress is the progress of a pull, or of an import, which has bytes of the archive only. That of a pull is zero until one of the
// parallel pulls is free and the registry has sent the manifest. Content that is present counts as done.
type Progress struct {
	Bytes, TotalBytes int64
	Layers            int // complete layers
	TotalLayers       int
	// Unpacking is true when everything is fetched. The bytes are then those of the compressed layers, and how much of them was unpacked.
	Unpacking bool
	// MissingSecrets are the names of the pull secrets that cannot be used, separated by commas; only in the first progress of a pull.
	MissingSecrets string
	// Archive is the path of the archive in an image directory that a pod waits for; empty: it waits for a pull.
	Archive string
}

// tracker records the parts of an image while it is pulled.
type tracker struct {
	budget *budget // of the pull

	mu    sync.Mutex
	parts []ocispec.Descriptor
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
	if len(parts) > 0 && p.Bytes == p.TotalBytes {
		return t.budget.unpacking(parts)
	}
	return p
}

// unpacking counts what was unpacked of an image whose parts are all present.
func (b *budget) unpacking(parts []ocispec.Descriptor) Progress {
	p := Progress{Unpacking: true}
	for _, d := range parts {
		if images.IsLayerType(d.MediaType) {
			p.TotalLayers++
			p.TotalBytes += d.Size
		}
	}
	p.Layers, p.Bytes = p.TotalLayers, min(b.applied.Load(), p.TotalBytes)
	return p
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
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				report(ctx)
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait()
	}
}
