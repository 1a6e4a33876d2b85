// Package ocitar writes container images as archives, in the OCI layout and
// in the one of docker save, without a daemon, root or a registry. The same
// images give the same bytes each time: no clock, owner or map order reaches
// the file.
package ocitar

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "crypto/sha256" // go-digest only names the hash; a program must link it
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// annotationImageName is containerd's annotation for the full name; the OCI
// one beside it is meant for the tag alone, and tools differ in what they read.
const annotationImageName = "io.containerd.image.name"

// Image is one image of an archive.
type Image struct {
	// Name is the full reference, as "localhost/podstead/busybox:1". An empty
	// one gives an archive that names no image.
	Name string
	// Config is what a container of the image starts with.
	Config ocispec.ImageConfig
	// Layers lie on each other, the lowest first.
	Layers []Layer
	// Gzip compresses the layers in the OCI layout; Docker's has them plain.
	Gzip bool
	// Architecture is that of this program if it is empty.
	Architecture string
}

// Layer is a list of files in the order in which they are unpacked, so a
// folder stands before what it holds.
type Layer []File

// File is one entry of a layer, owned by root. One with a Link is a symbolic
// link, one whose mode has fs.ModeDir a folder, any other a regular file.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
	Link string
}

// blob is content with its digest, named by the latter.
type blob struct {
	ocispec.Descriptor
	data []byte
}

// built is an image in the parts of which both layouts are made.
type built struct {
	config blob
	layers []blob
}

// WriteOCI writes the images as one OCI layout.
func WriteOCI(w io.Writer, images ...Image) error {
	out := newArchive(w)
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, img := range images {
		b, err := build(img, img.Gzip)
		if err != nil {
			return err
		}
		m := ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2},
			MediaType: ocispec.MediaTypeImageManifest,
			Config:    b.config.Descriptor,
		}
		for _, l := range b.layers {
			out.blob(l)
			m.Layers = append(m.Layers, l.Descriptor)
		}
		out.blob(b.config)
		manifest, err := jsonBlob(ocispec.MediaTypeImageManifest, m)
		if err != nil {
			return err
		}
		out.blob(manifest)
		desc := manifest.Descriptor
		desc.Platform = &ocispec.Platform{OS: "linux", Architecture: architecture(img)}
		if img.Name != "" {
			desc.Annotations = map[string]string{
				annotationImageName:       img.Name,
				ocispec.AnnotationRefName: img.Name[strings.LastIndex(img.Name, ":")+1:],
			}
		}
		index.Manifests = append(index.Manifests, desc)
	}
	out.json(ocispec.ImageIndexFile, index)
	out.json(ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	return out.close()
}

// WriteDocker writes the images as docker save does.
func WriteDocker(w io.Writer, images ...Image) error {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	out := newArchive(w)
	var manifest []entry
	for _, img := range images {
		b, err := build(img, false)
		if err != nil {
			return err
		}
		e := entry{Config: b.config.Digest.Encoded() + ".json"}
		if img.Name != "" {
			e.RepoTags = []string{img.Name}
		}
		for _, l := range b.layers {
			name := path.Join(l.Digest.Encoded(), "layer.tar")
			out.file(name, l.data)
			e.Layers = append(e.Layers, name)
		}
		out.file(e.Config, b.config.data)
		manifest = append(manifest, e)
	}
	out.json("manifest.json", manifest)
	return out.close()
}

func architecture(img Image) string {
	if img.Architecture != "" {
		return img.Architecture
	}
	return runtime.GOARCH
}

func build(img Image, compress bool) (built, error) {
	var b built
	config := ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: architecture(img)},
		Config:   img.Config,
		RootFS:   ocispec.RootFS{Type: "layers"},
	}
	for _, l := range img.Layers {
		data, err := l.tar()
		if err != nil {
			return built{}, fmt.Errorf("write layer of %q: %w", img.Name, err)
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, digest.FromBytes(data))
		media := ocispec.MediaTypeImageLayer
		if compress {
			media = ocispec.MediaTypeImageLayerGzip
			if data, err = gzipped(data); err != nil {
				return built{}, fmt.Errorf("compress layer of %q: %w", img.Name, err)
			}
		}
		b.layers = append(b.layers, newBlob(media, data))
	}
	var err error
	b.config, err = jsonBlob(ocispec.MediaTypeImageConfig, config)
	return b, err
}

// tar gives the layer as an uncompressed tar file.
func (l Layer) tar() ([]byte, error) {
	var buf bytes.Buffer
	out := newArchive(&buf)
	for _, f := range l {
		h := &tar.Header{Name: f.Path, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data)), Typeflag: tar.TypeReg}
		if f.Mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		switch {
		case f.Link != "":
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
		case f.Mode.IsDir():
			h.Typeflag, h.Name, h.Size = tar.TypeDir, f.Path+"/", 0
		}
		out.entry(h, f.Data)
	}
	return buf.Bytes(), out.close()
}

func gzipped(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err := z.Close()
	return buf.Bytes(), err
}

func newBlob(mediaType string, data []byte) blob {
	return blob{
		Descriptor: ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))},
		data:       data,
	}
}

func jsonBlob(mediaType string, v any) (blob, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return blob{}, fmt.Errorf("encode %s: %w", mediaType, err)
	}
	return newBlob(mediaType, data), nil
}
