//go:build e2e || soak

package faults

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/ownnet"
)

// TestMain runs the tests in a network of their own, which the daemons that they start have too.
func TestMain(m *testing.M) { os.Exit(ownnet.Main(m.Run)) }
