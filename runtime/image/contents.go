package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/platforms"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Content is an image in an archive.
type Content struct {
	Name string // full
	// Digest is that of the manifest or index; empty: the archive has the Docker layout, which has no manifests.
	Digest string
	// Platforms are those whose configuration is in the archive.
	Platforms []string
	// Signatures is true if the index of the archive has manifests that may be signatures.
	Signatures bool
}

const (
	maxKept    = 4 << 20  // bytes of a file of an archive that may be a document
	maxAllKept = 64 << 20 // bytes of all these
)

// Decompress returns the decompressed stream of an archive; one that is not compressed is returned as it is.
func Decompress(r io.Reader) (io.ReadCloser, error) { return decompress(r) }

// ReadContents returns the images of an archive that is not compressed, without their layers. With unpacked, it also returns how many bytes
// the layers have when they are decompressed; otherwise 0. It does not check digests: the import does.
func ReadContents(r io.Reader, unpacked bool) (list []Content, size int64, err error) {
	c := contents{files: map[string][]byte{}, unpacked: unpacked}
	if err := c.read(r); err != nil {
		return nil, 0, unreadable(err)
	}
	if _, ok := c.files[ocispec.ImageLayoutFile]; ok {
		list, err = c.layout()
	} else {
		list, err = c.docker()
	}
	return list, c.size, err
}

// PlatformMatches reports whether a host of the platform want runs images of the platform have.
func PlatformMatches(have, want string) bool {
	h, err := platforms.Parse(have)
	if err != nil {
		return false
	}
	w, err := platforms.Parse(want)
	return err == nil && platforms.Only(w).Match(h)
}

// HostPlatform returns the platform of this host, such as linux/amd64.
func HostPlatform() string { return platforms.DefaultString() }

// contents are the small files of an archive, which may be documents.
type contents struct {
	files    map[string][]byte // by path
	kept     int
	unpacked bool
	size     int64
}

func (c *contents) read(r io.Reader) error {
	tr := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n > maxEntries {
			return exceeds("archive has more than %d files", maxEntries)
		}
		if h.Typeflag != tar.TypeReg || isSparse(h) {
			continue
		}
		if err := c.file(path.Clean(h.Name), h.Size, tr); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

func (c *contents) file(name string, size int64, r io.Reader) error {
	if size <= maxKept {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if c.kept += len(data); c.kept > maxAllKept {
			return exceeds("small files have more than %d bytes", maxAllKept)
		}
		c.files[name] = data
		r = bytes.NewReader(data)
	}
	if !c.unpacked {
		return nil
	}
	plain, err := decompress(r)
	if err != nil {
		return err
	}
	defer plain.Close()
	n, err := io.Copy(io.Discard, plain)
	c.size += n
	return err
}

// layout returns the images of an OCI layout.
func (c *contents) layout() (list []Content, err error) {
	var index ocispec.Index
	if err := json.Unmarshal(c.files[ocispec.ImageIndexFile], &index); err != nil {
		return nil, fmt.Errorf("decode %s: %w", ocispec.ImageIndexFile, err)
	}
	signatures := split(&index)
	records, err := named(index)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		img := Content{Name: rec.Name, Digest: rec.Target.Digest.String(), Signatures: len(signatures) > 0}
		budget := maxNames
		c.platforms(rec.Target, &img, 0, &budget)
		list = append(list, img)
	}
	return list, nil
}

// platforms adds the platforms of a manifest, or of the manifests of an index, whose configurations are in the archive.
func (c *contents) platforms(d ocispec.Descriptor, img *Content, depth int, budget *int) {
	if *budget--; depth > maxDepth || *budget < 0 || d.Digest.Validate() != nil {
		return
	}
	blob := c.files[blobPath(d)]
	if images.IsIndexType(d.MediaType) {
		var index ocispec.Index
		if json.Unmarshal(blob, &index) == nil {
			for _, m := range index.Manifests {
				c.platforms(m, img, depth+1, budget)
			}
		}
		return
	}
	var m ocispec.Manifest
	if json.Unmarshal(blob, &m) != nil || m.Config.Digest.Validate() != nil {
		return
	}
	c.config(c.files[blobPath(m.Config)], img)
}

func blobPath(d ocispec.Descriptor) string {
	return path.Join(ocispec.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded())
}

// config adds the platform of a configuration.
func (c *contents) config(data []byte, img *Content) {
	var p ocispec.Platform
	if json.Unmarshal(data, &p) != nil || p.OS == "" || p.Architecture == "" {
		return
	}
	if text := platforms.Format(platforms.Normalize(p)); !slices.Contains(img.Platforms, text) {
		img.Platforms = append(img.Platforms, text)
	}
}

// docker returns the images of a Docker layout.
func (c *contents) docker() (list []Content, err error) {
	data, ok := c.files["manifest.json"]
	if !ok {
		return nil, unreadable(errNoLayout)
	}
	var entries []dockerImage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("decode manifest.json: %w", err)
	}
	for _, e := range entries {
		for _, tag := range e.RepoTags {
			records, err := named(ocispec.Index{
				Manifests: []ocispec.Descriptor{{Annotations: map[string]string{images.AnnotationImageName: tag}}},
			})
			if err != nil {
				return nil, err
			}
			img := Content{Name: records[0].Name}
			c.config(c.files[path.Clean(e.Config)], &img)
			list = append(list, img)
		}
		if len(list) > maxNames {
			return nil, exceeds("archive has more than %d image names", maxNames)
		}
	}
	return list, nil
}
