package image_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/test/ocitar"
)

// fuzzLimit is the unpacked size that fuzz targets allow. fuzzAllocated bounds what one input may allocate.
const (
	fuzzLimit     = 1 << 20
	fuzzAllocated = 96 << 20
)

// importBounded imports an archive and unpacks its images, or fails, with bounded memory.
func importBounded(t *testing.T, data []byte) {
	t.Helper()
	ctx, w := newEnv(t, image.Options{MaxUnpackedSize: fuzzLimit})
	file := write(t, data)
	cost := allocated(func() {
		list, err := w.load(ctx, file)
		if err != nil {
			return
		}
		for _, img := range list {
			_, _ = w.scope.Ensure(ctx, img.Name, "Never", nil)
		}
	})
	if cost > fuzzAllocated {
		t.Fatalf("%d bytes of an archive allocated %d MiB", len(data), cost>>20)
	}
	list, err := w.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range list {
		if strings.Contains(img.Name, "archive/") {
			t.Errorf("an image has the name %q", img.Name)
		}
	}
	w.collect(ctx, t)
	if n := w.leases(ctx, t); n > 0 {
		t.Errorf("%d leases remain", n)
	}
}

// FuzzArchive imports files that resemble image archives.
func FuzzArchive(f *testing.F) {
	img := sample("shop:1", "1")
	img.Layers = img.Layers[1:]
	for _, layout := range []func(*bytes.Buffer) error{
		func(b *bytes.Buffer) error { return ocitar.WriteOCI(b, img) },
		func(b *bytes.Buffer) error { return ocitar.WriteDocker(b, img) },
	} {
		var buf bytes.Buffer
		if err := layout(&buf); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	f.Add(append(ocitar.SparseHeader("blobs/sha256/x", 4<<40), make([]byte, 1024)...))
	f.Fuzz(func(t *testing.T, data []byte) { importBounded(t, data) })
}

// FuzzIndex imports OCI layouts whose documents resemble an index, a manifest and a configuration. In each text, MANIFEST and CONFIG are
// the digests of the others.
func FuzzIndex(f *testing.F) {
	const (
		indexText = `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"MANIFEST",` +
			`"size":1,` +
			`"annotations":{"io.containerd.image.name":"shop:1"}}]}`
		nestedText = `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"MANIFEST",` +
			`"size":1,` +
			`"annotations":{"io.containerd.image.name":"shop:1"}}]}`
		manifestText = `{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"CONFIG","size":1},` +
			`"layers":[]}`
		configText = `{"os":"linux","architecture":"amd64","config":{"Cmd":["x"]},"rootfs":{"type":"layers","diff_ids":[]}}`
	)
	f.Add(indexText, manifestText, configText)
	f.Add(nestedText, strings.ReplaceAll(indexText, "MANIFEST", "CONFIG"), configText)
	f.Fuzz(func(t *testing.T, index, manifest, config string) {
		manifest = strings.ReplaceAll(manifest, "CONFIG", digest.FromString(config).String())
		index = strings.ReplaceAll(index, "CONFIG", digest.FromString(config).String())
		index = strings.ReplaceAll(index, "MANIFEST", digest.FromString(manifest).String())
		var buf bytes.Buffer
		if err := ocitar.WriteFiles(&buf, map[string][]byte{
			ocispec.ImageLayoutFile: []byte(`{"imageLayoutVersion":"1.0.0"}`), ocispec.ImageIndexFile: []byte(index),
			"blobs/sha256/m": []byte(manifest), "blobs/sha256/c": []byte(config),
		}); err != nil {
			t.Fatal(err)
		}
		importBounded(t, buf.Bytes())
	})
}
