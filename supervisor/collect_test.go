package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// finish adds a pod that exits after some seconds, and waits until it has finished.
func (m *machine) finish(name, seconds, file string) {
	m.t.Helper()
	pod := sleeper(seconds)
	pod.Name = name
	if _, err := m.Add(pod, state.Owner{File: file}); err != nil {
		m.t.Fatal(err)
	}
	m.until(name, "finished", func(s supervisor.Snapshot) bool { return s.AtRest })
}

// pass lets time pass.
func (m *machine) pass(d time.Duration) {
	ctx, cancel := context.WithTimeout(m.t.Context(), d)
	defer cancel()
	<-ctx.Done()
	synctest.Wait()
}

// collected returns the names of the collected pods.
func (m *machine) collected() string {
	var names []string
	for _, p := range m.Pods() {
		if p.Facts.Collected() {
			names = append(names, p.Pod.Name)
		}
	}
	return strings.Join(names, " ")
}

// records returns how many pods the engine has something of.
func (m *machine) records() int {
	m.t.Helper()
	list, err := m.engine.Inventory(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return len(list)
}

// TestFinishedPodTTL checks that a finished pod is collected when its time is over, which no leap of the wall clock changes, that its
// status is kept over restarts of the daemon and of the host, and that it can be started again.
func TestFinishedPodTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished = supervisor.FinishedPods{TTL: time.Hour}
		m.start()
		m.finish("p", "1", "/etc/podstead/pods.d/p.toml")
		for _, leap := range []time.Duration{20 * 365 * 24 * time.Hour, -20 * 365 * 24 * time.Hour, 0} {
			m.leap.Store(int64(leap))
			m.pass(10 * time.Minute)
			m.leave()
			m.start()
			if m.collected() != "" || m.records() != 1 {
				t.Fatalf("the pod was collected early, after the wall clock leapt by %v", leap)
			}
		}
		before, _ := m.Pod("p")
		m.pass(31 * time.Minute)
		after, _ := m.Pod("p")
		if m.collected() != "p" || m.records() != 0 || after.Status.Phase != lifecycle.PhaseSucceeded {
			t.Fatalf("collected %q, the engine has %d pods, phase %s", m.collected(), m.records(), after.Status.Phase)
		}
		if a, b := after.Status.ContainerStatuses[0], before.Status.ContainerStatuses[0]; a.State.Terminated == nil ||
			a.State.Terminated.FinishedAt != b.State.Terminated.FinishedAt {
			t.Errorf("status was %+v, now it is %+v", b, a)
		}
		emitted, _ := m.Events().Since(0)
		if n := len(slices.DeleteFunc(emitted, func(e event.Event) bool { return e.Kind != api.EventPodCollected })); n != 1 {
			t.Errorf("PodCollected was emitted %d times", n)
		}
		m.leave()
		m.boot = "boot-2"
		m.engine.Reboot()
		m.start()
		m.pass(24 * time.Hour)
		if p, _ := m.Pod("p"); p.Facts.UID != after.Facts.UID || p.Status.Phase != lifecycle.PhaseSucceeded || m.collected() != "p" ||
			m.records() != 0 {
			t.Errorf("after a reboot: phase %s, collected %q", p.Status.Phase, m.collected())
		}
		events, _ := m.Events().Since(0)
		if slices.ContainsFunc(events, func(e event.Event) bool {
			return e.Kind == api.EventContainerStarted || e.Kind == api.EventPodCollected
		}) {
			t.Errorf("a collected pod was started or collected again: %v", events)
		}
		m.startAgain("p")
		m.until("p", "finished again", func(s supervisor.Snapshot) bool {
			return s.AtRest && s.Status.ContainerStatuses[0].RestartCount == 1
		})
		if m.collected() != "" || m.records() != 1 {
			t.Errorf("the pod that ran again is collected at once")
		}
		m.pass(61 * time.Minute)
		if m.collected() != "p" {
			t.Error("the pod that ran again is not collected")
		}
	})
}

// TestMaxFinishedPods checks that the pods that finished first are collected if there are too many, and that pods that run or were stopped
// by a user do not count.
func TestMaxFinishedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished = supervisor.FinishedPods{Max: 2}
		m.start()
		runs := sleeper("100000")
		runs.Name = "runs"
		m.add(runs)
		stopped := sleeper("100000")
		stopped.Name = "stopped"
		m.add(stopped)
		m.untilPhase("stopped", lifecycle.PhaseRunning)
		m.stop("stopped")
		for _, name := range []string{"d", "c", "b"} {
			m.finish(name, "1", "")
		}
		m.pass(time.Minute)
		if got := m.collected(); got != "d" {
			t.Errorf("collected %q, want d", got)
		}
		m.finish("a", "1", "")
		m.pass(time.Minute)
		if got := m.collected(); got != "c d" {
			t.Errorf("collected %q, want c and d", got)
		}
		m.SetFinishedPods(supervisor.FinishedPods{Max: 1})
		m.pass(time.Minute)
		if got := m.collected(); got != "b c d" {
			t.Errorf("with a lower limit: collected %q, want b, c and d", got)
		}
		m.SetFinishedPods(supervisor.FinishedPods{TTL: time.Second})
		m.pass(time.Minute)
		if got := m.collected(); got != "a b c d" {
			t.Errorf("with a TTL: collected %q, want all that finished", got)
		}
		m.delete("a")
		if _, exists := m.Pod("a"); exists {
			t.Error("a collected pod was not deleted")
		}
	})
}

