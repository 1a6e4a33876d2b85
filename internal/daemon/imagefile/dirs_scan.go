package imagefile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/podstead/podstead/runtime/image/signature"
)

const (
	// maxArchives bounds the archives of a directory. The first ones by name count.
	maxArchives = 1024
	// maxLayoutFiles bounds the files of a directory in the OCI layout.
	maxLayoutFiles = 100_000
)

// extensions are the ends of the names of image archives.
var extensions = []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".oci"}

// isArchive reports whether a file of a name is an image archive. Hidden files are not: programs that copy files give them such names until
// they are complete.
func isArchive(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	for _, e := range extensions {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}

// foundArchive is an archive in a directory.
type foundArchive struct {
	path   string
	origin string // identifies its state
	size   int64
	// changed is the time of the newest change of its files.
	changed time.Time
}

// listArchives returns the archives of a directory, sorted by name. A directory that does not exist has none.
func listArchives(dir string) ([]foundArchive, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var archives []foundArchive
	for _, e := range entries {
		if len(archives) == maxArchives {
			break
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // links count as what they point to
		if err != nil {
			continue // it was removed, or is a link to nothing
		}
		switch {
		case info.IsDir():
			if f, ok := layoutOf(path); ok && !strings.HasPrefix(e.Name(), ".") {
				archives = append(archives, f)
			}
		case info.Mode().IsRegular() && isArchive(e.Name()):
			h := sha256.New()
			changed := stamp(h, path, info)
			stampSignatures(h, path)
			archives = append(archives, foundArchive{path, fmt.Sprintf("%x", h.Sum(nil)), info.Size(), changed})
		}
	}
	return archives, nil
}

// stamp identifies the state of a file without reading it, and returns the inode's change time. It includes that time, which cannot be set
// back.
func stamp(w io.Writer, path string, info fs.FileInfo) (changed time.Time) {
	fmt.Fprintf(w, "%s\x00%d\x00%d\x00", path, info.Size(), info.ModTime().UnixNano())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		fmt.Fprint(w, st.Dev, st.Ino, st.Ctim, "\x00")
		return time.Unix(st.Ctim.Unix())
	}
	return info.ModTime()
}

// stampSignatures includes the signatures beside an archive: one that arrives later is a reason to try again.
func stampSignatures(w io.Writer, path string) {
	for _, suffix := range signature.Suffixes() {
		if beside, err := os.Stat(path + suffix); err == nil {
			stamp(w, path+suffix, beside)
		}
	}
}

// layoutOf returns a directory in the OCI layout, and false for any other directory.
func layoutOf(dir string) (foundArchive, bool) {
	if _, err := os.Lstat(filepath.Join(dir, "oci-layout")); err != nil {
		return foundArchive{}, false
	}
	f, h := foundArchive{path: dir}, sha256.New()
	if err := f.walk(h); err != nil {
		fmt.Fprint(h, err) // importing it reports the error
	}
	stampSignatures(h, dir)
	f.origin = fmt.Sprintf("%x", h.Sum(nil))
	return f, true
}

func (f *foundArchive) walk(h hash.Hash) error {
	files := 0
	return filepath.WalkDir(f.path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if files++; files > maxLayoutFiles {
			return fmt.Errorf("more than %d files", maxLayoutFiles)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if changed := stamp(h, path, info); changed.After(f.changed) {
			f.changed = changed
		}
		f.size += info.Size()
		return nil
	})
}
