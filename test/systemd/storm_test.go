//go:build e2e

package systemd_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// TestPowerCuts cuts the power at random moments, while pods start, restart, are updated, rolled back, stopped and deleted.
func TestPowerCuts(t *testing.T) {
	host(t).Storm(rig.Seeded(t), 3*rig.Times(t), 3*time.Second)
}