// TestCollectedPodsAreBounded checks that the oldest collected pods are deleted, unless a file defines them.
func TestCollectedPodsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished, m.keep = supervisor.FinishedPods{TTL: time.Second}, 2
		m.start()
		m.finish("file", "1", "/etc/podstead/pods.d/file.toml")
		for _, name := range []string{"d", "c", "b", "a"} {
			m.finish(name, "1", "")
			m.pass(time.Minute)
		}
		var names []string
		for _, p := range m.Pods() {
			names = append(names, p.Pod.Name)
		}
		if got := strings.Join(names, " "); got != "a b file" || m.collected() != got {
			t.Errorf("pods %q, collected %q", got, m.collected())
		}
	})
}

// TestCollectionIsRepeated checks that a collection that failed, or that a crash interrupted, is repeated.
func TestCollectionIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2 // of the calls of the only pod
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method != "CollectPod" || failures == 0 {
				return nil
			}
			failures--
			return lifecycle.Failure{Message: "no"}
		}})
		m.finished = supervisor.FinishedPods{TTL: time.Second}
		m.start()
		m.finish("p", "1", "")
		m.pass(3 * time.Second)
		m.crash()
		m.start()
		m.pass(time.Hour)
		if m.collected() != "p" || m.records() != 0 || failures > 0 {
			t.Errorf("collected %q, the engine has %d pods, %d failures are left", m.collected(), m.records(), failures)
		}
	})
}

// TestCollectFinished: a client that waits for a collection receives the error of an attempt, and nil if the pod is deleted meanwhile.
func TestCollectFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 1
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			switch {
			case c.Method != "CollectPod":
			case failures > 0:
				failures--
				return lifecycle.Failure{Message: "device or resource busy"}
			case c.UID == "": // never
			default:
				<-time.After(time.Minute)
			}
			return nil
		}})
		m.start()
		m.finish("p", "1", "")
		list := m.Finished()
		if len(list) != 1 {
			t.Fatalf("%d finished pods", len(list))
		}
		if err := m.CollectFinished(t.Context(), &list[0]); err == nil || err.Error() != "device or resource busy" {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("late"))
		defer cancel()
		m.pass(11 * time.Second) // the second attempt begins
		if err := m.CollectFinished(ctx, &list[0]); err == nil || err.Error() != "late" {
			t.Errorf("error %v while an attempt takes long", err)
		}
		if err := m.CollectFinished(t.Context(), &list[0]); err != nil || m.collected() != "p" {
			t.Errorf("error %v, collected %q", err, m.collected())
		}
	})
}

// TestChangedFileOfCollectedPod checks that a change that must start a container starts a collected pod, and that another one does not.
func TestChangedFileOfCollectedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished = supervisor.FinishedPods{TTL: time.Minute}
		m.start()
		m.finish("p", "1", "/etc/podstead/pods.d/p.toml")
		m.pass(2 * time.Minute)
		now, _ := m.Pod("p")
		inPlace := *now.Pod
		inPlace.TerminationGracePeriodSeconds = 7
		m.redefine(&inPlace)
		m.pass(time.Minute)
		if m.collected() != "p" || m.records() != 0 {
			t.Errorf("a change in place started the pod: collected %q", m.collected())
		}
		changed := inPlace
		changed.Containers = slices.Clone(changed.Containers)
		changed.Containers[0].Command = []string{"sleep", "2"}
		m.redefine(&changed)
		m.until("p", "finished again", func(s supervisor.Snapshot) bool {
			return s.AtRest && s.Status.ContainerStatuses[0].RestartCount == 1 && s.Facts.UID == now.Facts.UID
		})
		if m.collected() != "" {
			t.Error("the pod that ran again is collected at once")
		}
	})
}

// TestTTLSecondsAfterFinished: the time of a pod itself replaces that of the host, also for a run of a schedule.
func TestTTLSecondsAfterFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished = supervisor.FinishedPods{TTL: time.Hour, Max: 5}
		m.start()
		m.SetSchedules([]string{"backup"})
		for name, ttl := range map[string]spec.Seconds{"at-once": 0, "early": 600, "late": 7200, "run": 1200} {
			pod := sleeper("1")
			pod.Name, pod.TTLSecondsAfterFinished = name, &ttl
			owner := state.Owner{}
			if name == "run" {
				owner.Schedule = "backup"
			}
			if _, err := m.Add(pod, owner); err != nil {
				t.Fatal(err)
			}
		}
		m.finish("host", "1", "")
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{time.Minute, "at-once"},
			{10 * time.Minute, "at-once early"},
			{10 * time.Minute, "at-once early run"},
			{time.Hour, "at-once early host run"},
			{time.Hour, "at-once early host late run"},
		} {
			m.pass(step.after)
			if got := m.collected(); got != step.want {
				t.Errorf("collected %q, want %q", got, step.want)
			}
		}
		m.leave()
	})
}

// TestScheduledRunsAreKept checks that runs of a schedule are kept as the schedule says, and as other pods when it does not exist any more.
func TestScheduledRunsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.finished = supervisor.FinishedPods{TTL: time.Hour, Max: 1}
		m.start()
		for _, name := range []string{"backup-1", "backup-2"} {
			pod := sleeper("1")
			pod.Name = name
			if _, err := m.Add(pod, state.Owner{Schedule: "backup"}); err != nil {
				t.Fatal(err)
			}
			m.until(name, "finished", func(s supervisor.Snapshot) bool { return s.AtRest })
		}
		m.finish("other", "1", "")
		m.pass(2 * time.Hour)
		if m.collected() != "other" {
			t.Errorf("collected before the schedules are known: %q", m.collected())
		}
		m.SetSchedules([]string{"backup"})
		m.pass(2 * time.Hour)
		if m.collected() != "other" {
			t.Errorf("collected: %q", m.collected())
		}
		m.SetSchedules(nil)
		m.pass(time.Second)
		if m.collected() != "backup-1 backup-2 other" {
			t.Errorf("collected without the schedule: %q", m.collected())
		}
		m.leave()
	})
}
