package podfiles

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/diskcall"
	"github.com/podstead/podstead/spec"
)

// fileMode is the mode of files that clients apply. Commands and environment variables may contain passwords, and only the daemon reads
// them.
const fileMode fs.FileMode = 0o600

// existing is a file that is about to be overwritten or removed, as it is at this moment.
type existing struct {
	path string
	link string // what it points to; empty: it is no link
	text []byte // nil: it cannot be read
}

// checkOverwrite returns why the files that an applied text replaces must be kept. A file that was saved a moment ago is not in the listing
// yet, and may define another pod. A link leads to a file elsewhere, and the next change of that file would be lost.
// s.turn must be held.
func (s *Set) checkOverwrite(ctx context.Context, pod, path string, text []byte, replaced []string) error {
	paths := append(slices.Clone(replaced), path)
	found, err := diskcall.Do(context.WithoutCancel(ctx), s.disk, func() ([]existing, error) { return inspect(paths) })
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.link != "" && (f.path != path || string(f.text) != string(text)) {
			err := conflictf("file %s is a symbolic link to %s", f.path, f.link)
			err.Hint = "change " + f.link + ", or remove the link"
			return err
		}
		if known := s.world.contents[f.path]; f.text == nil || known != nil && known.digest == sha256.Sum256(f.text) {
			continue
		}
		c, err := s.accept(ctx, f.path, f.text)
		if err != nil {
			return err
		}
		if c.pod != nil && c.pod.Name != pod {
			return conflictf("file %s defines pod %q", f.path, c.pod.Name)
		}
	}
	return nil
}

// inspect returns those of some files that exist.
func inspect(paths []string) ([]existing, error) {
	var found []existing
	for _, path := range paths {
		info, err := os.Lstat(path)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := existing{path: path}
		if info.Mode()&fs.ModeSymlink != 0 {
			if f.link, err = os.Readlink(path); err != nil {
				return nil, err
			}
		}
		f.text, _ = spec.ReadPodFile(path) // the listing reports the error
		found = append(found, f)
	}
	return found, nil
}

// write writes a file, unless it has that text, and removes the files that it replaces. A link with that text is kept.
func write(path string, text []byte, replaced []string) error {
	before, info, err := spec.ReadFile(path, int64(len(text)))
	if err != nil || string(before) != string(text) || info.Mode().Perm()&^fileMode != 0 && !isLink(path) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(path, text, fileMode); err != nil {
			return err
		}
	}
	return removeFiles(replaced)
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
