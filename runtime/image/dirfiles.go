package image

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
)

// Archives in the image directories are imported for all pods. Each has records of its own, which keep its images and remember the state of
// the file. In addition, its names are names that all pods see, as those of pulled images. A pull or an import by hand can replace these
// names until the file changes.

const (
	// filePrefix starts the names of the records of archives in the image directories.
	filePrefix = "file/"
	// labelFile is the path of the archive, on its records and on the names that refer to its images.
	labelFile = "podstead.io/image-file"
	// labelPublished marks a record of an archive whose name was given to all pods. Its value is the fingerprint of the file.
	labelPublished = "podstead.io/image-file-published"
)

// DirFile is an archive in an image directory.
type DirFile struct {
	Path string
	// Origin identifies the state of the file. An archive that was imported in this state is not read again.
	Origin string
	// Size is that of the file in bytes.
	Size int64
	// Pending is true for an archive that will be imported. A pod whose image is not present waits for it instead of pulling the image, as
	// long as the import progresses.
	Pending bool
}

func (f *DirFile) archive() archive {
	return archive{records: fmt.Sprintf("%s%x/", filePrefix, sha256.Sum256([]byte(f.Path))), origin: f.Origin, size: f.Size, path: f.Path}
}

// dirFiles are the archives that are in the image directories now. The zero value is usable.
type dirFiles struct {
	mu      sync.Mutex
	list    []DirFile // by precedence, the highest last
	changed chan struct{}
	publish sync.Mutex // held while names are given to all pods
	stall   stall
}

// SetFiles sets which archives are in the image directories, by precedence: of two with the same name of an image, the later one counts.
func (s *Store) SetFiles(list []DirFile) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	s.files.list = slices.Clone(list)
	if !slices.ContainsFunc(list, func(f DirFile) bool { return f.Pending }) {
		s.files.stall.at = ""
	}
	if s.files.changed != nil {
		close(s.files.changed)
		s.files.changed = nil
	}
}

func (f *dirFiles) now() []DirFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list
}

// pending returns the archives that will be imported, and a channel that is closed at the next change.
func (f *dirFiles) pending() (list []DirFile, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	for i := range f.list {
		if f.list[i].Pending {
			list = append(list, f.list[i])
		}
	}
	return list, f.changed
}

// ImportDirFile imports an archive of an image directory, unless it was imported in this state, and gives its names to all pods. open opens
// the archive; it is not called if the archive need not be read. It returns whether the archive was read. The error is an *Error or that of
// ctx.
func (s *Store) ImportDirFile(ctx context.Context, f DirFile, open func() (io.ReadCloser, error)) (list []Image, read bool, err error) {
	list, read, err = s.importDirFile(ctx, f, open)
	if err == nil {
		err = s.PublishFiles(ctx)
	}
	if err != nil {
		return nil, read, fail(ctx, ReasonPull, "import image archive", f.Path, err)
	}
	return list, read, nil
}

func (s *Store) importDirFile(ctx context.Context, f DirFile, open func() (io.ReadCloser, error)) (list []Image, read bool, err error) {
	a := f.archive()
	unlock, err := s.archives.Lock(ctx, a.records)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	if list, err := s.imported(ctx, a); err != nil || len(list) > 0 {
		return list, false, err
	}
	r, err := open()
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	list, err = s.load(ctx, r, a)
	return list, true, err
}

// PublishFiles gives the names in the imported archives of the image directories to all pods, and releases the images of archives that are
// not in the directories any more: their names remain until nothing uses them.
func (s *Store) PublishFiles(ctx context.Context) error {
	s.files.publish.Lock()
	defer s.files.publish.Unlock()
	records, err := s.fileRecords(ctx)
	if err != nil {
		return err
	}
	names := map[string]fileRecord{}
	for _, r := range records {
		if r.file == nil {
			if err := s.client.ImageService().Delete(ctx, r.Name); err != nil && !errdefs.IsNotFound(err) {
				return err
			}
			continue
		}
		if name := imageName(r.Name); names[name].file == nil || names[name].rank < r.rank {
			names[name] = r
		}
	}
	for name, r := range names {
		if err := s.publishName(ctx, name, r); err != nil {
			return err
		}
	}
	return nil
}

// fileRecord is a record of an archive in an image directory.
type fileRecord struct {
	images.Image
	file *DirFile // nil: the archive is gone
	rank int      // its precedence
}

func (s *Store) fileRecords(ctx context.Context) ([]fileRecord, error) {
	all, err := s.client.ImageService().List(ctx, fmt.Sprintf("labels.%q", labelArchive))
	if err != nil {
		return nil, err
	}
	return recordsOfFiles(all, s.files.now()), nil
}

func recordsOfFiles(all []images.Image, files []DirFile) (list []fileRecord) {
	for _, rec := range all {
		if !strings.HasPrefix(rec.Name, filePrefix) {
			continue
		}
		r := fileRecord{Image: rec}
		for i := range files {
			if strings.HasPrefix(rec.Name, files[i].archive().records) {
				r.file, r.rank = &files[i], i
			}
		}
		list = append(list, r)
	}
	return list
}

// publishName makes a name that all pods see refer to the image of an archive, unless a person or a pull has replaced the name since the
// archive was imported.
func (s *Store) publishName(ctx context.Context, name string, r fileRecord) error {
	is := s.client.ImageService()
	origin, _, _ := strings.Cut(r.Labels[labelArchive], "/")
	old, err := is.Get(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	exists := err == nil
	published := r.Labels[labelPublished] == origin
	_, fromFile := old.Labels[labelFile]
	switch {
	case exists && !fromFile && published:
		return nil
	case exists && fromFile && old.Target.Digest == r.Target.Digest && old.Labels[labelFile] == r.file.Path && published:
		return nil
	}
	labels := map[string]string{labelArchive: "image directory", labelFile: r.file.Path}
	if _, err := s.name(ctx, images.Image{Name: name, Target: r.Target, Labels: labels}); err != nil {
		return err
	}
	r.Labels[labelPublished] = origin
	_, err = is.Update(ctx, r.Image, "labels")
	return err
}

// heldBy returns the records that are in archives of the image directories now, with the path of the archive: those of the archives, and
// the names that all pods see as long as they refer to the same image.
func heldBy(all []images.Image, files []DirFile) map[string]string {
	held := map[string]string{}
	targets := map[string]string{} // of names in archives, with the digest: the path
	for _, r := range recordsOfFiles(all, files) {
		if r.file != nil {
			held[r.Name] = r.file.Path
			targets[imageName(r.Name)+"\x00"+r.Target.Digest.String()] = r.file.Path
		}
	}
	for _, rec := range all {
		if path := targets[rec.Name+"\x00"+rec.Target.Digest.String()]; path != "" {
			held[rec.Name] = path
		}
	}
	return held
}
