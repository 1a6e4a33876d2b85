package ocitar

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"runtime"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Attack is an image that must be refused.
type Attack struct {
	Name string
	// Make returns the image.
	Make func() *Tree
	// Archive and Registry are patterns for a part of the errors for an archive and for a pull. An empty one: the image is not refused.
	Archive, Registry string
}

// AttackLimit is images.maxUnpackedSize of the host that the attacks are made for.
const AttackLimit = 64 << 20

const (
	document = 8 << 20 // largest index, manifest or configuration
	padding  = 48 << 20
)

// Attacks returns images that try to exhaust the memory or the disk of a host, or to be another image.
func Attacks() []Attack {
	const (
		tooLarge  = "has [0-9]+ bytes, the limit for indexes, manifests and configurations is 8388608"
		digest    = "descriptor with digest .*: invalid checksum digest"
		inline    = "descriptor of .* has .* bytes of data, the limit is 4096"
		nested    = "indexes are nested more than 4 levels deep"
		documents = "indexes, manifests and configurations have more than 67108864 bytes in all"
		layers    = "manifest .* has 200 layers, the limit is 128"
		config    = "configuration of manifest .* has the type of a layer"
		unpacks   = "unpacks to more than 67108864 bytes"
		names     = "names and attributes of its files are too long, the limit is .* bytes of names or 16777216 bytes of attributes"
		hole      = "sparse file of .* bytes: unpacks to more than 67108864 bytes"
		frame     = "zstd window is larger than 33554432 bytes"
	)
	return []Attack{
		{"padded configuration", paddedConfig, tooLarge, tooLarge},
		{"padded manifest", paddedManifest, tooLarge, "rejecting|" + tooLarge}, // if it is present from the archive
		{"configuration that is larger than its descriptor says", lyingConfig, tooLarge, "size|" + tooLarge},
		{"negative size", negativeSize, "has a negative size", "has a negative size"},
		{"digest that is a path", pathDigest, digest, digest},
		{"configuration with the type of a layer", layerConfig, config, config},
		{"manifest inside of a descriptor", inlineData, inline, inline},
		{"index of a million empty manifests", emptyManifests, "has more than 131072 values", "has more than 131072 values"},
		{"index of 1500 manifests", manyManifests, "index .* has 1500 manifests, the limit is 1000", ""},
		{"20 images of 120 parts", manyParts, "image has more than 2000 parts", ""},
		{"configurations of 64 MiB", manyDocuments, documents, documents},
		{"300 nested indexes", func() *Tree { return Nested(300) }, nested, nested},
		{"200 layers", manyLayers, layers, layers},
		{"layers of exabytes", hugeLayers, "layers have more than .* bytes", "layers have more than .* bytes"},
		{
			"layer that names another snapshot", snapshotKey, "read config: layer .* of the configuration: invalid checksum digest",
			"layer .* of the configuration: invalid checksum digest",
		},
		{"zstd bomb", func() *Tree { return layered(zstdType, compressed(bomb())) }, unpacks, unpacks},
		{"gzip bomb", func() *Tree { return layered(ocispec.MediaTypeImageLayerGzip, mustGzip(bomb())) }, unpacks, unpacks},
		{"sparse file of 4 TiB", sparse, hole, hole},
		{"hole of 128 MiB in the PAX format", paxHole, hole, hole},
		{"attributes of 24 MiB", attributes, names, names},
		{"zstd window of 128 MiB", window, frame, frame},
	}
}

// Invalid returns images that are refused after their content was stored, because it does not fit together.
func Invalid() []Attack {
	return []Attack{
		{"zstd stream that is damaged", damagedStream, "failed to extract layer .*: decompress: invalid input", ""},
		{"layer that is missing", missingLayer, "layer sha256:.*: content digest .*: not found", ""},
		{"layer that is smaller than its descriptor says", lyingLayer, "layer sha256:.* has 512 bytes, the manifest says 1000", ""},
		{"layer that the configuration does not have", unknownLayer, "read config: 1 layers in the manifest, 0 in the configuration", ""},
	}
}

const zstdType = ocispec.MediaTypeImageLayerZstd

func config(diffs ...digest.Digest) ocispec.Image {
	return ocispec.Image{
		Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH},
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: diffs},
	}
}

