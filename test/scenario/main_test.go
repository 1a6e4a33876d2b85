//go:build e2e

package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/ownnet"
)

// TestMain runs the tests in a network namespace of their own, and in a directory that must be empty at the end.
func TestMain(m *testing.M) {
	os.Exit(ownnet.Main(func() int { return rig.InDir("pss-", unpinSpaces, m.Run) }))
}

// unpinSpaces removes the network namespaces of other hosts.
func unpinSpaces(dir string) error {
	spaces, err := filepath.Glob(filepath.Join(dir, "*", "space-*"))
	for _, space := range spaces {
		err = errors.Join(err, netns.Unpin(space))
	}
	return err
}
