package ocitar

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"path"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// archive writes a tar file. It keeps the first error, which close returns, and writes nothing after it.
type archive struct {
	tw      *tar.Writer
	err     error
	written map[digest.Digest]bool
}

func newArchive(w io.Writer) *archive {
	return &archive{tw: tar.NewWriter(w), written: map[digest.Digest]bool{}}
}

func (a *archive) entry(h *tar.Header, data []byte) {
	if a.err != nil {
		return
	}
	if err := a.tw.WriteHeader(h); err != nil {
		a.err = fmt.Errorf("write header of %q: %w", h.Name, err)
		return
	}
	if h.Typeflag != tar.TypeReg {
		return
	}
	if _, err := a.tw.Write(data); err != nil {
		a.err = fmt.Errorf("write %q: %w", h.Name, err)
	}
}

func (a *archive) file(name string, data []byte) {
	a.entry(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}, data)
}

func (a *archive) json(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("encode %q: %w", name, err)
	}
	a.file(name, data)
}

// blob writes content once, even if several images share it.
func (a *archive) blob(b blob) {
	if a.written[b.Digest] {
		return
	}
	a.written[b.Digest] = true
	a.file(path.Join(ocispec.ImageBlobsDir, b.Digest.Algorithm().String(), b.Digest.Encoded()), b.data)
}

func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.tw.Close()
}
