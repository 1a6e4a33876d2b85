package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/spec"
)

// Dir is a [Store] with one JSON file per pod in a directory.
type Dir struct {
	files *statefile.Dir[Pod]

	mu     sync.Mutex
	loaded map[string]string // UIDs of pods whose file was read, by the name of the pod
}

// NewDir returns a store in the directory, which it creates if needed.
func NewDir(dir string) (*Dir, error) {
	d := &Dir{files: statefile.NewDir[Pod](Format, dir), loaded: map[string]string{}}
	return d, d.files.Make()
}

// Load implements [Store]. It renames files that cannot be parsed, so that the next Save of the same name does not overwrite them. Fields
// that a later version added are written back by Save.
func (d *Dir) Load() (pods []Pod, unusable []Unusable, err error) {
	files, err := d.files.Load(check)
	if err != nil {
		return nil, nil, fmt.Errorf("read state directory: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range files {
		f := &files[i]
		if f.Err != nil {
			name, uid := owner(f.Name, f.Text)
			u := Unusable{Name: name, File: f.Path, Err: f.Err, Kept: errors.Is(f.Err, statefile.ErrNewer)}
			if u.Kept {
				u.UID = uid
			}
			unusable = append(unusable, u)
			continue
		}
		p := f.Value
		d.loaded[p.Pod.Name] = p.Facts.UID
		p.Pod, p.Secrets = p.Pod.WithSecretValues(p.Secrets), nil
		pods = append(pods, p)
	}
	return pods, unusable, nil
}

func check(name string, p *Pod) error {
	if p.Pod == nil || spec.FileName(p.Pod.Name) != name || p.Facts.UID == "" || p.SavedAt.IsZero() {
		return fmt.Errorf("not the state of pod %q", name)
	}
	for container, c := range p.Facts.Containers {
		if c == nil {
			return fmt.Errorf("facts.containers[%q]: Required value", container)
		}
	}
	return nil
}

// owner returns the name and the UID of the pod of a file that cannot be used. Only a long name is not that of the file. The format of a
// later version may differ: the UID may be missing.
func owner(file string, text []byte) (name, uid string) {
	var p struct {
		Pod struct {
			Name string `json:"name"`
		} `json:"pod"`
	}
	var facts struct {
		Facts struct {
			UID string `json:"uid"`
		} `json:"facts"`
	}
	_ = json.Unmarshal(text, &facts)
	if json.Unmarshal(text, &p) != nil || spec.FileName(p.Pod.Name) != file {
		return file, facts.Facts.UID
	}
	return p.Pod.Name, facts.Facts.UID
}

// Save implements [Store].
func (d *Dir) Save(p Pod) error {
	p.Secrets = p.Pod.SecretValues()
	name := spec.FileName(p.Pod.Name)
	d.mu.Lock()
	loaded := d.loaded[p.Pod.Name]
	d.mu.Unlock()
	if loaded != p.Facts.UID { // another pod of the same name
		d.files.Forget(name)
	}
	return d.files.Save(name, &p)
}

// Delete implements [Store]. It also removes a file that was renamed because it could not be parsed: it may contain secrets.
func (d *Dir) Delete(name string) error { return d.files.Delete(spec.FileName(name)) }
