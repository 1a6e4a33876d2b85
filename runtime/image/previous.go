package image

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// labelConfig is the label with which containerd refers from a manifest to the configuration of its image.
	labelConfig = "containerd.io/gc.ref.content.config"
	// labelKeep is a label with which the record of a container refers to its image, for containerd's garbage collector.
	labelKeep = "containerd.io/gc.ref.content.podstead-image"
)

// KeepLabels returns labels for the record of a container. They keep the content of its image until the record is removed, even if the
// name of the image is removed or refers to another image.
func KeepLabels(img Image) map[string]string {
	return map[string]string{labelKeep: img.Target.Digest.String()}
}

// lookupAgain returns a record of the previous image, or of the image that the name refers to if there is no previous one.
func (s Scope) lookupAgain(ctx context.Context, name string, p Previous) (images.Image, bool, error) {
	rec, found, err := s.lookup(ctx, name)
	if err != nil || p.ConfigDigest == "" {
		return rec, found, err
	}
	previous, known := rec, false
	if found {
		img, err := s.describe(ctx, rec)
		known = err == nil && img.ConfigDigest == p.ConfigDigest
	}
	if !known {
		target, err := s.manifestOf(ctx, p.ConfigDigest)
		if errdefs.IsNotFound(err) {
			return rec, found, nil
		}
		if err != nil {
			return images.Image{}, false, err
		}
		previous = images.Image{Name: name, Target: target}
	}
	if p.FromArchive {
		labels := map[string]string{labelArchive: ""}
		maps.Copy(labels, previous.Labels)
		previous.Labels = labels
	}
	return previous, true, nil
}

// manifestOf returns a manifest of the image with this configuration. The error is [errdefs.ErrNotFound] if there is none, or if it is
// damaged.
func (s *Store) manifestOf(ctx context.Context, config string) (ocispec.Descriptor, error) {
	list, err := s.manifestsOf(ctx, config)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if len(list) == 0 {
		return ocispec.Descriptor{}, errdefs.ErrNotFound
	}
	d := list[len(list)-1]
	blob, err := content.ReadBlob(ctx, s.client.ContentStore(), d)
	if err != nil {
		return d, err
	}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest} // the OCI layout may omit it
	if json.Unmarshal(blob, &manifest) != nil {
		return d, errdefs.ErrNotFound
	}
	d.MediaType = manifest.MediaType
	return d, nil
}

// manifestsOf returns all manifests of the image with this configuration, without media types.
func (s *Store) manifestsOf(ctx context.Context, config string) (list []ocispec.Descriptor, err error) {
	err = s.client.ContentStore().Walk(ctx, func(i content.Info) error {
		list = append(list, ocispec.Descriptor{Digest: i.Digest, Size: i.Size})
		return nil
	}, fmt.Sprintf("labels.%q==%q", labelConfig, config))
	if err != nil {
		return nil, err
	}
	return list, nil
}