func manifest(config ocispec.Descriptor, layers ...ocispec.Descriptor) ocispec.Manifest {
	return ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: layers,
	}
}

func index(list ...ocispec.Descriptor) ocispec.Index {
	return ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: list}
}

func (t *Tree) root(v any) *Tree {
	mediaType := ocispec.MediaTypeImageManifest
	if _, ok := v.(ocispec.Index); ok {
		mediaType = ocispec.MediaTypeImageIndex
	}
	t.Root = t.addJSON(mediaType, v)
	return t
}

func padded(v any, size int) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(data, bytes.Repeat([]byte(" "), size-len(data))...)
}

func paddedConfig() *Tree {
	t := &Tree{}
	return t.root(manifest(t.add(ocispec.MediaTypeImageConfig, padded(config(), padding))))
}

// Small returns an image without layers. Images with different authors have different content.
func Small(author string) *Tree {
	t, c := &Tree{}, config()
	c.Author = author
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, c)))
}

func paddedManifest() *Tree {
	t := &Tree{}
	m := manifest(t.addJSON(ocispec.MediaTypeImageConfig, config()))
	t.Root = t.add(ocispec.MediaTypeImageManifest, padded(m, document+1))
	return t
}

func lyingConfig() *Tree {
	t, c := &Tree{}, config()
	c.Author = "liar" // other content than that of the other attacks
	d := t.add(ocispec.MediaTypeImageConfig, padded(c, padding))
	d.Size = 1000
	return t.root(manifest(d))
}

func negativeSize() *Tree {
	t := &Tree{}
	d := t.addJSON(ocispec.MediaTypeImageConfig, config())
	d.Size = -1
	return t.root(manifest(d))
}

func pathDigest() *Tree {
	t := &Tree{}
	d := t.addJSON(ocispec.MediaTypeImageConfig, config())
	d.Digest = "sha256:../../../../etc/passwd"
	return t.root(manifest(d))
}

func layerConfig() *Tree {
	t := &Tree{}
	return t.root(manifest(t.add(ocispec.MediaTypeImageLayer, padded(config(), padding))))
}

func inlineData() *Tree {
	t := &Tree{}
	data := padded(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config())), 1<<20)
	d := newBlob(ocispec.MediaTypeImageManifest, data).Descriptor
	d.Data = data
	return t.root(index(d))
}

func emptyManifests() *Tree {
	t := &Tree{}
	text := `{"schemaVersion":2,"manifests":[{}` + strings.Repeat(",{}", 1_000_000) + "]}"
	t.Root = t.add(ocispec.MediaTypeImageIndex, []byte(text))
	return t
}

func manyManifests() *Tree {
	t := &Tree{}
	m := t.addJSON(ocispec.MediaTypeImageManifest, manifest(t.addJSON(ocispec.MediaTypeImageConfig, config())))
	list := make([]ocispec.Descriptor, 1500)
	for i := range list {
		list[i] = m
		list[i].Digest = digest.FromString(fmt.Sprint(i))
	}
	return t.root(index(list...))
}

// manyParts are 20 images that have the same layer as 120 types each.
func manyParts() *Tree {
	t := &Tree{}
	d := t.add(ocispec.MediaTypeImageLayer, emptyLayer())
	layers, diffs := make([]ocispec.Descriptor, 120), make([]digest.Digest, 120)
	for i := range 20 {
		for j := range layers {
			layers[j], diffs[j] = d, d.Digest
			layers[j].MediaType = fmt.Sprintf("application/%d-%d", i, j)
		}
		t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config(diffs...)), layers...))
		t.Others = append(t.Others, t.Root)
	}
	return t
}

// manyDocuments has the same configuration as several types.
func manyDocuments() *Tree {
	t, c := &Tree{}, config()
	c.Author = "many"
	d := t.add(ocispec.MediaTypeImageConfig, padded(c, document))
	others := make([]ocispec.Descriptor, 7)
	for i := range others {
		others[i] = d
		others[i].MediaType = fmt.Sprint("application/", i)
	}
	return t.root(manifest(d, others...))
}

// Nested returns an image below indexes that are nested in each other.
func Nested(indexes int) *Tree {
	t := &Tree{}
	d := t.addJSON(ocispec.MediaTypeImageManifest, manifest(t.addJSON(ocispec.MediaTypeImageConfig, config())))
	for range indexes {
		d = t.addJSON(ocispec.MediaTypeImageIndex, index(d))
	}
	t.Root = d
	return t
}

