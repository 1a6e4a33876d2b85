package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/diff"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/ocitar"
)

// storedLayer is a layer in the content store.
type storedLayer struct{ io.Reader }

func (storedLayer) MediaType() string { return ocispec.MediaTypeImageLayerGzip }
func (storedLayer) Close() error      { return nil }

// processed returns the stream of a layer that containerd unpacks with a budget.
func processed(t *testing.T, b *budget, mediaType string, data io.Reader) diff.StreamProcessor {
	t.Helper()
	ctx := withBudget(context.Background(), b)
	start, ok := processLayer(ctx, mediaType)
	if !ok {
		t.Fatal("the layer is left to containerd")
	}
	plain, err := start(ctx, storedLayer{data}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// unpack reads a layer of some files of a size, and returns the error with its explanation.
func unpack(t *testing.T, b *budget, files, size int) error {
	t.Helper()
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	w := tar.NewWriter(z)
	for n := range files {
		h := &tar.Header{Name: fmt.Sprint("file", n), Size: int64(size), Mode: 0o600}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	plain := processed(t, b, ocispec.MediaTypeImageLayerGzip, &text)
	_, err := io.Copy(io.Discard, plain)
	return b.explain(errors.Join(err, plain.Close()))
}

// TestBudgetOfLayers checks the limits of an image that are too large to reach with real files: their number, and the compression ratio.
// The layers before the last one have used the budget.
func TestBudgetOfLayers(t *testing.T) {
	const kib, overhead = 1 << 10, 10 << 10 // headers and the end of a tar stream
	for _, test := range []struct {
		name        string
		used        *budget
		files, size int
		want        string
	}{
		{"as many files as allowed", &budget{files: 999_990}, 10, 0, ""},
		{"one more", &budget{files: 999_990}, 11, 0, "has more than 1000000 files"},
		{"files of all layers", &budget{files: 1_000_000}, 1, 0, "has more than 1000000 files"},
		{"any ratio below 1 GiB", &budget{unpacked: 1<<30 - 100*kib - overhead, compressed: 1}, 1, 100 * kib, ""},
		{
			"ratio of more than 200", &budget{unpacked: 1 << 30, compressed: 1 << 30 / 200}, 1, 100 * kib,
			"unpacks to more than 1073741824 bytes and 200 times its compressed size",
		},
		{"ratio of less than 200", &budget{unpacked: 1 << 30, compressed: 1<<30/200 + kib}, 1, 100 * kib, ""},
		{
			"ratio of a large image", &budget{unpacked: 20<<30 - kib, compressed: 20 << 30 / 200}, 1, 100 * kib,
			"200 times its compressed size",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := test.used
			b.limit, b.from = math.MaxInt64, "images.maxUnpackedSize"
			err := unpack(t, b, test.files, test.size)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)):
				t.Errorf("error is %v, want %q", err, test.want)
			case test.want != "" && !refused(err):
				t.Errorf("%T is not a limit", err)
			}
		})
	}
}

// TestHoleIsRefusedBeforeItIsWritten checks that a reader of a layer does not get the header of a file whose holes exceed the budget.
// After the header, it would write zeros without reading on, until the disk is full.
func TestHoleIsRefusedBeforeItIsWritten(t *testing.T) {
	const limit = 1 << 20
	for name, data := range map[string][]byte{
		"PAX":     ocitar.PAXHole("hole", 4<<40),
		"old GNU": ocitar.SparseHeader("hole", 4<<40),
		"several": bytes.Repeat(ocitar.PAXHole("hole", limit/2+1), 2),
	} {
		t.Run(name, func(t *testing.T) {
			b := &budget{limit: limit, from: "images.maxUnpackedSize"}
			plain := processed(t, b, ocispec.MediaTypeImageLayer, bytes.NewReader(data))
			var files []string
			var err error
			for r := tar.NewReader(plain); err == nil; {
				var h *tar.Header
				if h, err = r.Next(); err == nil {
					files = append(files, fmt.Sprint(h.Name, " of ", h.Size))
				}
			}
			if err := b.explain(errors.Join(err, plain.Close())); !refused(err) || !strings.Contains(err.Error(), "sparse file") {
				t.Errorf("error is %v, want that of a sparse file", err)
			}
			if want := strings.Count(name, "several"); len(files) != want {
				t.Errorf("the reader got %q, want %d files", files, want)
			}
		})
	}
}
