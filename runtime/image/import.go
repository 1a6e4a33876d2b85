package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// ImportFile adds the images of an archive in the OCI or Docker layout, which may be compressed. Short names are completed as in
// a pod file: busybox:1 is docker.io/library/busybox:1. A name that exists refers to the new image afterwards. A file that was
// imported before and has not changed is not read again while all its images are present. The error is an *Error or the error of
// ctx.
func (s *Store) ImportFile(ctx context.Context, name string) ([]Image, error) {
	list, err := s.importFile(ctx, name)
	if err != nil {
		return nil, fail(ctx, ReasonPull, "import image archive", name, err)
	}
	return list, nil
}

func (s *Store) importFile(ctx context.Context, name string) ([]Image, error) {
	// Opening a FIFO for reading blocks until there is a writer, and ctx cannot interrupt that.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	origin, err := fingerprint(f)
	if err != nil {
		return nil, err
	}
	if err := s.imports.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.imports.Release(1)
	if list, err := s.imported(ctx, origin); err != nil || len(list) > 0 {
		return list, err
	}
	return s.load(ctx, f, origin)
}

// fingerprint identifies the state of a file without reading it. It includes the inode's change time, which cannot be set back.
func fingerprint(f *os.File) (string, error) {
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	name, err := filepath.Abs(f.Name())
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprint(h, name, "\x00", st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// imported returns the images of the archive with this fingerprint. It returns none if one of them was removed, is incomplete, or
// its name refers to another image.
func (s *Store) imported(ctx context.Context, origin string) ([]Image, error) {
	records, err := s.client.ImageService().List(ctx, fmt.Sprintf("labels.%q", labelArchive))
	if err != nil {
		return nil, err
	}
	var list []Image
	count := 0
	for _, rec := range records {
		from, n, _ := strings.Cut(rec.Labels[labelArchive], "/")
		if from != origin {
			continue
		}
		if count, err = strconv.Atoi(n); err != nil {
			return nil, nil
		}
		img, err := s.describe(ctx, rec)
		if err != nil {
			return nil, ctx.Err()
		}
		if ok, err := s.unpacked(ctx, img); err != nil {
			return nil, err
		} else if ok {
			list = append(list, img)
			continue
		}
		if n, err := s.missing(ctx, rec.Target); err != nil || n > 0 {
			return nil, err
		}
		list = append(list, img)
	}
	if len(list) != count {
		return nil, nil
	}
	return list, nil
}

// load reads an archive. The caller holds s.imports. containerd's importer names unfinished content by its path in the archive
// and would continue that of another archive. So only one import may run, and leftovers of a killed one are removed first.
func (s *Store) load(ctx context.Context, r io.Reader, origin string) (list []Image, err error) {
	cs := s.client.ContentStore()
	stale, err := cs.ListStatuses(ctx, "ref~=^tar-")
	if err != nil {
		return nil, err
	}
	for _, st := range stale {
		if err := cs.Abort(ctx, st.Ref); err != nil && !errdefs.IsNotFound(err) {
			return nil, err
		}
	}
	err = s.leased(ctx, "import", discard, func(ctx context.Context) error {
		list, err = s.loadLeased(ctx, cancelled(ctx, r), origin)
		return err
	})
	return list, err
}

func (s *Store) loadLeased(ctx context.Context, r io.Reader, origin string) ([]Image, error) {
	cs := s.client.ContentStore()
	plain, err := compression.DecompressStream(r)
	if err != nil {
		return nil, unreadable(err)
	}
	defer plain.Close()
	desc, err := archive.ImportIndex(ctx, cs, plain)
	if err != nil {
		return nil, unreadable(err)
	}
	blob, err := content.ReadBlob(ctx, cs, desc)
	if err != nil {
		return nil, err
	}
	var index ocispec.Index
	if err := json.Unmarshal(blob, &index); err != nil {
		return nil, fmt.Errorf("decode index.json: %w", err)
	}
	records, err := named(index)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		if err := s.complete(ctx, rec); err != nil {
			return nil, fmt.Errorf("image %q: %w", rec.Name, err)
		}
	}
	// Names are set last, so that an archive is imported completely or not at all.
	label := map[string]string{labelArchive: fmt.Sprintf("%s/%d", origin, len(records))}
	var list []Image
	for _, rec := range records {
		rec.Labels = label
		if rec, err = s.name(ctx, rec); err != nil {
			return nil, fmt.Errorf("image %q: %w", rec.Name, err)
		}
		img, err := s.describe(ctx, rec)
		if err != nil {
			return nil, fmt.Errorf("image %q: %w", rec.Name, err)
		}
		list = append(list, img)
	}
	return list, nil
}

// unreadable describes tar's errors for an archive.
func unreadable(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader), err.Error() == "unrecognized image format":
		return fmt.Errorf("not an image archive in the OCI or Docker layout: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("not an image archive, or truncated: %w", err)
	default:
		return err
	}
}

// named returns a record for each manifest of the index that has a name.
func named(index ocispec.Index) ([]images.Image, error) {
	var records []images.Image
	for _, m := range index.Manifests {
		name := m.Annotations[images.AnnotationImageName]
		// The OCI annotation is often only a tag, which is not an image name.
		if ref := m.Annotations[ocispec.AnnotationRefName]; name == "" && strings.ContainsAny(ref, "/:@") {
			name = ref
		}
		if name == "" {
			continue
		}
		full, err := reference.ParseDockerRef(name)
		if err != nil {
			return nil, fmt.Errorf("image name %q: %w", name, err)
		}
		records = append(records, images.Image{Name: full.String(), Target: m})
	}
	if len(records) == 0 {
		return nil, errors.New("no image in the archive has a name: save it with a name, for example docker save NAME:TAG")
	}
	return records, nil
}

// complete checks that the image is complete and for this host's platform. It labels the content so that the garbage collector
// keeps it.
func (s *Store) complete(ctx context.Context, rec images.Image) error {
	cs := s.client.ContentStore()
	children := images.FilterPlatforms(images.ChildrenHandler(cs), s.platform)
	if err := images.Walk(ctx, images.SetChildrenLabels(cs, children), rec.Target); err != nil {
		return err
	}
	manifest, err := images.Manifest(ctx, cs, rec.Target, s.platform)
	if err != nil {
		return err
	}
	p, err := images.ConfigPlatform(ctx, cs, manifest.Config)
	if err != nil {
		return err
	}
	if !s.platform.Match(p) {
		return fmt.Errorf("image is for platform %s, this host is %s", platforms.Format(p), platforms.DefaultString())
	}
	for _, d := range manifest.Layers {
		if _, err := cs.Info(ctx, d.Digest); err != nil {
			return fmt.Errorf("layer %s: %w", d.Digest, err)
		}
	}
	return nil
}

// name creates the record, or updates an existing one to this image.
func (s *Store) name(ctx context.Context, rec images.Image) (images.Image, error) {
	is := s.client.ImageService()
	updated, err := is.Create(ctx, rec)
	if errdefs.IsAlreadyExists(err) {
		updated, err = is.Update(ctx, rec)
	}
	if err != nil {
		return rec, err
	}
	return updated, nil
}

// cancelled returns a reader that fails after ctx is cancelled. The importer checks the context only between files, and a file
// can have gigabytes.
func cancelled(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(b)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
