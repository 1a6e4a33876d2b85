package state

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
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Dir is a [Store] with one JSON file per pod in a directory.
type Dir struct{ dir string }

// NewDir returns a store in the directory, which it creates if needed.
func NewDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create state directory: %w", err)
	}
	return &Dir{dir: dir}, nil
}

func (d *Dir) path(name string) string { return d.file(spec.FileName(name)) }

// file returns the path of a [spec.FileName].
func (d *Dir) file(name string) string { return filepath.Join(d.dir, name+".json") }

// unreadableSuffix is added to the name of a file that cannot be parsed.
const unreadableSuffix = ".unreadable"

// Load implements [Store]. It renames files that cannot be parsed, so that the next Save of the same name does not overwrite them.
func (d *Dir) Load() (pods []Pod, unusable []Unusable, err error) {
	if err := atomicfile.Sweep(d.dir); err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read state directory: %w", err)
	}
	for _, entry := range entries {
		name, isState := strings.CutSuffix(entry.Name(), ".json")
		if !isState || !entry.Type().IsRegular() {
			continue
		}
		p, err := d.read(name)
		switch {
		case errors.Is(err, errLater):
			unusable = append(unusable, Unusable{Name: d.podName(name), UID: p.Facts.UID, File: d.file(name), Err: err, Kept: true})
		case err != nil:
			pod, renamed := d.podName(name), d.file(name)+unreadableSuffix
			err = errors.Join(err, os.Rename(d.file(name), renamed))
			unusable = append(unusable, Unusable{Name: pod, File: renamed, Err: err})
		default:
			pods = append(pods, p)
		}
	}
	return pods, unusable, nil
}

// podName returns the name of the pod of a file that cannot be used. Only a long name is not that of the file.
func (d *Dir) podName(name string) string {
	var p struct {
		Pod struct {
			Name string `json:"name"`
		} `json:"pod"`
	}
	data, err := os.ReadFile(d.file(name))
	if err != nil || json.Unmarshal(data, &p) != nil || spec.FileName(p.Pod.Name) != name {
		return name
	}
	return p.Pod.Name
}

var errLater = errors.New("written by a later version")

// read reads the state file of a pod. Of a later version it returns at most the UID, and [errLater].
func (d *Dir) read(name string) (Pod, error) {
	data, err := os.ReadFile(d.file(name))
	if err != nil {
		return Pod{}, err
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Pod{}, err
	}
	if head.Version > version {
		var later struct {
			Facts struct {
				UID string `json:"uid"`
			} `json:"facts"`
		}
		_ = json.Unmarshal(data, &later) // the format may differ: the UID may be missing
		return Pod{Facts: lifecycle.Facts{UID: later.Facts.UID}}, fmt.Errorf("%w: the file has version %d, at most %d is supported", errLater, head.Version, version)
	}
	var p Pod
	if err := json.Unmarshal(data, &p); err != nil {
		return Pod{}, err
	}
	if p.Version < 1 || p.Pod == nil || spec.FileName(p.Pod.Name) != name || p.Facts.UID == "" || p.SavedAt.IsZero() {
		return Pod{}, fmt.Errorf("not the state of pod %q", name)
	}
	p.Pod, p.Secrets = p.Pod.WithSecretValues(p.Secrets), nil
	return p, nil
}

// Save implements [Store].
func (d *Dir) Save(p Pod) error {
	p.Version, p.Secrets = version, p.Pod.SecretValues()
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return atomicfile.Write(d.path(p.Pod.Name), data, 0o600)
}

// Delete implements [Store]. It also removes a file that was renamed because it could not be parsed: it may contain secrets.
func (d *Dir) Delete(name string) error {
	if err := os.Remove(d.path(name) + unreadableSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Remove(d.path(name))
}
