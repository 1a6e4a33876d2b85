//go:build e2e || soak

package faults

import (
	"time"

	"github.com/podstead/podstead/supervisor/event"
)

// late is by how much a restart may come later than it is due: a start takes a tenth of a second, and far longer on a loaded
// machine.
const late = 30 * time.Second

// checkGaps waits for restarts and compares the times between an exit and the start after it, then ends the run.
func checkGaps(f *fixture, r *run, want ...time.Duration) {
	f.Helper()
	for i, due := range want {
		exit, start := r.nth(event.ContainerFailed, i), r.nth(event.ContainerStarted, i+1)
		if gap := start.Time.Sub(exit.Time); gap < due || gap > due+late {
			f.Errorf("restart %d came %v after the exit, want %v", i+1, gap, due)
		}
	}
	r.nth(event.ContainerBackOff, len(want)-1)
	asked := time.Now()
	r.interrupt()
	r.status()
	if took := time.Since(asked); took > late {
		f.Errorf("it ended %v after Ctrl-C", took)
	}
}
