//go:build e2e

package upgrade

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/ownnet"
)

// TestMain runs the tests, and the daemons that they start, in a network namespace of their own.
func TestMain(m *testing.M) { os.Exit(ownnet.Main(m.Run)) }
