package supervisor_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// polite is a program that stops at once.
const polite = "trap 'exit 0' TERM; sleep 100000 & wait"

// podsOf returns the pods of the events of a kind, in order.
func podsOf(m *machine, kind api.EventKind) []string {
	events, _ := m.Events().Since(0)
	var pods []string
	for _, e := range events {
		if e.Kind == kind {
			pods = append(pods, e.Pod)
		}
	}
	return pods
}

// expectNoWarnings expects that the supervisor has emitted no warning.
func expectNoWarnings(m *machine) {
	m.t.Helper()
	events, _ := m.Events().Since(0)
	for _, e := range events {
		if e.Level == api.EventWarning {
			m.t.Errorf("warning of pod %s: %s", e.Pod, e.Message)
		}
	}
}

// TestPowerLoss expects one warning of the host after a boot that ended without a shutdown, and none after that. Each pod that ran has an
// event that says so.
func TestPowerLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.journal = &journal{}
		m.start()
		for _, name := range []string{"a", "b"} {
			m.add(pod(name, spec.RestartAlways, polite))
			m.untilPhase(name, lifecycle.PhaseRunning)
		}
		m.crash()
		m.engine.Reboot()
		m.unclean, m.boot, m.started = m.boot, "boot-2", time.Now()
		m.start()
		time.Sleep(time.Minute)
		m.restartKilled() // before the daemon has recorded the boot
		for _, name := range []string{"a", "b"} {
			m.untilPhase(name, lifecycle.PhaseRunning)
		}
		var got []string
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind == api.EventUncleanShutdown || e.Kind == api.EventHostRebooted {
				got = append(got, fmt.Sprintf("%s %q %s", e.Level, e.Pod, e.Message))
			}
		}
		slices.Sort(got) // the loops of pods are independent
		want := []string{
			`Normal "a" Host has been rebooted after it stopped without a shutdown`,
			`Normal "b" Host has been rebooted after it stopped without a shutdown`,
			`Warning "" The host stopped without a shutdown: power loss, reset or kernel panic`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// TestShutDown expects that pods stop in reverse order of their start, each after the later ones, and start again after a boot, except for
// those that do not restart. None of that is a warning.
func TestShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		add := func(p *spec.Pod) {
			m.add(p)
			m.untilPhase(p.Name, lifecycle.PhaseRunning)
			time.Sleep(time.Second)
		}
		add(pod("b", spec.RestartOnFailure, "trap 'exit 143' TERM; sleep 100000 & wait"))
		add(pod("c", spec.RestartNever, polite))
		add(pod("a", spec.RestartAlways, polite))
		m.add(pod("done", spec.RestartNever, "exit 0"))
		m.untilPhase("done", lifecycle.PhaseSucceeded)
		waiting := pod("waiting", spec.RestartNever, "sleep 100000")
		waiting.WaitFor = []string{"path:/a"}
		m.add(waiting)
		synctest.Wait()

		start := time.Now()
		m.ShutDown(t.Context(), time.Minute, lifecycle.ByShutdown)
		if took := time.Since(start); took > time.Second {
			t.Errorf("the shutdown took %v", took)
		}
		if got, want := podsOf(m, api.EventNodeShutdown), []string{"waiting", "a", "c", "b"}; !slices.Equal(got, want) {
			t.Errorf("pods stopped in the order %v, want %v", got, want)
		}
		if got, want := podsOf(m, api.EventPodStopped), []string{"waiting", "a", "c", "b"}; !slices.Equal(got, want) {
			t.Errorf("pods ended in the order %v, want %v", got, want)
		}
		for _, name := range []string{"a", "b", "c"} {
			s, _ := m.Pod(name)
			i := slices.IndexFunc(s.Status.Conditions, func(c lifecycle.Condition) bool { return c.Type == lifecycle.DisruptionTarget })
			if s.Status.Reason != lifecycle.ReasonTerminated ||
				s.Status.Message != "Pod was terminated in response to imminent node shutdown." || i < 0 {
				t.Errorf("pod %s: reason %s, message %q, conditions %v", name, s.Status.Reason, s.Status.Message, s.Status.Conditions)
			}
		}
		expectNoWarnings(m)
		m.leave()
		m.engine.Reboot()
		m.boot, m.started = "boot-2", time.Now()
		m.start()
		expectNoWarnings(m)
		for _, name := range []string{"a", "b"} {
			s := m.untilPhase(name, lifecycle.PhaseRunning)
			if s.Status.Reason != "" {
				t.Errorf("pod %s has the reason %s after the boot", name, s.Status.Reason)
			}
		}
		for name, want := range map[string]lifecycle.Phase{
			"c": lifecycle.PhaseFailed, "done": lifecycle.PhaseSucceeded, "waiting": lifecycle.PhasePending,
		} {
			if s, _ := m.Pod(name); s.Status.Phase != want {
				t.Errorf("pod %s is %s after the boot, want %s", name, s.Status.Phase, want)
			}
		}
	})
}

