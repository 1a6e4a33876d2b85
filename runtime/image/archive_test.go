package image_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/platforms"
	"github.com/opencontainers/go-digest"

	"github.com/podstead/podstead/runtime/image"
)

// entries returns the names in a tar file.
func entries(t *testing.T, data []byte) (names []string) {
	t.Helper()
	each(t, data, func(h *tar.Header, _ []byte) { names = append(names, h.Name) })
	return names
}

// without returns the tar file without its n-th entry.
func without(t *testing.T, data []byte, n int) []byte {
	t.Helper()
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	each(t, data, func(h *tar.Header, body []byte) {
		if n--; n == -1 {
			return
		}
		add(t, out, h, body)
	})
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// tarOf returns a tar file with one file.
func tarOf(t *testing.T, name, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	add(t, out, &tar.Header{Name: name, Mode: 0o600, Size: int64(len(body))}, []byte(body))
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func add(t *testing.T, out *tar.Writer, h *tar.Header, body []byte) {
	t.Helper()
	if err := out.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(body); err != nil {
		t.Fatal(err)
	}
}

func each(t *testing.T, data []byte, visit func(*tar.Header, []byte)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		visit(h, body)
	}
}

// digests returns the digests of all content of the image, layers first.
func (w *env) digests(ctx context.Context, t *testing.T, img image.Image) (list []digest.Digest) {
	t.Helper()
	m, err := images.Manifest(ctx, w.client.ContentStore(), img.Target, platforms.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range m.Layers {
		list = append(list, l.Digest)
	}
	return append(list, m.Config.Digest, img.Target.Digest)
}

// cancelReader returns an empty reader that calls f when it is read.
func cancelReader(f func()) io.Reader {
	return readerFunc(func([]byte) (int, error) { f(); return 0, io.EOF })
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func withRef(ref string) content.WriterOpt { return content.WithRef(ref) }
