package ocibundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ProcessAnnotation of a container is the path of a file with its [Process]. It replaces the process in the container's
// specification, which the engine stores on disk and returns to clients.
const ProcessAnnotation = "podstead.io/process"

// Process is the part of a process that may contain secrets.
type Process struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

// Prepare completes the specification in a bundle with what the engine keeps elsewhere, and creates the mount point of the root file
// system. It can be repeated.
func Prepare(bundle string) error {
	return errors.Join(completeProcess(bundle), placeRoot(bundle))
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
	// Only the parts that matter are decoded. Go keeps what it learns about a type for as long as the process runs: 165 KiB for the
	// whole specification.
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	var annotations map[string]string
	var process map[string]json.RawMessage
	if err := errors.Join(unmarshalField(spec, "annotations", &annotations), unmarshalField(spec, "process", &process)); err != nil {
		return err
	}
	file := annotations[ProcessAnnotation]
	if file == "" || process == nil {
		return nil
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read process of container: %w", err)
	}
	var p map[string]json.RawMessage
	if err := json.Unmarshal(kept, &p); err != nil {
		return fmt.Errorf("read process of container: %w", err)
	}
	for _, name := range []string{"args", "env"} { // the fields of Process
		if process[name] = p[name]; p[name] == nil {
			delete(process, name)
		}
	}
	if spec["process"], err = json.Marshal(process); err != nil {
		return err
	}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	// The file keeps its mode when it is rewritten, so set it first. A creation that is interrupted begins with a new bundle.
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// unmarshalField reads a field of a specification. It changes nothing if there is no such field.
func unmarshalField(spec map[string]json.RawMessage, name string, into any) error {
	if spec[name] == nil {
		return nil
	}
	if err := json.Unmarshal(spec[name], into); err != nil {
		return fmt.Errorf("read %s of specification: %w", name, err)
	}
	return nil
}

// OwnPIDs reports whether the container of a bundle has a PID namespace of its own. It is false if the specification cannot be read.
func OwnPIDs(bundle string) bool {
	type namespace struct{ Type, Path string }
	var spec struct {
		Linux struct {
			Namespaces []namespace `json:"namespaces"`
		} `json:"linux"`
	}
	text, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return false
	}
	return slices.Contains(spec.Linux.Namespaces, namespace{Type: "pid"})
}
