//go:build e2e

package systemd_test

import (
	"testing"
	"time"

	"github.com/podstead/podstead/test/internal/installed"
)

// within is shorter than pods take to become ready on a loaded host only for definitions that never become ready.
const within = 15 * time.Second

// TestRollback: a definition that does not become ready is rolled back, also if the power is cut while it starts, while it is rolled back,
// and afterwards.
func TestRollback(t *testing.T) {
	h := host(t)
	all := installed.Cuts{Update: true, Rollback: true, After: true}
	h.Rollback(installed.BrokenImage, within, all)
	h.Rollback(installed.BrokenStart, within, installed.Cuts{})
	h.Rollback(installed.BrokenReadiness, within, all)
	h.Rollback(installed.BrokenReplacement, within, all)
}
