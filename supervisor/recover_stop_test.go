package supervisor_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestStoppedPodRepeatsNoStart kills the supervisor while a start of a pod that is being deleted has no outcome, before or after the engine
// has carried it out. The next supervisor must delete the pod without repeating the start.
func TestStoppedPodRepeatsNoStart(t *testing.T) {
	for _, method := range []string{"StartSandbox", "PullImage", "StartContainer"} {
		for _, after := range []bool{false, true} {
			name := "before " + method
			if after {
				name = "after " + method
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hang := func(ctx context.Context, c fakeruntime.Call) error {
						if c.Method == method {
							<-ctx.Done()
							return ctx.Err()
						}
						return nil
					}
					o := fakeruntime.Options{Before: hang}
					if after {
						o = fakeruntime.Options{After: hang}
					}
					m := newMachine(t, o)
					m.start()
					p := pod("p", spec.RestartAlways, "sleep 100000")
					p.Containers[0].ImagePullPolicy = spec.PullAlways
					m.add(p)
					synctest.Wait()
					if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
						t.Fatal(err)
					}
					m.crash()
					before := len(m.engine.Calls())
					m.start()
					m.untilRemoved("p")
					calls := m.engine.Calls()[before:]
					if slices.ContainsFunc(calls, func(c fakeruntime.Call) bool { return c.Method == method }) {
						t.Errorf("the start was repeated: %v", calls)
					}
					if found, err := m.engine.Inventory(t.Context()); err != nil || len(found) > 0 {
						t.Errorf("the engine still has %+v, %v", found, err)
					}
				})
			})
		}
	}
}

// TestClockSetBack restarts the supervisor with a clock that shows less than the stored instants, in the same boot. A back-off takes at
// most its full delay.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		time.Sleep(24 * time.Hour)
		p := pod("p", spec.RestartAlways, "exit 1")
		p.Containers[0].ReadinessProbe = execProbe("true")
		m.add(p)
		s := m.until("p", "backing off", func(s supervisor.Snapshot) bool {
			w := s.Status.ContainerStatuses[0].State.Waiting
			return s.Status.ContainerStatuses[0].RestartCount == 2 && w != nil && w.Reason == lifecycle.ReasonCrashLoopBackOff
		})
		full := lifecycle.RestartDelay(s.Pod, s.Facts, "c0", m.Now())
		m.leave()
		m.started = time.Now()
		m.start()
		begun := time.Now()
		m.until("p", "restarted", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].RestartCount == 3 })
		if took := time.Since(begun); full == 0 || took > full {
			t.Errorf("the restart took %v, want at most %v", took, full)
		}
		m.delete("p")
	})
}
