//go:build e2e

package hostile

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/ownnet"
)

// TestMain runs the tests in a network namespace of their own, and in a directory that must be empty at the end.
func TestMain(m *testing.M) {
	os.Exit(ownnet.Main(func() int { return rig.InDir("psh-", nil, m.Run) }))
}
