package rig

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/runtime/engine"
)

// RuntimeVariable is the environment variable with the OCI runtime of the rig's containers, which make e2e RUNTIME=crun sets.
const RuntimeVariable = "PODSTEAD_ENGINE_RUNTIME"

// RuntimeUnderTest returns the OCI runtime of this run of the tests, runc if it is not set.
func RuntimeUnderTest() string { return cmp.Or(os.Getenv(RuntimeVariable), "runc") }

// runtimeFiles are the files in which OCI runtimes keep the state of a container.
var runtimeFiles = map[string]string{"state.json": "runc", "status": "crun"}

// Creator returns the OCI runtime that has created a container, by the file in which it keeps its state. containerID is that of a status.
func (r *Rig) Creator(containerID string) (string, error) {
	dir := filepath.Join(r.RunDir(), "engine", "runc", engine.Namespace, strings.TrimPrefix(containerID, "containerd://"))
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name, known := runtimeFiles[e.Name()]; known {
			return name, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%s has no state of runc or crun", dir)
	}
	return "", err
}
