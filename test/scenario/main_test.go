//go:build e2e

package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/namespace"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// TestMain runs the tests side by side, in a directory that must be empty at the end.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{
		Slow:   []string{"TestFiftyPods", "TestPodsWaitForTheirConfig"},
		Around: func(run func() int) int { return rig.InDir("pss-", unpinSpaces, run) },
	}))
}

// unpinSpaces removes the network namespaces of other hosts.
func unpinSpaces(dir string) error {
	spaces, err := filepath.Glob(filepath.Join(dir, "*", "space-*"))
	for _, space := range spaces {
		err = errors.Join(err, namespace.Unpin(space))
	}
	return err
}
