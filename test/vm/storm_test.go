//go:build vm && soak

package vm_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestPowerCuts cuts the power at random moments, while pods start, restart, are updated, rolled back, stopped and deleted. With
// PODSTEAD_STORM, it cuts it 20 times.
func TestPowerCuts(t *testing.T) {
	cuts := 3
	if rig.Times(t) > 1 {
		cuts = 20
	}
	newInstalled(t).Storm(rig.Seeded(t), cuts, 8*time.Second)
}
