package container

import (
	"fmt"
	"path/filepath"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

// maxSeccompBytes is the maximum size of a seccomp profile. Docker's default profile has 20 KB.
const maxSeccompBytes = 1 << 20

// seccompProfile reads a seccomp profile of type Localhost. The name is relative to the directory seccomp/ in the configuration directory.
func seccompProfile(configDir, name string) (oci.Profile, error) {
	path := filepath.Join(configDir, "seccomp", name)
	text, err := configsource.WithTimeout("file", path, func() ([]byte, error) {
		text, _, err := spec.ReadFile(path, maxSeccompBytes)
		return text, err
	})
	if err != nil {
		return oci.Profile{}, fmt.Errorf("read seccomp profile: %w", err)
	}
	return oci.Profile{Path: path, Text: text}, nil
}
