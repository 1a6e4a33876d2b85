package podfiles

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/spec"
)

// HistoryFormat is that of the file of a [History].
var HistoryFormat = statefile.Format{Version: 1, Aside: ".unreadable"}

// HistoryDir stores histories, one file per pod in a directory. Its calls may block for as long as the disk does. They must not be
// concurrent.
type HistoryDir struct {
	files *statefile.Dir[History]
	// later are the names of files that only a later version understands. They are never changed.
	later map[string]bool
}

// NewHistoryDir returns a store in a directory, which it creates when the first history is saved.
func NewHistoryDir(dir string) *HistoryDir {
	return &HistoryDir{files: statefile.NewDir[History](HistoryFormat, dir), later: map[string]bool{}}
}

// Load returns all histories by name of the pod. It renames files that cannot be parsed, and leaves those of a later version; problems has
// an error for each.
func (d *HistoryDir) Load() (histories map[string]*History, problems []error, err error) {
	histories = map[string]*History{}
	files, err := d.files.Load(checkHistory)
	if errors.Is(err, fs.ErrNotExist) {
		return histories, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read generations: %w", err)
	}
	for i := range files {
		f := &files[i]
		switch {
		case errors.Is(f.Err, statefile.ErrNewer):
			d.later[f.Name] = true
			problems = append(problems, fmt.Errorf("read %s: %w", f.Path, f.Err))
		case f.Err != nil:
			problems = append(problems, fmt.Errorf("read %s, renamed to %s: %w", d.files.Path(f.Name), f.Path, f.Err))
		default:
			histories[f.Value.Pod] = &f.Value
		}
	}
	return histories, problems, nil
}

func checkHistory(name string, h *History) error {
	if h.Pod == "" || spec.FileName(h.Pod) != name || h.Instead != nil && (h.Find(h.Instead.Number) == nil || h.Instead.Definition == nil) {
		return fmt.Errorf("not the generations of pod %q", name)
	}
	return nil
}

// Save replaces the history of a pod, and keeps fields that a later version added to the file. It is durable when Save returns.
func (d *HistoryDir) Save(h *History) error {
	name := spec.FileName(h.Pod)
	if d.later[name] {
		return nil
	}
	if err := d.files.Make(); err != nil {
		return err
	}
	return d.files.Save(name, h)
}

// Delete removes the history of a pod. It succeeds if there is none.
func (d *HistoryDir) Delete(pod string) error {
	name := spec.FileName(pod)
	if d.later[name] {
		return nil
	}
	return d.files.Delete(name)
}