// TestShutDownIsBounded expects that containers which ignore the stop signal are killed at the end of the period, and hold up neither it
// nor the stop of other pods.
func TestShutDownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		var stopped time.Duration
		for _, name := range []string{"good", "deaf-1", "deaf-2"} {
			p := pod(name, spec.RestartAlways, "trap '' TERM; sleep 100000")
			p.TerminationGracePeriodSeconds = 3600
			if name == "good" {
				p.Containers[0].Command[2] = polite
			}
			m.add(p)
			m.untilPhase(name, lifecycle.PhaseRunning)
			time.Sleep(time.Second)
		}
		start := time.Now()
		m.ShutDown(t.Context(), 30*time.Second, lifecycle.ByShutdown)
		took := time.Since(start)
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind == api.EventPodStopped && e.Pod == "good" {
				stopped = e.Time.Sub(start)
			}
		}
		if stopped < 20*time.Second-time.Millisecond || stopped > 21*time.Second {
			t.Errorf("the first pod stopped after %v, want 20s: the shares of two others", stopped)
		}
		if took < 29*time.Second || took > 33*time.Second {
			t.Errorf("the shutdown took %v, want 30s", took)
		}
		for _, name := range []string{"good", "deaf-1", "deaf-2"} {
			if s, _ := m.Pod(name); !s.AtRest {
				t.Errorf("pod %s runs after the shutdown", name)
			}
		}
	})
}

// TestShutDownWithoutDisk expects that a state disk that hangs holds up the stop of each pod for half a second, and a loop that does not
// respond for its share.
func TestShutDownWithoutDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		for i := range 10 {
			name := fmt.Sprintf("p%d", i)
			m.add(pod(name, spec.RestartAlways, polite))
			m.untilPhase(name, lifecycle.PhaseRunning)
			time.Sleep(time.Second)
		}
		hang := make(chan struct{})
		m.disk.mu.Lock()
		m.disk.hang = hang
		m.disk.mu.Unlock()
		release := m.BlockLoop("p9")
		start := time.Now()
		m.ShutDown(t.Context(), 30*time.Second, lifecycle.ByShutdown)
		var first, last time.Duration
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind == api.EventNodeShutdown {
				if first == 0 {
					first = e.Time.Sub(start)
				}
				last = e.Time.Sub(start)
			}
		}
		if n := len(podsOf(m, api.EventPodStopped)); n != 9 {
			t.Errorf("%d pods stopped, want all except for the one whose loop is blocked", n)
		}
		if first != 3*time.Second || last > 8*time.Second {
			t.Errorf("pods stopped from %v to %v, want 3s, the share of the blocked loop, and 0.5s for each removal", first, last)
		}
		if took := time.Since(start); took > 36*time.Second {
			t.Errorf("the shutdown took %v", took)
		}
		release()
		m.disk.mu.Lock()
		m.disk.hang = nil
		m.disk.mu.Unlock()
		close(hang)
	})
}

// TestShutDownKeepsStoppedPods expects that a pod which a client has stopped does not start after the boot, and that a new daemon in the
// same boot starts the others again.
func TestShutDownKeepsStoppedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("stopped", spec.RestartAlways, polite))
		m.add(pod("running", spec.RestartAlways, polite))
		m.untilPhase("stopped", lifecycle.PhaseRunning)
		m.untilPhase("running", lifecycle.PhaseRunning)
		if err := m.Stop(t.Context(), "stopped", supervisor.StopOptions{By: "a test"}); err != nil {
			t.Fatal(err)
		}
		m.ShutDown(t.Context(), 30*time.Second, lifecycle.ByShutdown)
		m.leave()
		m.start()
		m.untilPhase("running", lifecycle.PhaseRunning)
		synctest.Wait()
		if s, _ := m.Pod("stopped"); !s.AtRest || s.Status.Reason != "" {
			t.Errorf("the stopped pod is %s, reason %s", s.Status.Phase, s.Status.Reason)
		}
	})
}

// TestShutDownCollectsNothing expects that pods which the next boot starts again keep their containers and volumes, whatever the limits of
// finished pods are.
func TestShutDownCollectsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished = supervisor.FinishedPods{TTL: 5 * time.Second, Max: 1}
		m.start()
		for _, name := range []string{"a", "b", "c"} {
			m.add(pod(name, spec.RestartAlways, polite))
			m.untilPhase(name, lifecycle.PhaseRunning)
		}
		waiting := pod("waiting", spec.RestartNever, "sleep 100000")
		waiting.WaitFor = []string{"path:/a"}
		m.add(waiting)
		m.add(pod("once", spec.RestartNever, polite))
		m.untilPhase("once", lifecycle.PhaseRunning)
		m.ShutDown(t.Context(), time.Minute, lifecycle.ByShutdown)
		if n := len(m.Finished()); n != 1 {
			t.Errorf("%d finished pods, want only the one that does not start again", n)
		}
		m.pass(time.Minute) // the shutdown of the host takes longer than that of the pods
		if got := m.collected(); got != "once" {
			t.Errorf("collected %q, want only the pod that does not start again", got)
		}
	})
}
