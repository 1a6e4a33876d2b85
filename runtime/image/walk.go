package image

import (
	"context"
	"errors"
	"sync"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// node is a descriptor in a tree of images. The same content can be named with several types.
type node struct {
	digest    digest.Digest
	mediaType string
}

// tree checks the descriptors of an image, or of all images of an archive, before their content is read. It is safe for concurrent use.
type tree struct {
	budget *budget

	mu        sync.Mutex
	depth     map[node]int // of a descriptor below indexes
	documents int64        // bytes
}

func newTree(b *budget) *tree { return &tree{budget: b, depth: map[node]int{}} }

// enter checks a descriptor before its content is fetched or read.
func (t *tree) enter(d ocispec.Descriptor) error {
	if err := d.Digest.Validate(); err != nil {
		return exceeds("descriptor with digest %q: %v", d.Digest, err)
	}
	switch {
	case d.Size < 0:
		return exceeds("%s has a negative size", d.Digest)
	case len(d.Data) > maxInline:
		return exceeds("descriptor of %s has %d bytes of data, the limit is %d", d.Digest, len(d.Data), maxInline)
	case images.IsLayerType(d.MediaType):
		return nil
	case d.Size > maxDocument:
		return exceeds("%s has %d bytes, the limit for indexes, manifests and configurations is %d", d.Digest, d.Size, maxDocument)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if images.IsIndexType(d.MediaType) && t.depth[node{d.Digest, d.MediaType}] >= maxDepth {
		return exceeds("indexes are nested more than %d levels deep", maxDepth)
	}
	return t.charge(d.Size)
}

// charge adds to the documents of the tree. The caller holds the mutex.
func (t *tree) charge(size int64) error {
	if t.documents += size; t.documents > maxDocuments {
		return exceeds("indexes, manifests and configurations have more than %d bytes in all", maxDocuments)
	}
	return nil
}

// children checks the descriptors that a descriptor refers to.
func (t *tree) children(d ocispec.Descriptor, list []ocispec.Descriptor) error {
	switch {
	case images.IsManifestType(d.MediaType):
		if n := len(list) - 1; n > maxLayers {
			return exceeds("manifest %s has %d layers, the limit is %d", d.Digest, n, maxLayers)
		}
		if len(list) > 0 && images.IsLayerType(list[0].MediaType) {
			return exceeds("configuration of manifest %s has the type of a layer", d.Digest)
		}
		for _, l := range list[min(1, len(list)):] {
			if err := t.budget.content(l.Size); err != nil {
				return err
			}
		}
	default:
		if err := checkManifests(d, list); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	depth := t.depth[node{d.Digest, d.MediaType}] + 1
	for _, child := range list {
		n := node{child.Digest, child.MediaType}
		t.depth[n] = max(t.depth[n], depth)
	}
	if len(t.depth) > maxNodes {
		return exceeds("image has more than %d parts", maxNodes)
	}
	return nil
}

// checkManifests checks how many manifests an index has.
func checkManifests(d ocispec.Descriptor, list []ocispec.Descriptor) error {
	if len(list) > maxManifests {
		return exceeds("index %s has %d manifests, the limit is %d", d.Digest, len(list), maxManifests)
	}
	return nil
}

// guard wraps the handler of a pull.
func (t *tree) guard(h images.Handler) images.Handler {
	return images.HandlerFunc(func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		if err := t.enter(d); err != nil {
			return nil, err
		}
		list, err := h.Handle(ctx, d)
		if err == nil {
			err = t.children(d, list)
		}
		return list, err
	})
}

// walk visits the content that root refers to, each once.
func (t *tree) walk(ctx context.Context, h images.Handler, root ocispec.Descriptor) error {
	visit := t.guard(h)
	seen := map[node]bool{}
	for level := []ocispec.Descriptor{root}; len(level) > 0; {
		var next []ocispec.Descriptor
		for _, d := range level {
			n := node{d.Digest, d.MediaType}
			if seen[n] {
				continue
			}
			seen[n] = true
			list, err := visit.Handle(ctx, d)
			if errors.Is(err, images.ErrSkipDesc) {
				continue
			}
			if err != nil {
				return err
			}
			for _, child := range list {
				if !seen[node{child.Digest, child.MediaType}] {
					next = append(next, child)
				}
			}
		}
		level = next
	}
	return ctx.Err()
}
