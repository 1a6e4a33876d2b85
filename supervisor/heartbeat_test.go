package supervisor

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestHeartbeat: a loop whose decision hangs does not answer; one that has exited, and one with work to do, count as answers.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(t.Context(), Options{Runtime: fakeruntime.New(fakeruntime.Options{}), Store: noStore{}, Clock: bubbleClock()})
		defer leave(t, s)
		var hangs atomic.Bool
		release := make(chan struct{})
		s.shared.decide = func(p *spec.Pod, f lifecycle.Facts, now lifecycle.Instant) lifecycle.Decision {
			if hangs.Load() {
				<-release
			}
			return lifecycle.Decide(p, f, now)
		}
		beat := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return s.Heartbeat(ctx)
		}
		if err := beat(); err != nil {
			t.Errorf("without pods: %v", err)
		}
		if _, err := s.Add(sleeper("1000000"), state.Owner{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := beat(); err != nil {
			t.Errorf("with a pod: %v", err)
		}
		hangs.Store(true)
		_ = beat() // its decision hangs
		if err := beat(); err == nil || !strings.Contains(err.Error(), "no response from the supervisors of pods p: ") {
			t.Errorf("with a decision that hangs: %v", err)
		}
		hangs.Store(false)
		close(release)
		synctest.Wait()
		if err := beat(); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}
