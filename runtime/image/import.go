package image

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/runtime/image/signature"
	"github.com/podstead/podstead/spec"
)

// ImportFile adds the images of an archive in the OCI or Docker layout, which may be compressed, to the scope of the archive, see
// [Store.In]. Short names are completed as in a pod file: busybox:1 is docker.io/library/busybox:1. Afterwards the scope has exactly the
// names of the archive. A file that was imported before and has not changed is not read again while all its images are present. The error
// is an *Error or the error of ctx. progress may be nil. It is called in another goroutine while the file is being imported, also by a
// concurrent call, and not after ImportFile has returned.
func (s *Store) ImportFile(ctx context.Context, name string, progress func(Progress)) ([]Image, error) {
	list, err := s.importFile(ctx, name, progress)
	if err != nil {
		return nil, fail(ctx, ReasonPull, "import image archive", name, err)
	}
	return list, nil
}

func (s *Store) importFile(ctx context.Context, name string, progress func(Progress)) ([]Image, error) {
	f, err := spec.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	origin, size, err := fingerprint(f)
	if err != nil {
		return nil, err
	}
	a := archive{origin: origin, size: size, path: name}
	if a.records, err = recordsOf(name); err != nil {
		return nil, err
	}
	defer s.reads.watch(ctx, a.records, progress)()
	unlock, err := s.archives.Lock(ctx, a.records)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if list, err := s.imported(ctx, a); err != nil || len(list) > 0 {
		return list, err
	}
	return s.load(ctx, f, a)
}

// archive is the state of an archive.
type archive struct {
	records string // prefix of its records
	origin  string // fingerprint
	size    int64  // of the file
	path    string // of the file
}

