package image

import (
	"bytes"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestProgressWithoutUnpacking has all parts of an image for another platform, which is not unpacked.
func TestProgressWithoutUnpacking(t *testing.T) {
	cs, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	layer := []byte("layer")
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: digest.FromBytes(layer), Size: int64(len(layer))}
	if err := content.WriteBlob(t.Context(), cs, "layer", bytes.NewReader(layer), d); err != nil {
		t.Fatal(err)
	}
	tr := &tracker{parts: []ocispec.Descriptor{d}, packed: []ocispec.Descriptor{d}}
	want := Progress{Bytes: 5, TotalBytes: 5, Layers: 1, TotalLayers: 1}
	if got := tr.progress(t.Context(), cs); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	tr.budget = &budget{}
	tr.budget.applied.Store(7) // more than its size: it was unpacked twice
	want.Unpacking = true
	if got := tr.progress(t.Context(), cs); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
	tr.packed, want.Unpacking = nil, false // its snapshots exist
	if got := tr.progress(t.Context(), cs); got != want {
		t.Errorf("progress %+v, want %+v", got, want)
	}
}
