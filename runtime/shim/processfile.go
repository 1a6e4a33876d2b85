package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// ProcessAnnotation of a container is the path of a file with its [Process]. It replaces the process in the container's
// specification, which the engine stores on disk and returns to clients.
const ProcessAnnotation = "podstead.io/process"

// Process is the part of a process that may contain secrets.
type Process struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

// completeProcess puts the process into the specification in a bundle, if the specification has the annotation.
func completeProcess(bundle string) error {
	path := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the OCI runtime reports what is missing
	}
	if err != nil || !bytes.Contains(text, []byte(ProcessAnnotation)) {
		return err
	}
	var spec specs.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	file := spec.Annotations[ProcessAnnotation]
	if file == "" || spec.Process == nil {
		return nil
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read process of container: %w", err)
	}
	var p Process
	if err := json.Unmarshal(kept, &p); err != nil {
		return fmt.Errorf("read process of container: %w", err)
	}
	spec.Process.Args, spec.Process.Env = p.Args, p.Env
	if text, err = json.Marshal(&spec); err != nil {
		return err
	}
	// The file keeps its mode when it is rewritten, so set it first. A shim killed in between is replaced with a new bundle.
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
