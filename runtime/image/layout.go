package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// layout is the content of an archive in the OCI or Docker layout. It stands in for containerd's importer, which decodes documents of any
// size and which names unfinished content by its path in the archive, so that two imports disturb each other.
type layout struct {
	store  content.Store
	budget *budget
	ref    string // prefix of unfinished content, unique
	// peeked replaces the store if only the documents of the archive are read; nil: everything is stored.
	peeked *peeked

	entries int
	blobs   map[string]entry  // by path
	links   map[string]string // targets of symbolic links, by path
	version string            // of the OCI layout
	index   []byte            // index.json
	docker  []byte            // manifest.json
}

// entry is a file of an archive.
type entry struct {
	ocispec.Descriptor
	compressed bool
}

// read stores the files of a tar stream as content.
func (l *layout) read(ctx context.Context, r io.Reader) error {
	l.blobs, l.links = map[string]entry{}, map[string]string{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if l.entries++; l.entries > maxEntries {
			return exceeds("archive has more than %d files", maxEntries)
		}
		if err := l.budget.file(h); err != nil {
			return err
		}
		if err := l.file(ctx, path.Clean(h.Name), h, tr); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

func (l *layout) file(ctx context.Context, name string, h *tar.Header, r io.Reader) (err error) {
	switch {
	case h.Typeflag == tar.TypeSymlink:
		l.links[name] = path.Join(path.Dir(name), h.Linkname)
		return nil
	case isSparse(h):
		return exceeds("sparse files are not supported")
	case h.Typeflag != tar.TypeReg:
		return nil
	}
	switch name {
	case ocispec.ImageLayoutFile:
		data, err := readDocument(name, r)
		if err != nil {
			return err
		}
		var v ocispec.ImageLayout
		if err := json.Unmarshal(data, &v); err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
		l.version = v.Version
		return nil
	case ocispec.ImageIndexFile:
		l.index, err = readDocument(name, r)
		return err
	case "manifest.json":
		l.docker, err = readDocument(name, r)
		return err
	}
	if l.peeked != nil {
		l.blobs[name], err = l.peeked.add(name, h.Size, r)
		return err
	}
	return l.blob(ctx, name, h.Size, r)
}

// blob stores a file as content.
func (l *layout) blob(ctx context.Context, name string, size int64, r io.Reader) error {
	start := make([]byte, min(size, longestMagic))
	if _, err := io.ReadFull(r, start); err != nil {
		return err
	}
	digester := digest.Canonical.Digester()
	data := io.TeeReader(io.MultiReader(bytes.NewReader(start), r), digester.Hash())
	ref := fmt.Sprintf("%s%d", l.ref, l.entries)
	if err := content.WriteBlob(ctx, l.store, ref, data, ocispec.Descriptor{Size: size}); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if aerr := l.store.Abort(ctx, ref); aerr != nil && !errdefs.IsNotFound(aerr) {
			err = errors.Join(err, aerr)
		}
		return err
	}
	l.blobs[name] = entry{
		Descriptor: ocispec.Descriptor{Digest: digester.Digest(), Size: size},
		compressed: compression.DetectCompression(start) != compression.Uncompressed,
	}
	return nil
}

// images returns the index of an OCI layout. For a Docker layout, it stores manifests and returns an index of them.
func (l *layout) images(ctx context.Context) (ocispec.Index, error) {
	var index ocispec.Index
	switch {
	case l.version != "":
		if l.version != ocispec.ImageLayoutVersion {
			return index, fmt.Errorf("version %q of the OCI layout is not supported", l.version)
		}
		if l.index == nil {
			return index, fmt.Errorf("OCI layout without %s", ocispec.ImageIndexFile)
		}
		if err := json.Unmarshal(l.index, &index); err != nil {
			return index, fmt.Errorf("decode %s: %w", ocispec.ImageIndexFile, err)
		}
		return index, nil
	case l.docker == nil:
		return index, errNoLayout
	}
	var list []dockerImage
	if err := json.Unmarshal(l.docker, &list); err != nil {
		return index, fmt.Errorf("decode manifest.json: %w", err)
	}
	if len(list) > maxNames {
		return index, exceeds("manifest.json has %d images, the limit is %d", len(list), maxNames)
	}
	for _, img := range list {
		desc, err := l.manifest(ctx, img)
		if err != nil {
			return index, err
		}
		for _, tag := range img.RepoTags {
			desc.Annotations = map[string]string{images.AnnotationImageName: tag}
			index.Manifests = append(index.Manifests, desc)
		}
	}
	return index, nil
}

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// manifest stores the manifest of an image in the Docker layout.
func (l *layout) manifest(ctx context.Context, img dockerImage) (ocispec.Descriptor, error) {
	if len(img.Layers) > maxLayers {
		return ocispec.Descriptor{}, exceeds("image has %d layers, the limit is %d", len(img.Layers), maxLayers)
	}
	config, ok := l.find(img.Config)
	if !ok {
		return ocispec.Descriptor{}, fmt.Errorf("configuration %q is missing", img.Config)
	}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: images.MediaTypeDockerSchema2Manifest,
		Config: config.Descriptor, Layers: []ocispec.Descriptor{},
	}
	m.Config.MediaType = images.MediaTypeDockerSchema2Config
	for _, name := range img.Layers {
		file, ok := l.find(name)
		if !ok {
			return ocispec.Descriptor{}, fmt.Errorf("layer %q is missing", name)
		}
		file.MediaType = images.MediaTypeDockerSchema2Layer
		if file.compressed {
			file.MediaType = images.MediaTypeDockerSchema2LayerGzip
		}
		m.Layers = append(m.Layers, file.Descriptor)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	desc := ocispec.Descriptor{MediaType: m.MediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	if l.peeked != nil {
		_, err := l.peeked.put(data)
		return desc, err
	}
	return desc, content.WriteBlob(ctx, l.store, l.ref+desc.Digest.String(), bytes.NewReader(data), desc)
}

// find returns a file, or the target of a symbolic link. docker save writes links for layers that images share.
func (l *layout) find(name string) (entry, bool) {
	name = path.Clean(name)
	if target, ok := l.links[name]; ok {
		name = target
	}
	e, ok := l.blobs[name]
	return e, ok
}

var errNoLayout = errors.New("neither oci-layout nor manifest.json")
