package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/ocibundle"
	"github.com/podstead/podstead/runtime/record"
)

// ProcessFiles are the files that pass the arguments and the environment of a container to the shim, if they contain secrets. A file exists
// from the creation of the container until the shim has read it. It is in the directory for runtime state, only root can read it, and it is
// in a directory of its pod: if the daemon is killed before it creates the record of the container, only the removal of the pod finds the
// file.
type ProcessFiles struct{ dirs record.Dirs }

// NewProcessFiles returns the files in dirs.
func NewProcessFiles(dirs record.Dirs) ProcessFiles { return ProcessFiles{dirs} }

// Path returns the file of a container.
func (f ProcessFiles) Path(uid, id string) string { return filepath.Join(f.dirs.Processes(uid), id) }

// Write writes the file of a container, and returns the annotation for the shim.
func (f ProcessFiles) Write(uid, id string, p ocibundle.Process) (map[string]string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	path := f.Path(uid, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("write process file: %w", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write process file: %w", err)
	}
	return map[string]string{ocibundle.ProcessAnnotation: path}, nil
}

// Remove removes the file of a container, if it exists.
func (f ProcessFiles) Remove(uid, id string) error {
	if err := os.Remove(f.Path(uid, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove process file: %w", err)
	}
	return nil
}

// Environment returns the environment of a running container with the given specification: the one in the specification or, if that hides
// secrets, the one that the shim or the monitor has written to the bundle.
func (f ProcessFiles) Environment(id string, s *specs.Spec) ([]string, error) {
	if s.Annotations[ocibundle.ProcessAnnotation] == "" {
		return s.Process.Env, nil
	}
	text, err := os.ReadFile(filepath.Join(engine.Bundle(f.dirs.EngineRun(), id), "config.json"))
	if err != nil {
		return nil, fmt.Errorf("read environment: %w", err)
	}
	var full specs.Spec
	if err := json.Unmarshal(text, &full); err != nil {
		return nil, fmt.Errorf("read environment: bundle specification: %w", err)
	}
	if full.Process == nil {
		return nil, errors.New("read environment: the bundle specification has no process")
	}
	return full.Process.Env, nil
}
