package atomicwriter

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
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

// file is one file of a volume that is written by us.
type File struct {
	Content []byte
	Mode    fs.FileMode
}

// files is the whole content of such a volume, by clean relative path.
type Files map[string]File

// The names in a volume that is written by us, which users know from Kubernetes: files are links into ..data, which is a
// link to the folder of the last update and changes in one step.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	stampFormat = "..2006_01_02_15_04_05."
)

// check refuses paths that lead out of the volume or take a name of ours.
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
				return fmt.Errorf("invalid path: %s is a file, and a folder for %s", dir, name)
			}
		}
	}
	return nil
}

// tops are the names that the files begin with: what a user sees in the volume's folder.
func (f Files) tops() map[string]bool {
	tops := map[string]bool{}
	for name := range f {
		top, _, _ := strings.Cut(name, "/")
		tops[top] = true
	}
	return tops
}

// writer writes volumes. Their folders belong to root; a container is shown them read-only.
type Writer struct {
	GID *int64 // the fsGroup, or nil
}

// fileMode and dirMode are what a file and a folder are given.
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

// write makes dir hold these files and no others, so that whoever reads sees all of the old ones or all of the new ones.
// It can be cut short anywhere and done again, and reports whether what a reader sees has changed.
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
	if err := w.own(root, ".", w.dirMode()); err != nil {
		return false, err
	}
	stamp, err := root.Readlink(dataLink)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := sweep(root, stamp); err != nil { // what a crash left takes room that is needed now
		return false, err
	}
	if stamp == "" || !w.same(root, stamp, content) {
		changed = true
		if stamp, err = w.swap(root, content); err != nil {
			return false, err
		}
	}
	return changed, errors.Join(link(root, content.tops()), sweep(root, stamp))
}

// swap writes the files into a new folder and lets the link lead there. After an error nothing is left of the new folder.
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
	return w.own(root, name, w.fileMode(f.Mode))
}

func (w Writer) mkdir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil {
		return ignoreExist(err)
	}
	return w.own(root, name, w.dirMode())
}

// own sets group and mode whatever the umask is.
func (w Writer) own(root *os.Root, name string, mode fs.FileMode) error {
	if w.GID != nil {
		if err := root.Lchown(name, -1, int(*w.GID)); err != nil {
			return err
		}
	}
	return root.Chmod(name, mode)
}

// same reports whether a folder holds exactly these files, with their modes and group.
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
	have, err := root.ReadFile(name)
	return err == nil && bytes.Equal(have, want.Content)
}

// sweep removes what is hidden from a user and not of the folder stamp: former updates, and those that were cut short.
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

// link makes the links that a user sees, and removes those of files that are gone. A folder that was made for a subPath
// which names no file stays until a file needs its name, as the kubelet leaves it.
func link(root *os.Root, tops map[string]bool) error {
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
		if ours == tops[name] {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tops)) {
		if err := ignoreExist(root.Symlink(path.Join(dataLink, name), name)); err != nil {
			return err
		}
	}
	return nil
}

func Written(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, dataLink))
	return err == nil
}

// ignoreExist returns err unless it is fs.ErrExist.
func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Permissions added for the fsGroup: to files, and to directories.
const (
	groupRead  = 0o440
	groupEnter = 0o110
)
