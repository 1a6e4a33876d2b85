package ocitar_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/test/ocitar"
)

func sample() ocitar.Image {
	return ocitar.Image{
		Name: "localhost/sample:1",
		Config: ocispec.ImageConfig{
			Env:          []string{"PATH=/bin"},
			Labels:       map[string]string{"a": "1", "b": "2", "c": "3"},
			ExposedPorts: map[string]struct{}{"80/tcp": {}, "443/tcp": {}},
		},
		Layers: []ocitar.Layer{{
			{Path: "bin", Mode: fs.ModeDir | 0o755},
			{Path: "bin/a", Mode: 0o755, Data: []byte("a")},
			{Path: "bin/b", Link: "a"},
		}},
	}
}

func names(t *testing.T, data []byte) []string {
	t.Helper()
	var out []string
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h.Name)
	}
}

func TestSameImageGivesSameBytes(t *testing.T) {
	compressed := sample()
	compressed.Gzip = true
	for name, write := range map[string]func(io.Writer) error{
		"oci":      func(w io.Writer) error { return ocitar.WriteOCI(w, sample()) },
		"oci gzip": func(w io.Writer) error { return ocitar.WriteOCI(w, compressed) },
		"docker":   func(w io.Writer) error { return ocitar.WriteDocker(w, sample()) },
	} {
		t.Run(name, func(t *testing.T) {
			var first bytes.Buffer
			if err := write(&first); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				var again bytes.Buffer
				if err := write(&again); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(first.Bytes(), again.Bytes()) {
					t.Fatalf("two archives of the same image differ: %q and %q", names(t, first.Bytes()), names(t, again.Bytes()))
				}
			}
		})
	}
}

func TestSharedLayerIsWrittenOnce(t *testing.T) {
	one, two := sample(), sample()
	two.Name, two.Config.Env = "localhost/sample:2", nil
	var alone, both bytes.Buffer
	if err := ocitar.WriteOCI(&alone, one); err != nil {
		t.Fatal(err)
	}
	if err := ocitar.WriteOCI(&both, one, two); err != nil {
		t.Fatal(err)
	}
	// The second image adds its config and its manifest, and no layer.
	want := len(names(t, alone.Bytes())) + 2
	if diff := cmp.Diff(want, len(names(t, both.Bytes()))); diff != "" {
		t.Errorf("entries of the archive with both images (-want +got):\n%s\n%q", diff, names(t, both.Bytes()))
	}
}

func TestWriteErrorIsReported(t *testing.T) {
	if err := ocitar.WriteOCI(full{}, sample()); !errors.Is(err, errFull) {
		t.Errorf("write to a full disk: %v, want %v", err, errFull)
	}
}

var errFull = errors.New("disk full")

// full is a writer that always fails with errFull.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
