package ocitar

import (
	"archive/tar"
	"fmt"
	"io"
	"path"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tree is the content of an image that need not be valid.
type Tree struct {
	Root  ocispec.Descriptor
	Blobs map[digest.Digest][]byte
	// Others are further images of an archive.
	Others []ocispec.Descriptor
}

// add adds content and returns its descriptor.
func (t *Tree) add(mediaType string, data []byte) ocispec.Descriptor {
	if t.Blobs == nil {
		t.Blobs = map[digest.Digest][]byte{}
	}
	d := newBlob(mediaType, data).Descriptor
	t.Blobs[d.Digest] = data
	return d
}

// addJSON adds the encoded form of a value. The values of this package can be encoded.
func (t *Tree) addJSON(mediaType string, v any) ocispec.Descriptor {
	b, err := jsonBlob(mediaType, v)
	if err != nil {
		panic(err)
	}
	return t.add(mediaType, b.data)
}

// Index returns an index.json that gives the root a name, and the others names of their own.
func (t *Tree) Index(name string) ocispec.Index {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []ocispec.Descriptor{t.Root}}
	index.Manifests[0].Annotations = map[string]string{annotationImageName: name}
	for i, other := range t.Others {
		other.Annotations = map[string]string{annotationImageName: fmt.Sprintf("localhost/other:%d", i)}
		index.Manifests = append(index.Manifests, other)
	}
	return index
}

// Write writes an OCI layout with the image.
func (t *Tree) Write(w io.Writer, name string) error {
	out := newArchive(w)
	for d, data := range t.Blobs {
		out.file(path.Join(ocispec.ImageBlobsDir, d.Algorithm().String(), d.Encoded()), data)
	}
	out.json(ocispec.ImageIndexFile, t.Index(name))
	out.json(ocispec.ImageLayoutFile, ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	return out.close()
}

// WriteFiles writes a tar file with these files.
func WriteFiles(w io.Writer, files map[string][]byte) error {
	out := newArchive(w)
	for name, data := range files {
		out.file(name, data)
	}
	return out.close()
}

// SparseHeader returns the header of a file that has only a hole, in the old GNU format. archive/tar does not write it.
func SparseHeader(name string, size int64) []byte {
	const sparseMap, realSize, checksum, typeFlag, magic = 386, 483, 148, 156, 257
	h := make([]byte, 512)
	octal := func(at, n int, v int64) {
		for i := n - 2; i >= 0; i, v = i-1, v>>3 {
			h[at+i] = byte('0' + v&7)
		}
	}
	base256 := func(at, n int, v int64) {
		for i := n - 1; i > 0; i, v = i-1, v>>8 {
			h[at+i] = byte(v)
		}
		h[at] = 0x80
	}
	copy(h, name)
	octal(100, 8, 0o644)
	octal(108, 8, 0)
	octal(116, 8, 0)
	octal(124, 12, 0)
	octal(136, 12, 0)
	h[typeFlag] = tar.TypeGNUSparse
	copy(h[magic:], "ustar  \x00")
	base256(sparseMap, 12, size)
	octal(sparseMap+12, 12, 0)
	base256(realSize, 12, size)
	copy(h[checksum:], "        ")
	var sum int64
	for _, b := range h {
		sum += int64(b)
	}
	octal(checksum, 7, sum)
	h[checksum+6] = 0
	return h
}
