//go:build e2e

package rootless_test

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// TestMain runs the tests side by side, each in namespaces of its own.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{Around: func(run func() int) int { return rig.InDir("pru-", sweep, run) }}))
}
