package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestWallClockIsCorrected checks that the times of pods, conditions and events of this boot are corrected when the wall clock is set,
// while the daemon runs or not, and that nothing is restarted or deleted.
func TestWallClockIsCorrected(t *testing.T) {
	const years = 20 * 365 * 24 * time.Hour
	for _, leaps := range [][]time.Duration{{years}, {-years}, {years, -years, time.Hour}} {
		for _, down := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, daemon down: %t", leaps, down), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMachine(t, fakeruntime.Options{})
					journal, err := event.NewDirJournal(t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					m.journal = journal
					m.finished = supervisor.FinishedPods{TTL: 24 * time.Hour}
					m.start()
					m.leapWith(leaps, down)
				})
			})
		}
	}
}

func (m *machine) leapWith(leaps []time.Duration, down bool) {
	pod := sleeper("1000000")
	pod.RestartPolicy = spec.RestartAlways
	deadline := spec.Seconds(1_000_000)
	pod.ActiveDeadlineSeconds = &deadline
	added := time.Now()
	m.add(pod)
	m.until("p", "ready", ready)
	m.finish("done", "1", "")
	done := time.Now()
	m.pass(time.Hour)
	for _, leap := range leaps {
		if down {
			m.leave()
		}
		m.leap.Store(int64(leap))
		if down {
			m.start()
		}
		m.pass(2 * time.Minute)
	}
	shift := leaps[len(leaps)-1]
	off := func(got, want time.Time) bool { return got.Sub(want.Add(shift)).Abs() > 2*time.Second }
	p, _ := m.Pod("p")
	c := p.Status.ContainerStatuses[0]
	if p.Status.Phase != lifecycle.PhaseRunning || c.RestartCount != 0 || off(p.Facts.Accepted.Wall, added) ||
		off(c.State.Running.StartedAt, added) {
		m.t.Errorf("pod that was added at %v: accepted %v, %+v", added.Add(shift), p.Facts.Accepted.Wall, c)
	}
	for _, condition := range p.Status.Conditions {
		if off(condition.LastTransitionTime, added) {
			m.t.Errorf("condition %+v, want the time %v", condition, added.Add(shift))
		}
	}
	finished, exists := m.Pod("done")
	if !exists || finished.Facts.Collected() || off(finished.Status.ContainerStatuses[0].State.Terminated.FinishedAt, done) {
		m.t.Errorf("pod that finished at %v: %+v", done.Add(shift), finished.Status.ContainerStatuses)
	}
	for name, at := range map[string]time.Time{"p": added, "done": done} {
		history, err := m.History(m.t.Context(), name)
		if err != nil || len(history) == 0 {
			m.t.Fatalf("events of %s: %v, %v", name, history, err)
		}
		for _, e := range history {
			if e.Kind != api.EventPodRecovered && off(e.Time, at) {
				m.t.Errorf("event %s at %v, want %v", e.Kind, e.Time, at.Add(shift))
			}
		}
	}
}
