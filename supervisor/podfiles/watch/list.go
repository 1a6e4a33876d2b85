// Package watch lists the pods directory, and notices its changes. It does not parse files, and writes nothing.
package watch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/spec"
)

const (
	// MaxFiles is the maximum number of pod files in a directory. The first ones by name count.
	MaxFiles = 1024
	// maxEntries is the maximum number of entries of a directory, pod files or not.
	maxEntries = 16 * MaxFiles
	// racy is the age of a change from which on the times of a file identify its content: two changes within one tick of the file system
	// have the same time. It is that of FAT, the coarsest one.
	racy = 2 * time.Second
)

// ID identifies a directory, whatever its path.
type ID struct{ dev, inode uint64 }

// File is a pod file.
type File struct {
	Name string // in the directory
	// Text is the content; nil: it has not changed since the listing before.
	Text []byte
	// Err is why the content cannot be read. The file may be a link to a file that does not exist.
	Err error
	// Changed is the time of the newest change of the content, the owner or the mode. Links count as what they point to.
	Changed time.Time
}

// Listing is the content of a directory at one moment.
type Listing struct {
	ID    ID
	Files []File // sorted by name
	// Omitted are the names of the files beyond [MaxFiles].
	Omitted []string
}

// Dir is a directory that is listed repeatedly. It is not safe for concurrent use.
type Dir struct {
	path string
	read map[string]stamp // by name of the file: what was read last
	now  func() time.Time
}

// stamp identifies the content of a file.
type stamp struct {
	id       ID
	size     int64
	modified unix.Timespec
	changed  unix.Timespec
}

// NewDir returns a directory, which need not exist.
func NewDir(path string) *Dir {
	return &Dir{path: path, read: map[string]stamp{}, now: time.Now}
}

// List lists the pod files. The directory is opened once, so that a link to it that is swapped meanwhile has no effect. Links that are
// files in the directory are followed.
func (d *Dir) List() (Listing, error) {
	f, err := os.OpenFile(d.path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Listing{}, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Listing{}, &os.PathError{Op: "stat", Path: d.path, Err: err}
	}
	entries, err := f.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return Listing{}, fmt.Errorf("read directory %s: %w", d.path, err)
	}
	if len(entries) > maxEntries {
		return Listing{}, fmt.Errorf("read directory %s: more than %d entries", d.path, maxEntries)
	}
	l := Listing{ID: idOf(&st)}
	names := podFiles(entries)
	if len(names) > MaxFiles {
		names, l.Omitted = names[:MaxFiles], names[MaxFiles:]
	}
	read := map[string]stamp{}
	for _, name := range names {
		file, stamp, ok := d.file(f, name)
		if !ok {
			continue
		}
		l.Files = append(l.Files, file)
		if stamp != nil {
			read[name] = *stamp
		}
	}
	d.read = read
	return l, nil
}

// Forget makes the next listing read a file, whether or not it has changed.
func (d *Dir) Forget(name string) { delete(d.read, name) }

// file reads a file if it has changed. It returns no stamp if a later change could have the same one, and false if the file is a directory
// or was removed meanwhile.
func (d *Dir) file(dir *os.File, name string) (File, *stamp, bool) {
	file := File{Name: name}
	path := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name) // openat(2), for code that takes a path
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if err != nil {
		var link unix.Stat_t
		if errors.Is(err, unix.ENOENT) && errors.Is(unix.Lstat(path, &link), unix.ENOENT) {
			return File{}, nil, false
		}
		file.Err = &os.PathError{Op: "read", Path: filepath.Join(d.path, name), Err: err}
		return file, nil, true
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return File{}, nil, false
	}
	now := stamp{id: idOf(&st), size: st.Size, modified: st.Mtim, changed: st.Ctim}
	file.Changed = time.Unix(st.Ctim.Unix())
	if before, ok := d.read[name]; ok && before == now {
		return file, &now, true
	}
	if file.Text, err = spec.ReadPodFile(path); err != nil {
		file.Text, file.Err = nil, d.withPath(err, name)
		return file, nil, true
	}
	if file.Text == nil {
		file.Text = []byte{}
	}
	if d.now().Sub(file.Changed) < racy {
		return file, nil, true
	}
	return file, &now, true
}

// withPath replaces the path through the descriptor by the path that people know.
func (d *Dir) withPath(err error, name string) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return &os.PathError{Op: "read", Path: filepath.Join(d.path, name), Err: err}
}

func idOf(st *unix.Stat_t) ID {
	return ID{dev: uint64(st.Dev), inode: st.Ino} //nolint:unconvert // of another type on other architectures
}

func podFiles(entries []fs.DirEntry) []string {
	var names []string
	for _, e := range entries {
		if IsPodFile(e.Name()) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// IsPodFile reports whether a file of a name is a pod file. Hidden files, and the backup and temporary files of editors are not.
func IsPodFile(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, filepath.Ext(name))
}
