package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

var errDamaged = errors.New("content is damaged")

// unpacked reports whether containers can be created from the image.
func (s *Store) unpacked(ctx context.Context, img Image) (bool, error) {
	if img.Snapshot == "" {
		return true, nil
	}
	_, err := s.client.SnapshotService(s.opts.Snapshotter).Stat(ctx, img.Snapshot)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// missing counts the blobs of the image that are not present. An unpacked image does not need its layers.
func (s *Store) missing(ctx context.Context, target ocispec.Descriptor) (int, error) {
	_, _, _, missing, err := images.Check(ctx, s.client.ContentStore(), target, s.platform)
	return len(missing), err
}

// verify reads all content of the image, removes what does not match its digest, and reports whether anything is damaged or
// missing. Damaged content must be deleted from disk before it can be fetched again: containerd reports an existing digest as
// present.
func (s *Store) verify(ctx context.Context, rec images.Image) (bad bool, err error) {
	cs := s.client.ContentStore()
	children := images.FilterPlatforms(images.ChildrenHandler(cs), s.platform)
	raw := s.content // layers may have types that are not known as layers
	check := func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		good, err := intact(ctx, raw, d)
		switch {
		case errdefs.IsNotFound(err):
			err := cs.Delete(ctx, d.Digest) // a record without content counts as present, too
			bad = bad || err == nil
			if err != nil && !errdefs.IsNotFound(err) {
				return nil, err
			}
			return nil, images.ErrSkipDesc
		case err != nil:
			return nil, err
		case good:
			return children(ctx, d)
		}
		bad = true
		if err := cs.Delete(ctx, d.Digest); err != nil && !errdefs.IsNotFound(err) {
			return nil, err
		}
		return nil, images.ErrSkipDesc
	}
	if err := newTree(&budget{limit: math.MaxInt64}).walk(ctx, images.HandlerFunc(check), rec.Target); err != nil {
		return bad, err
	}
	if bad {
		return bad, s.opts.Collect(ctx)
	}
	n, err := s.missing(ctx, rec.Target)
	return n > 0, err
}

// intact reports whether content matches its digest.
func intact(ctx context.Context, cs content.Store, d ocispec.Descriptor) (bool, error) {
	ra, err := cs.ReaderAt(ctx, d)
	if err != nil {
		return false, err
	}
	defer ra.Close()
	v := d.Digest.Verifier()
	if _, err := io.Copy(v, content.NewReader(ra)); err != nil {
		return false, fmt.Errorf("read %s: %w", d.Digest, err)
	}
	return v.Verified(), nil
}
