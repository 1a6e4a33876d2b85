//go:build e2e || soak

package faults

import (
	"time"

	"github.com/podstead/podstead/api"
)

// late is the tolerance for restarts. A start takes 0.1 s, and much longer on a loaded host.
const late = 30 * time.Second

// checkGaps waits for restarts, compares the times between an exit and the next start, and stops the run.
func checkGaps(f *fixture, r *run, want ...time.Duration) {
	f.Helper()
	for i, due := range want {
		exit, start := r.nth(api.EventContainerFailed, i), r.nth(api.EventContainerStarted, i+1)
		if gap := start.Time.Sub(exit.Time); gap < due || gap > due+late {
			f.Errorf("restart %d came %v after the exit, want %v", i+1, gap, due)
		}
	}
	r.nth(api.EventContainerBackOff, len(want)-1)
	stopped := time.Now()
	r.interrupt()
	r.exitCode()
	if took := time.Since(stopped); took > late {
		f.Errorf("podstead run exited %v after Ctrl-C", took)
	}
}
