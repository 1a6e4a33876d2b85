//go:build e2e

package faults

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKilledDuringExecProbes: a daemon that is killed while probe commands start is replaced quickly. The next one does not wait for
// their output, which took 30 s.
func TestKilledDuringExecProbes(t *testing.T) {
	f := newFixture(t)
	const often = "readinessProbe = { exec = { command = ['echo', 'well'] }, periodSeconds = 0.1, timeoutSeconds = 20 }"
	f.MustRun("get") // it starts the daemon; podstead run would give up at the third that exits soon after its start
	f.MustCreate("busy", "terminationGracePeriodSeconds = 5\n"+watched("a", often)+watched("b", often)+watched("c", often))
	f.awaitReady("busy", "a b c")
	before := f.running("busy")
	for range 4 {
		f.MustKillDaemon()
		began := time.Now()
		f.MustRun("get", "busy")
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("the next daemon was ready after %v", took)
		}
		f.awaitReady("busy", "a b c")
	}
	if diff := cmp.Diff(before, f.running("busy")); diff != "" {
		t.Errorf("containers (-before +after):\n%s", diff)
	}
	f.MustRun("delete", "busy")
}
