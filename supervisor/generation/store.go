package generation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/format"
	"github.com/podstead/podstead/spec"
)

// Format is that of the file of a [History].
var Format = format.Format{Version: 1}

// Dir stores histories, one JSON file per pod in a directory. Its calls may block for as long as the disk does. They must not be
// concurrent.
type Dir struct {
	dir string
	// later are the names of files that only a later version understands. They are never changed.
	later map[string]bool
	// unknown are the fields that a later version added, by name of the file.
	unknown map[string]format.Unknown
}

// NewDir returns a store in a directory, which it creates when the first history is saved.
func NewDir(dir string) *Dir {
	return &Dir{dir: dir, later: map[string]bool{}, unknown: map[string]format.Unknown{}}
}

// unreadableSuffix is added to the name of a file that cannot be parsed.
const unreadableSuffix = ".unreadable"

// Load returns all histories by name of the pod. It renames files that cannot be parsed, and leaves those of a later version; problems has
// an error for each.
func (d *Dir) Load() (histories map[string]*History, problems []error, err error) {
	histories = map[string]*History{}
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return histories, nil, nil
	}
	if err == nil {
		err = atomicfile.Sweep(d.dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read generations: %w", err)
	}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		h, err := d.read(name)
		switch {
		case d.later[name]:
			problems = append(problems, err)
		case err != nil:
			path := d.path(name)
			problems = append(problems, errors.Join(fmt.Errorf("read %s, renamed to %s: %w", path, path+unreadableSuffix, err), os.Rename(path, path+unreadableSuffix)))
		default:
			histories[h.Pod] = h
		}
	}
	return histories, problems, nil
}

func (d *Dir) path(name string) string { return filepath.Join(d.dir, name+".json") }

func (d *Dir) read(name string) (*History, error) {
	text, err := os.ReadFile(d.path(name))
	if err != nil {
		return nil, err
	}
	var h History
	unknown, err := Format.Decode(text, &h)
	if errors.Is(err, format.ErrNewer) {
		d.later[name] = true
		return nil, fmt.Errorf("read %s: %w", d.path(name), err)
	}
	if err != nil {
		return nil, err
	}
	if h.Pod == "" || spec.FileName(h.Pod) != name || h.Instead != nil && (h.Find(h.Instead.Number) == nil || h.Instead.Definition == nil) {
		return nil, fmt.Errorf("not the generations of pod %q", name)
	}
	d.unknown[name] = unknown
	return &h, nil
}

// Save replaces the history of a pod, and keeps fields that a later version added to the file. It is durable when Save returns.
func (d *Dir) Save(h *History) error {
	name := spec.FileName(h.Pod)
	if d.later[name] {
		return nil
	}
	text, err := Format.Encode(h, d.unknown[name])
	if err != nil {
		return fmt.Errorf("encode generations: %w", err)
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fmt.Errorf("create directory of generations: %w", err)
	}
	return atomicfile.Write(d.path(name), text, 0o600)
}

// Delete removes the history of a pod. It succeeds if there is none.
func (d *Dir) Delete(pod string) error {
	name := spec.FileName(pod)
	if d.later[name] {
		return nil
	}
	delete(d.unknown, name)
	if err := os.Remove(d.path(name) + unreadableSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Remove(d.path(name))
}
