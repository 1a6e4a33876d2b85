package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/podstead/podstead/internal/atomicfile"
)

// Dir is a directory with files of a format, whose content is a T. It keeps the fields that a later version added. It is safe for
// concurrent use, but calls for one name must not be concurrent. Each call may block for as long as the disk does.
type Dir[T any] struct {
	format Format
	dir    string

	mu      sync.Mutex
	unknown map[string]Unknown
}

// NewDir returns a directory, which need not exist yet.
func NewDir[T any](format Format, dir string) *Dir[T] {
	return &Dir[T]{format: format, dir: dir, unknown: map[string]Unknown{}}
}

// File is a file of a [Dir].
type File[T any] struct {
	Name  string // without extension
	Path  string // after Load, which may have renamed the file
	Value T      // the zero value with an error
	Err   error  // matches [ErrNewer] for a file of a later version; any other is of a file that cannot be read or is damaged
	Text  []byte // what there is, with an error
}

// Load reads all files, and removes what interrupted writes have left. The function says whether a content can be that of the name. Files
// that cannot be used are set aside if the format has a name for that. Beside an error it returns what could be read, and sets nothing
// aside: a caller that tries again finds the same files.
func (d *Dir[T]) Load(check func(name string, v *T) error) (files []File[T], err error) {
	err = atomicfile.Sweep(d.dir)
	entries, listErr := os.ReadDir(d.dir)
	for _, entry := range entries {
		if name, is := strings.CutSuffix(entry.Name(), ".json"); is && entry.Type().IsRegular() {
			files = append(files, d.read(name, check, err == nil && listErr == nil))
		}
	}
	return files, errors.Join(err, listErr)
}

func (d *Dir[T]) read(name string, check func(name string, v *T) error, setAside bool) File[T] {
	f := File[T]{Name: name, Path: d.Path(name)}
	text, err := os.ReadFile(f.Path)
	var v T
	var unknown Unknown
	if err == nil {
		unknown, err = d.format.Decode(text, &v)
	}
	if err == nil {
		err = check(name, &v)
	}
	if err == nil {
		f.Value = v
		d.mu.Lock()
		d.unknown[name] = unknown
		d.mu.Unlock()
		return f
	}
	if setAside && d.format.Aside != "" && !errors.Is(err, ErrNewer) {
		aside, renameErr := d.format.SetAside(f.Path)
		f.Path, err = aside, errors.Join(err, renameErr)
	}
	f.Err, f.Text = err, text
	return f
}

// Path returns the path of the file of a name.
func (d *Dir[T]) Path(name string) string { return filepath.Join(d.dir, name+".json") }

// Make creates the directory.
func (d *Dir[T]) Make() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("create directory of state: %w", err)
	}
	return nil
}

// Save replaces the file of a name. The directory must exist.
func (d *Dir[T]) Save(name string, v *T) error {
	d.mu.Lock()
	unknown := d.unknown[name]
	d.mu.Unlock()
	return d.format.Write(d.Path(name), v, unknown)
}

// Forget drops the fields that a later version added to the file of a name.
func (d *Dir[T]) Forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.unknown, name)
}

// Delete removes the file of a name, and one that was set aside, which may contain secrets. It succeeds if there is none.
func (d *Dir[T]) Delete(name string) error {
	d.Forget(name)
	if d.format.Aside != "" {
		if err := os.Remove(d.Path(name) + d.format.Aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if d.format.Loss == Durable {
		return atomicfile.Remove(d.Path(name))
	}
	if err := os.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