// fingerprint identifies the state of a file without reading it. It includes the inode's change time, which cannot be set back.
func fingerprint(f *os.File) (origin string, size int64, err error) {
	fi, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.Mode().IsRegular() {
		return "", 0, errors.New("not a regular file")
	}
	name, err := filepath.Abs(f.Name())
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	fmt.Fprint(h, name, "\x00", st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	return fmt.Sprintf("%x", h.Sum(nil)), st.Size, nil
}

// imported returns the images of the archive if it was imported and has not changed. It returns none if one of them was removed or is
// incomplete.
func (s *Store) imported(ctx context.Context, a archive) ([]Image, error) {
	records, err := s.recordsIn(ctx, a)
	if err != nil {
		return nil, err
	}
	var list []Image
	count := 0
	for _, rec := range records {
		from, n, _ := strings.Cut(rec.Labels[labelArchive], "/")
		if from != a.origin {
			return nil, nil
		}
		if count, err = strconv.Atoi(n); err != nil {
			return nil, nil
		}
		if !s.admitted(ctx, rec) {
			return nil, nil // its signatures are read with the file
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

// recordsIn returns the records of an archive.
func (s *Store) recordsIn(ctx context.Context, a archive) ([]images.Image, error) {
	all, err := s.client.ImageService().List(ctx, fmt.Sprintf("labels.%q", labelArchive))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(rec images.Image) bool { return !strings.HasPrefix(rec.Name, a.records) }), nil
}

// load reads an archive. The caller holds its lock.
func (s *Store) load(ctx context.Context, r io.Reader, a archive) (list []Image, err error) {
	r, end := s.reads.begin(r, a)
	defer func() { end(err == nil) }()
	_, b, release, err := s.begin(ctx, &s.imports)
	if err != nil {
		return nil, err
	}
	defer release()
	b.compressed = a.size
	err = s.leased(ctx, workImport+a.records, discard, func(ctx context.Context) error {
		list, err = s.loadLeased(ctx, cancelled(ctx, r), a, b)
		return err
	})
	return list, b.explain(err)
}

func (s *Store) loadLeased(ctx context.Context, r io.Reader, a archive, b *budget) ([]Image, error) {
	records, signed, err := s.readArchive(ctx, r, b, func() ([]signature.Signature, error) { return signature.Beside(a.path) })
	if err != nil {
		return nil, err
	}
	list, err := s.completeAll(ctx, records)
	if err != nil {
		return nil, err
	}
	if err := s.rememberAll(ctx, signed); err != nil {
		return nil, err
	}
	// Names are set last, so that an archive is imported completely or not at all.
	label := map[string]string{labelArchive: fmt.Sprintf("%s/%d", a.origin, len(records))}
	stale := map[string]bool{}
	old, err := s.recordsIn(ctx, a)
	if err != nil {
		return nil, err
	}
	for _, rec := range old {
		stale[rec.Name] = true
	}
	for i, rec := range records {
		rec.Name, rec.Labels = a.records+rec.Name, label
		delete(stale, rec.Name)
		if rec, err = s.name(ctx, rec); err != nil {
			return nil, fmt.Errorf("image %q: %w", list[i].Name, err)
		}
		list[i].CreatedAt = rec.CreatedAt
	}
	for name := range stale {
		if err := s.client.ImageService().Delete(ctx, name); err != nil && !errdefs.IsNotFound(err) {
			return nil, err
		}
	}
	return list, nil
}

// readArchive stores the content of an archive, checks its signatures, and returns a record for each of its names. beside returns the
// signatures in files beside the archive.
func (s *Store) readArchive(
	ctx context.Context, r io.Reader, b *budget, beside func() ([]signature.Signature, error),
) ([]images.Image, []verdict, error) {
	plain, err := decompress(r)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	defer plain.Close()
	l := layout{store: s.client.ContentStore(), budget: b, ref: "import-" + rand.Text() + "-"}
	if err := l.read(ctx, b.reader(plain)); err != nil {
		return nil, nil, unreadable(err)
	}
	index, err := l.images(ctx)
	if err != nil {
		return nil, nil, unreadable(err)
	}
	from := archiveSource{store: s, beside: beside, entries: split(&index)}
	records, err := named(index)
	if err != nil {
		return nil, nil, err
	}
	verdicts, err := from.approveAll(ctx, records)
	return records, verdicts, err
}

// completeAll checks the images of an archive and returns their descriptions.
func (s *Store) completeAll(ctx context.Context, records []images.Image) ([]Image, error) {
	known := map[node]Image{} // an image may have several names
	t := newTree(&budget{limit: math.MaxInt64})
	list := make([]Image, len(records))
	for i, rec := range records {
		n := node{rec.Target.Digest, rec.Target.MediaType}
		img, ok := known[n]
		if !ok {
			var err error
			if img, err = s.complete(ctx, rec, t); err != nil {
				return nil, fmt.Errorf("image %q: %w", rec.Name, err)
			}
			known[n] = img
		}
		img.Name = rec.Name
		list[i] = img
	}
	return list, nil
}

// unreadable describes tar's errors for an archive.
func unreadable(err error) error {
	switch {
	case errors.Is(err, tar.ErrHeader), errors.Is(err, errNoLayout):
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
		if d, ok := full.(reference.Digested); ok && d.Digest() != m.Digest {
			return nil, fmt.Errorf("image name %q: the image has the digest %s", name, m.Digest)
		}
		records = append(records, images.Image{Name: full.String(), Target: m})
	}
	if len(records) > maxNames {
		return nil, exceeds("archive has %d image names, the limit is %d", len(records), maxNames)
	}
	if len(records) == 0 {
		return nil, errors.New("no image in the archive has a name: save it with a name, for example docker save NAME:TAG")
	}
	return records, nil
}

// complete checks that the image is complete and for this host's platform, and describes it. It labels the content so that the garbage
// collector keeps it.
func (s *Store) complete(ctx context.Context, rec images.Image, t *tree) (Image, error) {
	cs := s.client.ContentStore()
	all := images.FilterPlatforms(images.ChildrenHandler(cs), s.platform)
	bounded := func(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
		list, err := all(ctx, d)
		if err == nil && images.IsIndexType(d.MediaType) {
			err = checkManifests(d, list)
		}
		return list, err
	}
	// Only the best manifest, as for a pull: an exported archive has an index without the others.
	children := images.LimitManifests(bounded, s.platform, 1)
	if err := t.walk(ctx, images.SetChildrenLabels(cs, children), rec.Target); err != nil {
		return Image{}, err
	}
	manifest, err := images.Manifest(ctx, cs, rec.Target, s.platform)
	if err != nil {
		return Image{}, err
	}
	if err := t.enter(manifest.Config); err != nil { // again: it is read for each manifest that refers to it
		return Image{}, err
	}
	p, err := images.ConfigPlatform(ctx, cs, manifest.Config)
	if err != nil {
		return Image{}, err
	}
	if !s.platform.Match(p) {
		return Image{}, fmt.Errorf("image is for platform %s, this host is %s", platforms.Format(p), platforms.DefaultString())
	}
	for _, d := range manifest.Layers {
		info, err := cs.Info(ctx, d.Digest)
		if err != nil {
			return Image{}, fmt.Errorf("layer %s: %w", d.Digest, err)
		}
		if info.Size != d.Size {
			return Image{}, fmt.Errorf("layer %s has %d bytes, the manifest says %d", d.Digest, info.Size, d.Size)
		}
	}
	rec.Labels = map[string]string{labelArchive: ""}
	return s.describe(ctx, rec)
}

// name creates the record, or updates an existing one to this image. One that is removed in between is created.
func (s *Store) name(ctx context.Context, rec images.Image) (images.Image, error) {
	is := s.client.ImageService()
	for {
		updated, err := is.Create(ctx, rec)
		if errdefs.IsAlreadyExists(err) {
			updated, err = is.Update(ctx, rec)
			if errdefs.IsNotFound(err) && ctx.Err() == nil {
				continue
			}
		}
		if err != nil {
			return rec, err
		}
		return updated, nil
	}
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