func emptyLayer() []byte {
	data, err := Layer{{Path: "empty", Mode: fs.ModeDir | 0o755}}.tar()
	if err != nil {
		panic(err)
	}
	return data
}

func manyLayers() *Tree {
	t := &Tree{}
	d := t.add(ocispec.MediaTypeImageLayer, emptyLayer())
	layers, diffs := make([]ocispec.Descriptor, 200), make([]digest.Digest, 200)
	for i := range layers {
		layers[i], diffs[i] = d, d.Digest
	}
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config(diffs...)), layers...))
}

func hugeLayers() *Tree {
	t := &Tree{}
	d := t.add(ocispec.MediaTypeImageLayer, emptyLayer())
	diff := d.Digest
	d.Size = 1 << 62
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config(diff, diff, diff)), d, d, d))
}

// snapshotKey names the snapshot of another image, as if its only layer were that.
func snapshotKey() *Tree {
	t := &Tree{}
	d := t.add(ocispec.MediaTypeImageLayer, emptyLayer())
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config("sha256:another")), d))
}

func missingLayer() *Tree {
	t := layered(ocispec.MediaTypeImageLayer, []byte("missing"))
	delete(t.Blobs, digest.FromString("missing"))
	return t
}

func lyingLayer() *Tree {
	t := &Tree{}
	d := t.add(ocispec.MediaTypeImageLayer, emptyLayer())
	diff := d.Digest
	d.Size = 1000
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config(diff)), d))
}

func unknownLayer() *Tree {
	t := &Tree{}
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config()), t.add(ocispec.MediaTypeImageLayer, emptyLayer())))
}

// damagedStream has a block of a type that does not exist.
func damagedStream() *Tree {
	data := compressed(emptyLayer())
	const header = 4 + 1 + 4 // magic, descriptor and what follows it at most
	for i := header; i < len(data); i++ {
		data[i] = 0xff
	}
	return layered(zstdType, data)
}

// layered returns an image with one layer. What the configuration says of it is known only after it was unpacked.
func layered(mediaType string, data []byte) *Tree {
	t := &Tree{}
	d := t.add(mediaType, data)
	return t.root(manifest(t.addJSON(ocispec.MediaTypeImageConfig, config(digest.FromString("unpacked"))), d))
}

// bomb is a layer with a file of zeros.
func bomb() []byte {
	data, err := Layer{{Path: "bomb", Mode: 0o644, Data: make([]byte, 2*AttackLimit)}}.tar()
	if err != nil {
		panic(err)
	}
	return data
}

func mustGzip(data []byte) []byte {
	out, err := gzipped(data)
	if err != nil {
		panic(err)
	}
	return out
}

func compressed(data []byte, opts ...zstd.EOption) []byte {
	z, err := zstd.NewWriter(nil, append(opts, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		panic(err)
	}
	defer z.Close()
	return z.EncodeAll(data, nil)
}

func sparse() *Tree {
	data := append(SparseHeader("hole", 4<<40), make([]byte, 1024)...)
	return layered(ocispec.MediaTypeImageLayer, data)
}

func paxHole() *Tree {
	data := append(PAXHole("hole", 2*AttackLimit), make([]byte, 1024)...)
	return layered(ocispec.MediaTypeImageLayer, data)
}

func attributes() *Tree {
	var buf bytes.Buffer
	out := newArchive(&buf)
	text := strings.Repeat("x", 1<<20-100)
	for i := range 24 {
		out.entry(&tar.Header{
			Typeflag: tar.TypeDir, Name: fmt.Sprintf("d%d/", i), Mode: 0o755, PAXRecords: map[string]string{"PODSTEAD.x": text},
		}, nil)
	}
	if err := out.close(); err != nil {
		panic(err)
	}
	return layered(zstdType, compressed(buf.Bytes()))
}

// window needs a buffer of 128 MiB. Its frame begins with magic, a descriptor without single segment, and the exponent of the window.
func window() *Tree {
	const exponent = 17                                                            // 2^(10+17)
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, exponent << 3, 0x01, 0x00, 0x00} // the last, empty, raw block
	return layered(zstdType, frame)
}
