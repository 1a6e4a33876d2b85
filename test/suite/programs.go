package suite

import (
	"os"
	"path/filepath"
)

// MonitorVariable is the environment variable that is not empty if the monitor runs the containers of the tests. Otherwise each pod has a
// shim.
const MonitorVariable = "PODSTEAD_TEST_MONITOR"

// UsesMonitor reports whether the monitor runs the containers of the tests.
func UsesMonitor() bool { return os.Getenv(MonitorVariable) != "" }

// Programs returns the directory in a repository with the programs of make build that the tests run.
func Programs(repository string) string {
	if UsesMonitor() {
		return filepath.Join(repository, "bin", "monitor")
	}
	return filepath.Join(repository, "bin")
}
