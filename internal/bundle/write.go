package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/podstead/podstead/runtime/image"
)

// Writer collects the parts of a bundle. Close it after use.
type Writer struct {
	manifest Manifest
	parts    []part
	dir      string // temporary, with the image archives
}

// part is a file of a bundle: its text, or the path of a temporary file.
type part struct {
	text []byte
	path string
}

// NewWriter returns a writer, which stores image archives in a directory below dir until it is closed.
func NewWriter(dir, version, platform string, now time.Time) (*Writer, error) {
	dir, err := os.MkdirTemp(dir, ".podstead-bundle-")
	if err != nil {
		return nil, err
	}
	m := Manifest{Version: Version, Created: now.UTC().Truncate(time.Second), Podstead: version, Platform: platform, Images: []Image{}}
	return &Writer{manifest: m, dir: dir}, nil
}

// Close removes the temporary files.
func (w *Writer) Close() error { return os.RemoveAll(w.dir) }

// Manifest returns the manifest of what was added.
func (w *Writer) Manifest() *Manifest { return &w.manifest }

func (w *Writer) add(path string, text []byte) {
	w.manifest.Files = append(w.manifest.Files, File{path, int64(len(text)), fmt.Sprintf("%x", sha256.Sum256(text))})
	w.parts = append(w.parts, part{text: text})
}

// AddPod adds a pod file. The extension is that of the file, with its dot.
func (w *Writer) AddPod(name, extension string, text []byte) {
	path := podsDir + "/" + name + extension
	w.manifest.Pods = append(w.manifest.Pods, Pod{name, path})
	w.add(path, text)
}

// AddValue adds a value of a config map or a secret.
func (w *Writer) AddValue(kind, name, key string, value []byte) {
	w.add(kind+"s/"+name+"/"+key, value)
}

// AddImages adds an image archive that is not compressed, which write writes, with the signatures beside it. Each of the images in it must
// have the platform of the bundle.
func (w *Writer) AddImages(write func(io.Writer) error, signatures ...string) ([]image.Content, error) {
	n := 0
	for _, f := range w.manifest.Files {
		if filepath.Dir(f.Path) == imagesDir {
			n++
		}
	}
	name := strconv.Itoa(n) + ".tar"
	path := filepath.Join(w.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if err := write(io.MultiWriter(f, h)); err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	found, unpacked, err := image.ReadContents(f, true)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		w.manifest.Images = append(w.manifest.Images, Image{c.Name, c.Digest, imagesDir + "/" + name})
	}
	if len(signatures) > 0 {
		if w.manifest.Signatures == nil {
			w.manifest.Signatures = map[string][]string{}
		}
		w.manifest.Signatures[imagesDir+"/"+name] = signatures
	}
	w.manifest.UnpackedSize += unpacked
	w.manifest.Files = append(w.manifest.Files, File{imagesDir + "/" + name, size, fmt.Sprintf("%x", h.Sum(nil))})
	w.parts = append(w.parts, part{path: path})
	b := Bundle{Manifest: w.manifest}
	return found, b.checkArchive(imagesDir+"/"+name, found)
}

// WriteTo writes the bundle.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	if err := w.manifest.check(); err != nil {
		return 0, err
	}
	text, err := json.MarshalIndent(w.manifest, "", "  ")
	if err != nil {
		return 0, err
	}
	if len(text) > maxManifest {
		return 0, fmt.Errorf("the list of files and signatures has more than %d bytes", maxManifest)
	}
	counted := &counter{w: out}
	tw := tar.NewWriter(counted)
	write := func(name string, size int64, r io.Reader) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: w.manifest.Created}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(tw, r)
		return err
	}
	if err := write(ManifestName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return counted.n, err
	}
	for i, f := range w.manifest.Files {
		if err := w.parts[i].copy(func(r io.Reader) error { return write(f.Path, f.Size, r) }); err != nil {
			return counted.n, err
		}
	}
	return counted.n, tw.Close()
}

func (p *part) copy(write func(r io.Reader) error) error {
	if p.path == "" {
		return write(bytes.NewReader(p.text))
	}
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	return write(f)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
