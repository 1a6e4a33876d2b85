package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/spec"
)

// Newest returns the image that a first run of ref would use now, if that is known without a registry: the image of an archive in the
// scope, of an image directory, or one that was imported by hand. An archive in the scope that has changed since its import is read, and
// nothing is changed. ok is false for a name that refers to a pulled image or to nothing, and for a name with a digest. An archive that was
// imported and does not exist any more counts as unchanged. The error is an *Error or the error of ctx.
func (s Scope) Newest(ctx context.Context, ref string) (img Previous, ok bool, err error) {
	name, err := parse(ref)
	if err != nil {
		return Previous{}, false, err
	}
	if _, pinned := repository(name); pinned != "" {
		return Previous{}, false, nil
	}
	for _, v := range slices.Backward(s.archives) {
		config, err := s.newestIn(ctx, v, name)
		if err != nil {
			return Previous{}, false, fail(ctx, ReasonPull, "read image archive", v, err)
		}
		if config != "" {
			return Previous{ConfigDigest: config, FromArchive: true}, true, nil
		}
	}
	if err := s.awaitFiles(ctx, nil, func() (bool, error) { return false, nil }); err != nil {
		return Previous{}, false, fail(ctx, ReasonInspect, "look up image", ref, err)
	}
	rec, err := s.client.ImageService().Get(ctx, name)
	if _, archived := rec.Labels[labelArchive]; errdefs.IsNotFound(err) || err == nil && !archived {
		return Previous{}, false, nil
	}
	if err == nil {
		var found Image
		if found, err = s.describe(ctx, rec); err == nil {
			return Previous{ConfigDigest: found.ConfigDigest, FromArchive: true}, true, nil
		}
	}
	return Previous{}, false, fail(ctx, ReasonInspect, "look up image", ref, err)
}

// newestIn returns the digest of the configuration of an image of an archive, by its full name; empty: the archive does not contain it.
func (s *Store) newestIn(ctx context.Context, path, name string) (config string, err error) {
	prefix, err := recordsOf(path)
	if err != nil {
		return "", err
	}
	f, err := spec.OpenFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	origin, missing := "", err
	if err == nil {
		defer f.Close()
		if origin, _, err = fingerprint(f); err != nil {
			return "", err
		}
	}
	records, err := s.recordsIn(ctx, archive{records: prefix})
	if err != nil {
		return "", err
	}
	if len(records) == 0 && missing != nil {
		return "", missing
	}
	for _, rec := range records {
		if from, _, _ := strings.Cut(rec.Labels[labelArchive], "/"); missing == nil && from != origin {
			return s.peekOnce(ctx, f, origin, name)
		}
		if rec.Name == prefix+name {
			img, err := s.describe(ctx, rec)
			return img.ConfigDigest, err
		}
	}
	if len(records) == 0 {
		return s.peekOnce(ctx, f, origin, name)
	}
	return "", nil
}

// maxPeeks are the archives whose names are remembered.
const maxPeeks = 64

// peeks are the names of archives that were read, so that several containers, and the commands that follow each other, read a large archive
// once.
type peeks struct {
	reading guard.KeyedMutex // by archive
	mu      sync.Mutex
	names   map[string]map[string]found // of an archive and of an image
}

// found is an image of an archive that was read: the digest of its configuration, or why it cannot be used.
type found struct {
	config string
	err    error
}

// peekOnce is [Store.peek] for one name; empty: the archive does not contain it. Origin is the fingerprint of the archive.
func (s *Store) peekOnce(ctx context.Context, f *os.File, origin, name string) (config string, err error) {
	unlock, err := s.peeks.reading.Lock(ctx, origin)
	if err != nil {
		return "", err
	}
	defer unlock()
	s.peeks.mu.Lock()
	names, known := s.peeks.names[origin]
	s.peeks.mu.Unlock()
	if !known {
		if names, err = s.peek(ctx, f); err != nil {
			return "", err
		}
		s.peeks.mu.Lock()
		if s.peeks.names == nil || len(s.peeks.names) >= maxPeeks {
			s.peeks.names = map[string]map[string]found{}
		}
		s.peeks.names[origin] = names
		s.peeks.mu.Unlock()
	}
	return names[name].config, names[name].err
}

// peek reads the documents of an archive. It returns its images by their full names.
func (s *Store) peek(ctx context.Context, f *os.File) (names map[string]found, err error) {
	b, err := s.newBudget(nil)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err == nil {
		b.compressed = fi.Size()
	}
	plain, err := decompress(cancelled(ctx, f))
	if err != nil {
		return nil, unreadable(err)
	}
	defer plain.Close()
	l := layout{budget: b, peeked: &peeked{documents: map[digest.Digest][]byte{}}}
	if err := l.read(ctx, b.reader(plain)); err != nil {
		return nil, unreadable(err)
	}
	index, err := l.images(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	split(&index)
	records, err := named(index)
	if err != nil {
		return nil, err
	}
	names = map[string]found{}
	for _, record := range slices.Backward(records) { // as for the import, the last one counts
		if _, later := names[record.Name]; later {
			continue
		}
		manifest, err := images.Manifest(ctx, l.peeked, record.Target, s.platform)
		if err != nil {
			names[record.Name] = found{err: fmt.Errorf("image %q: %w", record.Name, err)}
			continue
		}
		names[record.Name] = found{config: manifest.Config.Digest.String()}
	}
	return names, ctx.Err()
}

// peeked are the indexes, manifests and configurations of an archive, in memory.
type peeked struct {
	documents map[digest.Digest][]byte
	size      int64 // of all
}

// add keeps a file of an archive if it may be a document: a JSON object that is not too large. Other files are not read.
func (p *peeked) add(name string, size int64, r io.Reader) (entry, error) {
	start := make([]byte, 1)
	if size > maxDocument || size == 0 {
		return entry{}, nil
	}
	if _, err := io.ReadFull(r, start); err != nil || start[0] != '{' {
		return entry{}, err
	}
	text, err := readDocument(name, io.MultiReader(bytes.NewReader(start), r))
	if err != nil {
		return entry{}, err
	}
	return p.put(text)
}

func (p *peeked) put(text []byte) (entry, error) {
	if p.size += int64(len(text)); p.size > maxDocuments {
		return entry{}, exceeds("indexes, manifests and configurations have more than %d bytes in all", maxDocuments)
	}
	sum := digest.FromBytes(text)
	p.documents[sum] = text
	return entry{Descriptor: ocispec.Descriptor{Digest: sum, Size: int64(len(text))}}, nil
}

// ReaderAt implements [content.Provider].
func (p *peeked) ReaderAt(_ context.Context, d ocispec.Descriptor) (content.ReaderAt, error) {
	text, ok := p.documents[d.Digest]
	if !ok {
		return nil, fmt.Errorf("content %s: %w", d.Digest, errdefs.ErrNotFound)
	}
	return document{bytes.NewReader(text)}, nil
}

// document is the content of a document.
type document struct{ *bytes.Reader }

// Close implements [content.ReaderAt].
func (document) Close() error { return nil }
