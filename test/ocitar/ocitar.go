// Package ocitar writes container images as archives, in the OCI layout or in the format of docker save, without a daemon, root or a
// registry. The same images give the same bytes: no time, owner or map order is in the file.
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

// annotationImageName is containerd's annotation for the full name. The OCI annotation is meant for the tag only, and tools differ in
// which one they read.
const annotationImageName = "io.containerd.image.name"

// Image is one image of an archive.
type Image struct {
	// Name is the full reference, such as "localhost/podstead/busybox:1". If it is empty, the archive does not name the image.
	Name string
	// Config is the configuration of containers of the image.
	Config ocispec.ImageConfig
	// Layers are the layers, the lowest first.
	Layers []Layer
	// Gzip compresses the layers in the OCI layout. In Docker's format they are never compressed.
	Gzip bool
	// Architecture is that of this program by default.
	Architecture string
}

// Layer is a list of files in the order in which they are unpacked: a directory comes before its content.
type Layer []File

// File is one entry of a layer. With Link it is a symbolic link, with fs.ModeDir a directory, otherwise a regular file.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
	Link string
	// Owner is the ID of the user and of the group. 0: root.
	Owner int
	// Capabilities is the value of the extended attribute security.capability. Empty: none.
	Capabilities string
}

// blob is content with its descriptor.
type blob struct {
	ocispec.Descriptor
	data []byte
}

// built is the parts of an image that both formats share.
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

// WriteDocker writes the images in the format of docker save.
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

// tar returns the layer as an uncompressed tar file.
func (l Layer) tar() ([]byte, error) {
	var buf bytes.Buffer
	out := newArchive(&buf)
	for _, f := range l {
		h := &tar.Header{
			Name: f.Path, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data)), Typeflag: tar.TypeReg, Uid: f.Owner, Gid: f.Owner,
		}
		if f.Capabilities != "" {
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": f.Capabilities}
		}
		if f.Mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if f.Mode&fs.ModeSetuid != 0 {
			h.Mode |= 0o4000
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
