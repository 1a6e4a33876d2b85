//go:build e2e || soak

package faults

import (
	"os"
	"testing"

	"github.com/podstead/podstead/test/internal/rig"
	"github.com/podstead/podstead/test/suite"
)

// TestMain runs the tests side by side, in a directory that must be empty at the end.
func TestMain(m *testing.M) {
	os.Exit(suite.Main(m.Run, suite.Options{
		Slow: []string{
			"TestPlanIsApplied", "TestStacks", "TestUpdateStorm", "TestMonitorKilled", "TestIdle", "TestIncompatibleUpgrade",
			"TestUpgradeAndDowngrade", "TestRegistryFaults", "TestRandomEdits",
		},
		Parts:  map[string][]string{"TestLostState": {"nothing$", "containers$", "holders$", "daemon$"}},
		Around: func(run func() int) int { return rig.InDir("psf-", nil, run) },
	}))
}
