//go:build e2e

package systemd_test

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// TestMain runs the tests side by side, each on a machine of its own, in a directory that must be empty at the end.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{
		Slow:   []string{"TestBoot", "TestRollback", "TestSystemService", "TestJournald", "TestBundle"},
		Around: func(run func() int) int { return rig.InDir("psy-", nil, run) },
	}))
}
