package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestStatusAfterDaemonRestart expects the same status after a restart of the daemon, including the transition times of the conditions. A
// start is in the state file, probe results are in the checkpoint.
func TestStatusAfterDaemonRestart(t *testing.T) {
	const after = 7 * time.Second // not a multiple of the probe period
	for _, row := range []struct {
		name    string
		answers []string // of the readiness probe, in order
	}{
		{"no probe", nil},
		{"ready", []string{"true"}},
		{"ready after a failure", []string{"exit 1", "true"}},
		{"no longer ready", []string{"true", "exit 1"}},
		{"ready again", []string{"true", "exit 1", "true"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAnswers(map[string]string{"good": "true", "late": "true"})
				m := newMachine(t, fakeruntime.Options{Exec: a.program})
				m.start()
				p := pod("p", spec.RestartAlways, "sleep 100000")
				p.Containers = append(p.Containers, p.Containers[0])
				c := &p.Containers[1]
				c.Name, c.StartupProbe, c.LivenessProbe = "c1", execProbe("good"), execProbe("late")
				c.LivenessProbe.InitialDelaySeconds = 60 // its result is the newest, but changes no condition
				if row.answers != nil {
					c.ReadinessProbe = execProbe("ready")
					a.set("ready", row.answers[0])
				}
				m.add(p)
				for _, answer := range row.answers {
					a.set("ready", answer)
					time.Sleep(time.Minute + after)
				}
				time.Sleep(time.Minute + after)
				synctest.Wait()
				before, _ := m.Pod("p")
				for _, end := range []func(){m.crash, m.leave, m.crash} {
					end()
					time.Sleep(after)
					m.start()
					for range 3 {
						synctest.Wait()
						s, _ := m.Pod("p")
						if diff := cmp.Diff(before.Status, s.Status); diff != "" {
							t.Fatalf("status (-before +after the restart):\n%s", diff)
						}
						time.Sleep(after)
					}
				}
			})
		})
	}
}

// TestNoSecondSignalAfterDaemonRestart expects one stop signal across restarts of the daemon. Many programs exit without cleanup at the
// second one.
func TestNoSecondSignalAfterDaemonRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) {
			return fakeruntime.Program{Runs: fakeruntime.Forever, Term: fakeruntime.Term{Takes: 20 * time.Second}}, true
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "a test"}); err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(){m.crash, m.leave, m.crash} {
			time.Sleep(time.Second)
			end()
			m.start()
		}
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		calls := m.engine.Calls()
		signals := slices.DeleteFunc(calls,
			func(c fakeruntime.Call) bool { return c.Method != "StopContainer" && c.Method != "KillContainer" })
		if len(signals) != 1 {
			t.Errorf("signals: %+v, want one", signals)
		}
	})
}

// TestCheckpointWhileDiskHangs expects probe results after a restart although the newest state was not saved.
func TestCheckpointWhileDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"ready": "exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.Containers[0].ReadinessProbe = execProbe("ready")
		m.add(p)
		time.Sleep(time.Minute)
		hang := make(chan struct{})
		m.disk.mu.Lock()
		m.disk.hang = hang
		m.disk.mu.Unlock()
		if err := m.AddEphemeral(t.Context(), "p", "", &spec.Container{Name: "d", Image: "image", Command: []string{"true"}},
			"test"); err != nil {
			t.Fatal(err)
		}
		a.set("ready", "true")
		m.until("p", "ready", ready)
		synctest.Wait()
		m.disk.kill()
		kept, _ := m.checkpoints.Load() // at the kill
		close(hang)
		m.crash()
		m.disk.hang, m.checkpoints.kept = nil, kept
		m.start()
		if s, _ := m.Pod("p"); !ready(s) {
			t.Error("the pod is not ready after a restart")
		}
	})
}

// TestStartTimeAfterCrash expects the time of a start after a restart although the state was not saved since.
func TestStartTimeAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		before := m.until("p", "ready", ready)
		synctest.Wait()
		m.crash() // before the state with the start is written
		time.Sleep(time.Minute)
		m.start()
		synctest.Wait()
		after, _ := m.Pod("p")
		if diff := cmp.Diff(before.Status, after.Status); diff != "" {
			t.Errorf("status (-before +after the restart):\n%s", diff)
		}
	})
}
