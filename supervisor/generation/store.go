package generation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/spec"
)

// version is the version of the files that this binary writes.
const version = 1

// Dir stores histories, one JSON file per pod in a directory. Its calls may block for as long as the disk does. They must not be concurrent.
type Dir struct {
	dir string
	// later are the names of files of a later version. They are never changed.
	later map[string]bool
}

// NewDir returns a store in a directory, which it creates when the first history is saved.
func NewDir(dir string) *Dir { return &Dir{dir: dir, later: map[string]bool{}} }

// file is the content of a file.
type file struct {
	Version int `json:"version"`
	*History
}

// unreadableSuffix is added to the name of a file that cannot be parsed.
const unreadableSuffix = ".unreadable"

// Load returns all histories by name of the pod. It renames files that cannot be parsed, and leaves those of a later version; problems has an
// error for each.
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
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if head.Version > version {
		d.later[name] = true
		return nil, fmt.Errorf("%s was written by a later version: it has version %d, at most %d is supported", d.path(name), head.Version, version)
	}
	f := file{History: &History{}}
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Version < 1 || f.Pod == "" || spec.FileName(f.Pod) != name || f.Instead != nil && (f.Find(f.Instead.Number) == nil || f.Instead.Definition == nil) {
		return nil, fmt.Errorf("not the generations of pod %q", name)
	}
	return f.History, nil
}

// Save replaces the history of a pod. It is durable when Save returns.
func (d *Dir) Save(h *History) error {
	name := spec.FileName(h.Pod)
	if d.later[name] {
		return nil
	}
	text, err := json.Marshal(file{version, h})
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
	if err := os.Remove(d.path(name) + unreadableSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Remove(d.path(name))
}
