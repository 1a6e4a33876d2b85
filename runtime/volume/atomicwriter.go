package volume

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// File is one file of a volume.
type File struct {
	Content []byte
	Mode    fs.FileMode
}

// Files is the whole content of a volume, by clean relative path.
type Files map[string]File

// The layout is that of the kubelet's AtomicWriter: files are links into ..data, which is a link to the directory of the
// last update and is replaced by rename.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	stampFormat = "..2006_01_02_15_04_05."
)

// check reports paths that lead out of the volume or use reserved names.
func (f Files) check() error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		switch {
		case !fs.ValidPath(name) || name == "." || len(name) > 4096:
			return fmt.Errorf("invalid path: %q", name)
		case strings.HasPrefix(name, ".."):
			return fmt.Errorf("invalid path: must not start with '..': %s", name)
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, taken := f[dir]; taken {
				return fmt.Errorf("invalid path: %s is both a file and the directory of %s", dir, name)
			}
		}
	}
	return nil
}

// topNames returns the first elements of all paths, which are visible in the volume's directory.
func (f Files) topNames() map[string]bool {
	names := map[string]bool{}
	for name := range f {
		top, _, _ := strings.Cut(name, "/")
		names[top] = true
	}
	return names
}

// Writer writes volumes owned by root. Containers mount them read-only.
type Writer struct {
	GID *int64 // fsGroup, or nil
}

// fileMode returns the mode of a file.
func (w Writer) fileMode(mode fs.FileMode) fs.FileMode {
	if w.GID == nil {
		return mode
	}
	return mode | groupRead
}

func (w Writer) dirMode() fs.FileMode {
	if w.GID == nil {
		return 0o755
	}
	return fs.ModeSetgid | 0o755 | groupRead | groupEnter
}

// Write replaces the files in dir atomically: a reader sees all old files or all new ones. It can be interrupted and
// repeated. It reports whether the files have changed.
func (w Writer) Write(dir string, content Files) (changed bool, err error) {
	if err := content.check(); err != nil {
		return false, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	if err := w.setOwnership(root, ".", w.dirMode()); err != nil {
		return false, err
	}
	stamp, err := root.Readlink(dataLink)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := sweep(root, stamp); err != nil { // frees the space used by an interrupted update
		return false, err
	}
	if stamp == "" || !w.same(root, stamp, content) {
		changed = true
		if stamp, err = w.swap(root, content); err != nil {
			return false, err
		}
	}
	return changed, errors.Join(link(root, content.topNames()), sweep(root, stamp))
}

// swap writes the files into a new directory and replaces the link. After an error it removes the new directory.
func (w Writer) swap(root *os.Root, content Files) (string, error) {
	stamp := time.Now().UTC().Format(stampFormat) + rand.Text()[:10]
	if err := w.fill(root, stamp, content); err != nil {
		return "", errors.Join(err, root.RemoveAll(stamp))
	}
	return stamp, nil
}

func (w Writer) fill(root *os.Root, stamp string, content Files) error {
	if err := w.mkdir(root, stamp); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if err := w.writeFile(root, stamp, name, content[name]); err != nil {
			return err
		}
	}
	if err := root.Symlink(stamp, newDataLink); err != nil {
		return err
	}
	return root.Rename(newDataLink, dataLink)
}

func (w Writer) writeFile(root *os.Root, stamp, name string, f File) error {
	dir := stamp
	parts := strings.Split(name, "/")
	for _, part := range parts[:len(parts)-1] {
		dir = path.Join(dir, part)
		if err := w.mkdir(root, dir); err != nil {
			return err
		}
	}
	name = path.Join(stamp, name)
	if err := root.WriteFile(name, f.Content, 0o600); err != nil {
		return err
	}
	return w.setOwnership(root, name, w.fileMode(f.Mode))
}

func (w Writer) mkdir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil {
		return ignore(err, fs.ErrExist)
	}
	return w.setOwnership(root, name, w.dirMode())
}

// setOwnership sets group and mode independently of the umask.
func (w Writer) setOwnership(root *os.Root, name string, mode fs.FileMode) error {
	if w.GID != nil {
		if err := root.Lchown(name, -1, int(*w.GID)); err != nil {
			return err
		}
	}
	return root.Chmod(name, mode)
}

// same reports whether a directory contains exactly these files, with their modes and group.
func (w Writer) same(root *os.Root, stamp string, content Files) bool {
	found := 0
	err := fs.WalkDir(root.FS(), stamp, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, ok := content[strings.TrimPrefix(name, stamp+"/")]
		if !ok || !w.sameFile(root, name, want) {
			return fs.ErrInvalid
		}
		found++
		return nil
	})
	return err == nil && found == len(content)
}

func (w Writer) sameFile(root *os.Root, name string, want File) bool {
	info, err := root.Lstat(name)
	if err != nil || info.Mode() != w.fileMode(want.Mode) || info.Size() != int64(len(want.Content)) {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); w.GID != nil && (!ok || int64(stat.Gid) != *w.GID) {
		return false
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a container may hold a lease; then the file is replaced
	if err != nil {
		return false
	}
	defer f.Close()
	have, err := io.ReadAll(io.LimitReader(f, int64(len(want.Content))+1))
	return err == nil && bytes.Equal(have, want.Content)
}

// sweep removes the directories of old and interrupted updates.
func sweep(root *os.Root, stamp string) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, "..") || name == dataLink || name == stamp {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// link creates the visible links and removes obsolete ones. A directory that was created for a subPath without a file
// stays until its name is needed, as in the kubelet.
func link(root *os.Root, topNames map[string]bool) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "..") {
			continue
		}
		target, err := root.Readlink(name)
		ours := err == nil && target == path.Join(dataLink, name)
		if ours == topNames[name] {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(topNames)) {
		if err := ignore(root.Symlink(path.Join(dataLink, name), name), fs.ErrExist); err != nil {
			return err
		}
	}
	return nil
}

// written reports whether files were written to dir.
func written(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, dataLink))
	return err == nil
}

// groupRead is added for the fsGroup to the permissions of files.
const groupRead = 0o440
