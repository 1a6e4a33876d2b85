//go:build e2e

package hostile

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/ownnet"
)

// TestMain runs the tests in a network of their own, and in a folder that is empty afterwards.
func TestMain(m *testing.M) {
	os.Exit(ownnet.Main(func() int { return rig.InFolder("psh-", nil, m.Run) }))
}
