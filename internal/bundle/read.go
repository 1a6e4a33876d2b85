package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/podstead/podstead/runtime/image"
)

// Bundle is a bundle that was verified.
type Bundle struct {
	Manifest
	// Text has the content of the pod files and the values of config maps and secrets, by path.
	Text map[string][]byte
	// Signed has the archives with manifests in their index that may be signatures, by path.
	Signed map[string]bool
}

// Value returns a value of a config map or a secret.
func (b *Bundle) Value(o Object, key string) []byte { return b.Text[o.Kind+"s/"+o.Name+"/"+key] }

// Read reads and verifies a bundle: every file of the manifest is there with its digest, nothing else is, and the archives have the images
// that the manifest lists, for its platform.
func Read(ctx context.Context, r io.Reader) (*Bundle, error) {
	b := &Bundle{Text: map[string][]byte{}, Signed: map[string]bool{}}
	err := each(r, &b.Manifest, func(f File, r io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !strings.HasPrefix(f.Path, imagesDir+"/") {
			text, err := io.ReadAll(r)
			b.Text[f.Path] = text
			return err
		}
		found, _, err := image.ReadContents(r, false)
		if err != nil {
			return err
		}
		b.Signed[f.Path] = slices.ContainsFunc(found, func(c image.Content) bool { return c.Signatures })
		return b.checkArchive(f.Path, found)
	})
	if err != nil {
		return nil, readable(err)
	}
	return b, nil
}

// checkArchive checks that an archive has exactly the images that the manifest lists.
func (b *Bundle) checkArchive(archive string, found []image.Content) error {
	for _, i := range b.Images {
		if i.Archive != archive {
			continue
		}
		n := slices.IndexFunc(found, func(c image.Content) bool { return c.Name == i.Name && c.Digest == i.Digest })
		if n < 0 {
			return fmt.Errorf("image %q is missing", i.Name)
		}
		if !slices.ContainsFunc(found[n].Platforms, func(p string) bool { return image.PlatformMatches(p, b.Platform) }) {
			return fmt.Errorf("image %q is not for platform %s", i.Name, b.Platform)
		}
	}
	for _, c := range found {
		if !slices.ContainsFunc(b.Images, func(i Image) bool { return i.Archive == archive && i.Name == c.Name }) {
			return fmt.Errorf("image %q is not in the manifest", c.Name)
		}
	}
	return nil
}

// Archives calls do with each image archive. The bundle may have changed since it was read: do gets an error from the reader before the end
// of an archive that differs from the manifest m.
func Archives(r io.Reader, m *Manifest, do func(f File, r io.Reader) error) error {
	var now Manifest
	return each(r, &now, func(f File, r io.Reader) error {
		if !strings.HasPrefix(f.Path, imagesDir+"/") {
			return nil
		}
		if !slices.Contains(m.Files, f) {
			return errors.New("the bundle has changed")
		}
		return do(f, r)
	})
}

// each reads a bundle, and calls do with each file after the manifest, which it stores in m. It verifies what do leaves.
func each(r io.Reader, m *Manifest, do func(f File, r io.Reader) error) (err error) {
	tr := tar.NewReader(r)
	if *m, err = readManifest(tr); err != nil {
		return err
	}
	for _, f := range m.Files {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("file %q is missing", f.Path)
		}
		if err != nil {
			return err
		}
		if err := checkHeader(h, f.Path, f.Size); err != nil {
			return err
		}
		v := &verified{r: tr, hash: sha256.New(), want: f.SHA256, left: f.Size}
		if err := do(f, v); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
		if _, err := io.Copy(io.Discard, v); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	h, err := tr.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("file %q is not in the manifest", h.Name)
}

func checkHeader(h *tar.Header, name string, size int64) error {
	switch {
	case h.Name != name:
		return fmt.Errorf("found file %q, the manifest has %q", h.Name, name)
	case h.Typeflag != tar.TypeReg || isSparse(h):
		return fmt.Errorf("%q is not a regular file", name)
	case h.Size != size:
		return fmt.Errorf("file %q has %d bytes, the manifest has %d", name, h.Size, size)
	}
	return nil
}

// isSparse reports whether a file has holes: a few bytes of a bundle could stand for any size.
func isSparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func readManifest(tr *tar.Reader) (m Manifest, err error) {
	h, err := tr.Next()
	if err != nil {
		return m, err
	}
	if h.Name != ManifestName || h.Typeflag != tar.TypeReg || isSparse(h) {
		return m, fmt.Errorf("not a bundle: the first file is not %s", ManifestName)
	}
	if h.Size > maxManifest {
		return m, fmt.Errorf("manifest: larger than %d bytes", maxManifest)
	}
	text, err := io.ReadAll(tr)
	if err != nil {
		return m, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("manifest: %w", err)
	}
	return m, m.check()
}

// verified returns an error at the end of a file whose digest differs.
type verified struct {
	r    io.Reader
	hash interface {
		io.Writer
		Sum(b []byte) []byte
	}
	want string
	left int64
	err  error
}

func (v *verified) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	if int64(len(p)) > v.left && v.left > 0 {
		p = p[:v.left]
	}
	n, err := v.r.Read(p)
	_, _ = v.hash.Write(p[:n])
	v.left -= int64(n)
	if v.left == 0 && (err == nil || errors.Is(err, io.EOF)) {
		// Before the last bytes are passed on: who reads them may act on them.
		v.err = io.EOF
		if hex.EncodeToString(v.hash.Sum(nil)) != strings.ToLower(v.want) {
			v.err = errors.New("sha256 differs from the manifest")
			return 0, v.err
		}
		return n, nil
	}
	if err != nil {
		v.err = err
		if errors.Is(err, io.EOF) {
			v.err = io.ErrUnexpectedEOF
		}
	}
	return n, v.err
}

// readable explains an error of a stream.
func readable(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("not a bundle, or damaged: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("not a bundle, or truncated: %w", err)
	}
	return err
}
