package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// hostConditions is a [supervisor.HostConditions] whose conditions the test meets.
type hostConditions struct {
	mu       sync.Mutex
	met      map[string]bool // by kind
	changed  chan struct{}
	watching int
	err      error // of the next call
}

func newHostConditions() *hostConditions {
	return &hostConditions{met: map[string]bool{}, changed: make(chan struct{})}
}

func (h *hostConditions) set(kind string, met bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.met[kind] = met
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hostConditions) watches() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watching
}

func (h *hostConditions) state(kind string) (met bool, changed chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.met[kind], h.changed
}

func (h *hostConditions) begin(by int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching += by
	err := h.err
	h.err = nil
	return err
}

func (h *hostConditions) WaitFor(ctx context.Context, c spec.WaitCondition, report func(string)) error {
	defer func() { _ = h.begin(-1) }()
	if err := h.begin(1); err != nil {
		return err
	}
	for n := 0; ; n++ {
		met, changed := h.state(c.Kind)
		if met {
			return nil
		}
		report("not found")
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waits returns a pod that waits for conditions.
func waits(name string, conditions ...string) *spec.Pod {
	p := pod(name, spec.RestartAlways, "sleep 31536000")
	p.WaitFor = conditions
	return p
}

// message returns the message of the status of a pod.
func (m *machine) message(name string) string {
	m.t.Helper()
	synctest.Wait()
	s, exists := m.Pod(name)
	if !exists {
		m.t.Fatalf("no pod %s", name)
	}
	return strings.TrimSpace(string(s.Status.Reason) + " " + s.Status.Message)
}

func (m *machine) expectMessage(name, want string) {
	m.t.Helper()
	if got := m.message(name); got != want {
		m.t.Errorf("pod %s: %q, want %q", name, got, want)
	}
}

func isReady(s supervisor.Snapshot) bool {
	return slices.ContainsFunc(s.Status.Conditions,
		func(c lifecycle.Condition) bool { return c.Type == lifecycle.PodReady && c.Status == "True" })
}

func TestPodWaitsForHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.host.err = errors.New("too many open files") // is tried again
		m.add(waits("web", "path:/dev/disk", "time-synced"))
		time.Sleep(time.Minute)
		m.expectMessage("web", "WaitingFor waiting for path /dev/disk: not found, time-synced: not found")
		if s, _ := m.Pod("web"); s.Status.Phase != lifecycle.PhasePending || s.Facts.Sandbox.N > 0 {
			t.Errorf("phase %s, sandbox %d of a waiting pod", s.Status.Phase, s.Facts.Sandbox.N)
		}
		m.host.set("path", true)
		m.expectMessage("web", "WaitingFor waiting for time-synced: not found")
		m.host.set("path", false) // it was met
		time.Sleep(time.Minute)
		saves := m.saves()
		time.Sleep(24 * time.Hour)
		if n := m.saves() - saves; n > 0 {
			t.Errorf("%d writes of a pod that waits", n)
		}
		m.host.set("time-synced", true)
		m.until("web", "ready", isReady)
		m.expectMessage("web", "")
		synctest.Wait()
		if n := m.host.watches(); n > 0 {
			t.Errorf("%d watches of a pod that has started", n)
		}
		events, _ := m.Events().Since(0)
		var got []string
		for _, e := range events {
			if e.Kind == api.EventPodWaiting || e.Kind == api.EventConditionMet {
				got = append(got, e.Message)
			}
		}
		want := []string{
			"Waiting for path:/dev/disk, time-synced", "path:/dev/disk was met after 1m0s", "time-synced was met after 24h2m0s",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

// TestWaitIsContinued restarts the daemon, and then reboots the host.
func TestWaitIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(waits("web", "path:/dev/disk", "time-synced"))
		m.host.set("path", true)
		synctest.Wait()
		m.host.set("path", false)
		m.leave()
		if n := m.host.watches(); n > 0 {
			t.Errorf("%d watches after the end of the daemon", n)
		}
		m.start()
		m.expectMessage("web", "WaitingFor waiting for time-synced: not found")
		m.host.set("time-synced", true)
		m.until("web", "ready", isReady)
		m.leave()
		m.engine.Reboot()
		m.boot = "boot-2"
		m.start()
		m.expectMessage("web", "WaitingFor waiting for path /dev/disk: not found")
		m.host.set("path", true)
		m.until("web", "ready", isReady)
	})
}

func TestStopOfWaitingPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(waits("web", "path:/dev/disk"))
		time.Sleep(time.Minute)
		before := time.Now()
		m.delete("web")
		if took := time.Since(before); took > 0 {
			t.Errorf("the deletion took %v", took)
		}
		synctest.Wait()
		if n := m.host.watches(); n > 0 {
			t.Errorf("%d watches of a deleted pod", n)
		}
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Level == api.EventWarning {
				t.Errorf("event %s", e.Message)
			}
		}
	})
}

func TestPodWaitsForPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := newAnswers(map[string]string{"probe": "exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: answers.program})
		m.start()
		m.add(waits("web", "pod:db:ready", "pod:migrate:succeeded"))
		m.expectMessage("web", "WaitingFor waiting for pod db: not found, pod migrate: not found")
		db := pod("db", spec.RestartAlways, "sleep 31536000")
		db.Containers[0].ReadinessProbe = execProbe("probe")
		m.add(db)
		m.add(pod("migrate", spec.RestartNever, "exit 1"))
		m.untilPhase("migrate", lifecycle.PhaseFailed)
		m.expectMessage("web", "WaitingFor waiting for pod db: not ready, pod migrate: failed")
		m.delete("migrate")
		m.add(pod("migrate", spec.RestartNever, "sleep 60"))
		m.expectMessage("web", "WaitingFor waiting for pod db: not ready, pod migrate: not succeeded")
		answers.set("probe", "exit 0")
		m.until("db", "ready", isReady)
		m.expectMessage("web", "WaitingFor waiting for pod migrate: not succeeded")
		m.untilPhase("migrate", lifecycle.PhaseSucceeded)
		m.until("web", "ready", isReady)
		m.delete("db")
		time.Sleep(time.Minute)
		if s, _ := m.Pod("web"); !isReady(s) {
			t.Errorf("a pod whose condition was lost is %+v", s.Status)
		}
	})
}

// TestPodWaitsForRejectedPod: the pod that is waited for is not said to be missing while it is refused.
func TestPodWaitsForRejectedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(waits("web", "pod:db:ready"))
		m.expectMessage("web", "WaitingFor waiting for pod db: not found")
		if _, err := m.Add(waits("db", "pod:web:ready"), state.Owner{}); err == nil {
			t.Fatal("a pod of a cycle was accepted")
		}
		const cycle = "WaitForCycle: waitFor[0]: pods wait for each other: db -> web -> db"
		m.expectMessage("web", "WaitingFor waiting for pod db: rejected: "+cycle)
		m.add(pod("db", spec.RestartAlways, "sleep 31536000"))
		m.until("web", "ready", isReady)
		m.delete("db")
		m.delete("web")
		m.add(waits("web", "pod:db:ready"))
		m.expectMessage("web", "WaitingFor waiting for pod db: not found")
	})
}

// TestPodSucceededAndDeleted deletes the pod as soon as it has succeeded.
func TestPodSucceededAndDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		for n := range 20 {
			name := fmt.Sprintf("web-%d", n)
			m.add(waits(name, "pod:migrate:succeeded"))
			m.add(pod("migrate", spec.RestartNever, "sleep 1"))
			m.untilPhase("migrate", lifecycle.PhaseSucceeded)
			m.delete("migrate")
			m.until(name, "ready", isReady)
			m.delete(name)
		}
	})
}

// TestPodSucceededBeforeRestart deletes the pod that was waited for just before the daemon restarts. A success before the wait does not
// count.
func TestPodSucceededBeforeRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.journal = &journal{}
		m.start()
		m.add(pod("migrate", spec.RestartNever, "sleep 1"))
		m.untilPhase("migrate", lifecycle.PhaseSucceeded)
		m.delete("migrate")
		time.Sleep(time.Second)
		m.host.set("path", false)
		m.add(waits("web", "pod:migrate:succeeded", "path:/dev/disk"))
		m.expectMessage("web", "WaitingFor waiting for pod migrate: not found, path /dev/disk: not found")
		m.disk.kill() // the condition is met, but that is not saved
		m.add(pod("migrate", spec.RestartNever, "sleep 1"))
		m.untilPhase("migrate", lifecycle.PhaseSucceeded)
		m.delete("migrate")
		m.crash()
		m.start()
		m.expectMessage("web", "WaitingFor waiting for path /dev/disk: not found")
	})
}

// TestWaitAfterReboot has pods that were ready before the reboot: their saved state does not count.
func TestWaitAfterReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(waits("db", "path:/dev/disk"))
		m.host.set("path", true)
		for n := range 5 {
			m.add(waits(fmt.Sprintf("web-%d", n), "pod:db:ready"))
			m.until(fmt.Sprintf("web-%d", n), "ready", isReady)
		}
		m.leave()
		m.host.set("path", false)
		m.engine.Reboot()
		m.boot = "boot-2"
		m.start()
		time.Sleep(time.Minute)
		for n := range 5 {
			m.expectMessage(fmt.Sprintf("web-%d", n), "WaitingFor waiting for pod db: not ready")
		}
		m.host.set("path", true)
		m.until("web-4", "ready", isReady)
	})
}

func TestWaitCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(waits("b", "pod:c:ready"))
		m.add(waits("c", "time-synced", "pod:a:succeeded"))
		cyclic := waits("a", "path:/dev/disk", "pod:other:ready", "pod:b:ready")
		_, err := m.Add(cyclic, state.Owner{})
		refused, is := errors.AsType[*supervisor.RefusedError](err)
		if !is || len(refused.Refusals) != 1 {
			t.Fatalf("error %v", err)
		}
		want := lifecycle.Refusal{
			Reason: lifecycle.ReasonWaitForCycle, Field: "waitFor[2]", Message: "pods wait for each other: a -> b -> c -> a",
			Hint: "remove one of these pods from waitFor",
		}
		if refused.Refusals[0] != want {
			t.Errorf("refusal %+v, want %+v", refused.Refusals[0], want)
		}
		m.delete("b")
		m.add(cyclic) // b is not known
		if _, err := m.Add(waits("b", "pod:d:ready", "pod:c:ready"), state.Owner{}); err == nil {
			t.Error("b waits for c, which waits for a, which waits for b")
		}
		m.add(waits("b", "pod:d:ready"))
	})
}
