package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/format"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Dir is a [Store] with one JSON file per pod in a directory.
type Dir struct {
	dir string

	mu      sync.Mutex
	unknown map[string]unknownFields // by the name of the pod
}

// unknownFields are the fields that a later version added to the state file of a pod.
type unknownFields struct {
	uid    string
	fields format.Unknown
}

// NewDir returns a store in the directory, which it creates if needed.
func NewDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create state directory: %w", err)
	}
	return &Dir{dir: dir, unknown: map[string]unknownFields{}}, nil
}

func (d *Dir) path(name string) string { return d.file(spec.FileName(name)) }

// file returns the path of a [spec.FileName].
func (d *Dir) file(name string) string { return filepath.Join(d.dir, name+".json") }

// unreadableSuffix is added to the name of a file that cannot be parsed.
const unreadableSuffix = ".unreadable"

// Load implements [Store]. It renames files that cannot be parsed, so that the next Save of the same name does not overwrite them. Fields
// that a later version added are written back by Save.
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
		case errors.Is(err, format.ErrNewer):
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

// read reads the state file of a pod. Of a later version it returns at most the UID, and [format.ErrNewer].
func (d *Dir) read(name string) (Pod, error) {
	data, err := os.ReadFile(d.file(name))
	if err != nil {
		return Pod{}, err
	}
	var p Pod
	unknown, err := Format.Decode(data, &p)
	if errors.Is(err, format.ErrNewer) {
		var later struct {
			Facts struct {
				UID string `json:"uid"`
			} `json:"facts"`
		}
		_ = json.Unmarshal(data, &later) // the format may differ: the UID may be missing
		return Pod{Facts: lifecycle.Facts{UID: later.Facts.UID}}, err
	}
	if err != nil {
		return Pod{}, err
	}
	if p.Pod == nil || spec.FileName(p.Pod.Name) != name || p.Facts.UID == "" || p.SavedAt.IsZero() {
		return Pod{}, fmt.Errorf("not the state of pod %q", name)
	}
	d.mu.Lock()
	d.unknown[p.Pod.Name] = unknownFields{p.Facts.UID, unknown}
	d.mu.Unlock()
	p.Pod, p.Secrets = p.Pod.WithSecretValues(p.Secrets), nil
	return p, nil
}

// Save implements [Store].
func (d *Dir) Save(p Pod) error {
	p.Secrets = p.Pod.SecretValues()
	d.mu.Lock()
	unknown := d.unknown[p.Pod.Name]
	d.mu.Unlock()
	if unknown.uid != p.Facts.UID {
		unknown.fields = format.Unknown{}
	}
	data, err := Format.Encode(p, unknown.fields)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	return atomicfile.Write(d.path(p.Pod.Name), data, 0o600)
}

// Delete implements [Store]. It also removes a file that was renamed because it could not be parsed: it may contain secrets.
func (d *Dir) Delete(name string) error {
	d.mu.Lock()
	delete(d.unknown, name)
	d.mu.Unlock()
	if err := os.Remove(d.path(name) + unreadableSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Remove(d.path(name))
}
