package image

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	imagearchive "github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Export writes an archive in the OCI layout that also has the Docker layout's manifest.json. It has the images of these records, each with
// the manifest of its platform only, and with the index that refers to it: the digest of the image stays the same, and a signature of the
// index can be verified. The images are not deleted from disk while they are written.
func (s *Store) Export(ctx context.Context, w io.Writer, records ...string) (err error) {
	lease, free, err := s.hold(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, free()) }()
	opts := make([]imagearchive.ExportOpt, len(records))
	x := exported{targets: map[string]ocispec.Descriptor{}, documents: map[digest.Digest][]byte{}}
	for i, record := range records {
		d, err := s.exportable(ctx, lease, record)
		if err != nil {
			return err
		}
		if err := x.add(ctx, s.client.ContentStore(), &d); err != nil {
			return fmt.Errorf("image %q: %w", d.Name, err)
		}
		opts[i] = imagearchive.WithManifest(d.manifest, d.Name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, pipe := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe.CloseWithError(imagearchive.Export(ctx, s.client.ContentStore(), pipe, opts...))
	}()
	err = x.write(r, w)
	r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	<-done
	return err
}

// exportable returns the image of a record, which is complete, and protects it by a lease.
func (s *Store) exportable(ctx context.Context, lease leases.Lease, record string) (Detail, error) {
	rec, err := s.client.ImageService().Get(ctx, record)
	if err != nil {
		return Detail{}, err
	}
	d, err := s.detail(ctx, rec)
	if err != nil {
		return Detail{}, err
	}
	if d.Damaged {
		return Detail{}, fmt.Errorf("image %q: %w", d.Name, errDamaged)
	}
	for _, id := range []digest.Digest{d.Target.Digest, d.manifest.Digest} {
		if err := s.client.LeasesService().AddResource(ctx, lease, leases.Resource{ID: id.String(), Type: contentResource}); err != nil {
			return Detail{}, err
		}
	}
	return d, s.allPresent(ctx, &d)
}

// allPresent checks that the content of an image is present, before anything is written. An unpacked image does not need its layers.
func (s *Store) allPresent(ctx context.Context, d *Detail) error {
	children, err := images.Children(ctx, s.client.ContentStore(), d.manifest)
	if err != nil {
		return err
	}
	for _, c := range children {
		if _, err := s.client.ContentStore().Info(ctx, c.Digest); err != nil {
			return fmt.Errorf("image %q: %w: %w", d.Name, errDamaged, err)
		}
	}
	return nil
}

// exported adds indexes to an archive of containerd, which exports an index only with all of its manifests, or without manifest.json. It
// removes names that have a digest from manifest.json: docker load refuses them.
type exported struct {
	targets   map[string]ocispec.Descriptor // of images whose target is an index, by name
	documents map[digest.Digest][]byte      // the indexes
}

// add adds an image. Below its index there may be others.
func (x *exported) add(ctx context.Context, cs content.Provider, d *Detail) error {
	if !images.IsIndexType(d.Target.MediaType) {
		return nil
	}
	x.targets[d.Name] = d.Target
	for level, depth := []ocispec.Descriptor{d.Target}, 0; len(level) > 0 && depth <= maxDepth; depth++ {
		var next []ocispec.Descriptor
		for _, index := range level {
			data, err := content.ReadBlob(ctx, cs, index)
			if errdefs.IsNotFound(err) && depth > 0 {
				continue // for another platform
			}
			if err != nil {
				return err
			}
			x.documents[index.Digest] = data
			children, err := images.Children(ctx, cs, index)
			if err != nil {
				return err
			}
			for _, c := range children {
				if images.IsIndexType(c.MediaType) && x.documents[c.Digest] == nil {
					next = append(next, c)
				}
			}
		}
		level = next
	}
	return nil
}

// write copies the archive. The names in its index.json refer to the indexes of the images, which follow at the end.
func (x *exported) write(r io.Reader, w io.Writer) error {
	tr, tw := tar.NewReader(r), tar.NewWriter(w)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if change := map[string]func(io.Reader) ([]byte, error){
			ocispec.ImageIndexFile: x.refer, "manifest.json": onlyTags,
		}[h.Name]; change != nil {
			data, err := change(tr)
			if err != nil {
				return err
			}
			if err := writeEntry(tw, h, data); err != nil {
				return err
			}
			continue
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(tw, tr); err != nil {
			return err
		}
	}
	for d, data := range x.documents {
		h := tar.Header{Typeflag: tar.TypeReg, Name: blobPath(ocispec.Descriptor{Digest: d}), Mode: 0o444}
		if err := writeEntry(tw, &h, data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// refer returns an index.json whose names refer to the indexes of the images.
func (x *exported) refer(r io.Reader) ([]byte, error) {
	var index ocispec.Index
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		return nil, fmt.Errorf("decode %s: %w", ocispec.ImageIndexFile, err)
	}
	for i := range index.Manifests {
		m := &index.Manifests[i]
		if target, ok := x.targets[m.Annotations[images.AnnotationImageName]]; ok {
			m.MediaType, m.Digest, m.Size, m.Platform = target.MediaType, target.Digest, target.Size, nil
		}
	}
	return json.Marshal(index)
}

// onlyTags returns a manifest.json without names that have a digest.
func onlyTags(r io.Reader) ([]byte, error) {
	var list []dockerImage
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return nil, fmt.Errorf("decode manifest.json: %w", err)
	}
	for i := range list {
		list[i].RepoTags = slices.DeleteFunc(list[i].RepoTags, func(name string) bool { return strings.Contains(name, "@") })
	}
	return json.Marshal(list)
}

func writeEntry(tw *tar.Writer, h *tar.Header, data []byte) error {
	h.Size = int64(len(data))
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := tw.Write(data)
	return err
}
