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
		Parts: map[string][]string{"TestLostState": {"nothing$", "containers$", "holders$", "daemon$"}},
		Shims: map[string]string{
			"TestShimKilled":                   "containers do not end with the monitor, see TestMonitorKilled",
			"TestHungShimBesideNewDaemon":      "the daemon replaces a monitor that does not respond, see TestHungMonitor",
			"TestContainerExitsBesideHungShim": "likewise",
			"TestForceHungShim":                "likewise",
			"TestHungShimOfRunningDaemon":      "likewise",
		},
		Monitor: map[string]string{
			"TestMonitorKilled": "containers end with their shim, see TestShimKilled",
			"TestHungMonitor":   "the daemon does not replace a shim that does not respond, see TestHungShimOfRunningDaemon",
		},
		Around: func(run func() int) int { return rig.InDir("psf-", nil, run) },
	}))
}
