//go:build e2e

package faults

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKilledAmongCommands: a daemon that is killed while commands of probes start is followed by one that is there at once. It
// does not wait for the output of those, which nobody reads any more: that took 30 s.
func TestKilledAmongCommands(t *testing.T) {
	f := newFixture(t)
	const often = "readinessProbe = { exec = { command = ['echo', 'well'] }, periodSeconds = 0.1, timeoutSeconds = 20 }"
	r := f.start(f.PodFile("busy", "terminationGracePeriodSeconds = 5\n"+watched("a", often)+watched("b", often)+watched("c", often)))
	r.line("c", 1)
	f.awaitReady("busy", "a b c")
	before := f.running("busy")
	for range 4 {
		f.MustKillDaemon()
		begun := time.Now()
		f.MustRun("get", "busy")
		if took := time.Since(begun); took > 25*time.Second {
			t.Errorf("the next daemon was there after %v", took)
		}
		f.awaitReady("busy", "a b c")
	}
	if diff := cmp.Diff(before, f.running("busy")); diff != "" {
		t.Errorf("containers (-before +after):\n%s", diff)
	}
	r.interrupt()
	if status := r.status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
