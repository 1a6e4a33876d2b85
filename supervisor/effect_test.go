package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestPowerFailures expects no restart delay after a boot, however often the power fails.
func TestPowerFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000000"))
		for n := 2; n < 6; n++ {
			m.until("p", "up", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
			time.Sleep(24 * time.Hour)
			m.crash()
			m.engine.Reboot()
			m.boot, m.started = fmt.Sprintf("boot-%d", n), time.Now()
			m.start()
			m.until("p", "up", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
			if took := time.Since(m.started); took > 2*time.Second {
				t.Errorf("boot %d: ready after %v", n, took)
			}
		}
	})
}

// TestFailedWriteIsRetried expects that a failed write is retried although the loop handles messages all the time.
func TestFailedWriteIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Exec: func(lifecycle.Ref, []string) (fakeruntime.Program, bool) {
			return fakeruntime.Read([]string{"false"}), true
		}})
		m.start()
		m.disk.fail(errors.New("no space left on device"))
		p := pod("p", spec.RestartAlways, "sleep 1000000")
		p.Containers[0].ReadinessProbe = execProbe("fails") // each result is a message
		m.add(p)
		m.until("p", "not durable", func(s supervisor.Snapshot) bool { return s.NotDurable })
		time.Sleep(time.Minute)
		m.disk.fail(nil)
		time.Sleep(2 * time.Minute)
		if s, _ := m.Pod("p"); s.NotDurable || len(m.disk.files) != 1 {
			t.Errorf("2 minutes after the disk recovered: not durable %v, %d files", s.NotDurable, len(m.disk.files))
		}
	})
}

// TestFailedRemovals expects that a later removal also removes what earlier ones could not.
func TestFailedRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "RemoveContainer" && time.Since(started) < time.Hour {
				return errors.New("disk full")
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 1; exit 1"))
		time.Sleep(2 * time.Hour)
		if found, _ := m.engine.Inventory(t.Context()); len(found) != 1 || len(found[0].Runs) > 2 {
			t.Errorf("an hour after the last failure the engine has %+v", found)
		}
	})
}

// TestExitMarksEngineAvailable expects that the report of an exit marks the engine as available.
func TestExitMarksEngineAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "Exec" {
				return lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "unavailable"}
			}
			return nil
		}})
		m.start()
		p := pod("p", spec.RestartNever, "sleep 100000", "sleep 0.5")
		p.Containers[1].Lifecycle = &spec.Lifecycle{PostStart: execHook("true")}
		m.add(p)
		time.Sleep(time.Hour)
		if s, _ := m.Pod("p"); s.Status.Phase != lifecycle.PhaseRunning {
			t.Errorf("after an hour the pod is %s (%s)", s.Status.Phase, s.Status.Reason)
		}
	})
}

// TestEphemeralOfCompletingPod expects a rejection: the container would never run.
func TestEphemeralOfCompletingPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartNever, "sleep 5")
		p.InitContainers = []spec.Container{
			{Name: "side", Image: "image", RestartPolicy: spec.RestartAlways, Command: []string{"sleep", "100000"}},
		}
		m.add(p)
		time.Sleep(10 * time.Second) // the sidecar is in its grace period
		err := m.AddEphemeral(t.Context(), "p", "", &spec.Container{Name: "debug", Image: "image"}, "test")
		if _, refused := errors.AsType[*supervisor.RefusedError](err); !refused {
			t.Errorf("ephemeral container in a completing pod: %v, want a rejection", err)
		}
	})
}

// TestEphemeralIsGivenUp expects that an ephemeral container whose image cannot be pulled is removed from the pod, also from its state, and
// that its name can be used again.
func TestEphemeralIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "PullImage" && broken.Load() {
				return lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "connection refused"}
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.untilPhase("p", lifecycle.PhaseRunning)
		broken.Store(true)
		add := func() {
			c := &spec.Container{Name: "d", Image: "none", ImagePullPolicy: spec.PullAlways, Command: []string{"sleep", "100000"}}
			if err := m.AddEphemeral(t.Context(), "p", "", c, "test"); err != nil {
				t.Fatal(err)
			}
		}
		has := func(n int) func(supervisor.Snapshot) bool {
			return func(s supervisor.Snapshot) bool {
				return len(s.Status.EphemeralContainerStatuses) == n && len(s.Facts.Ephemeral) == n
			}
		}
		add()
		m.until("p", "one ephemeral container", has(1))
		m.until("p", "none", has(0))
		events, _ := m.Events().Since(0)
		if last := events[len(events)-1]; !strings.HasSuffix(last.Message, "removed, its image cannot be pulled: connection refused") {
			t.Errorf("the newest event is %q", last.Message)
		}
		m.engine.ForgetCalls()
		time.Sleep(time.Hour)
		for _, c := range m.engine.Calls() {
			if c.Method == "PullImage" {
				t.Error("the image is pulled again")
			}
		}
		m.leave()
		m.start()
		m.until("p", "none after a restart", has(0))
		broken.Store(false)
		add()
		m.until("p", "it runs", func(s supervisor.Snapshot) bool {
			list := s.Status.EphemeralContainerStatuses
			return len(list) == 1 && list[0].State.Running != nil
		})
	})
}

// TestEphemeralsMissingInState expects that ephemeral containers are recovered from the inventory if their write was lost.
func TestEphemeralsMissingInState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pulls := make(chan struct{})
		m := newMachine(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
			if c.Method == "PullImage" && c.Container == "slow" {
				select {
				case <-pulls:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 1000000"))
		m.until("p", "up", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		m.disk.fail(errors.New("no space left on device"))
		for _, name := range []string{"slow", "debug"} {
			c := &spec.Container{Name: name, Image: "image", Command: []string{"sleep", "100000"}}
			if err := m.AddEphemeral(t.Context(), "p", "", c, "test"); err != nil {
				t.Fatal(err)
			}
		}
		running := func(n int) func(supervisor.Snapshot) bool {
			return func(s supervisor.Snapshot) bool {
				for _, c := range s.Status.EphemeralContainerStatuses {
					if c.State.Running != nil {
						n--
					}
				}
				return n <= 0
			}
		}
		m.until("p", "debug running", running(1))
		m.crash()
		m.disk.fail(nil)
		close(pulls)
		m.start()
		s := m.until("p", "both running", running(2))
		if len(s.Pod.EphemeralContainers) != 2 {
			t.Errorf("the spec has %d ephemeral containers, want 2", len(s.Pod.EphemeralContainers))
		}
	})
}

// TestRemovalFailed expects a condition while the sandbox or the pod cannot be removed. A pod whose state cannot be saved either finishes
// its stop and its deletion when the disk works again.
func TestRemovalFailed(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		o      supervisor.StopOptions
	}{
		"stop":                   {"RemoveSandbox", supervisor.StopOptions{By: "test"}},
		"deletion, the sandbox":  {"RemoveSandbox", supervisor.StopOptions{By: "test", Delete: true}},
		"deletion, what is left": {"RemovePod", supervisor.StopOptions{By: "test", Delete: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.engine = fakeruntime.New(fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
					m.disk.mu.Lock()
					defer m.disk.mu.Unlock()
					if c.Method == tt.method {
						return m.disk.err
					}
					return nil
				}})
				m.start()
				m.add(pod("p", spec.RestartAlways, "sleep 100000"))
				m.until("p", "up", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
				m.disk.fail(errors.New("input/output error"))
				if err := m.Stop(t.Context(), "p", tt.o); err != nil {
					t.Fatal(err)
				}
				s := m.until("p", "not removed", func(s supervisor.Snapshot) bool {
					return hasCondition(s, supervisor.RemovalFailed) && hasCondition(s, supervisor.StateNotDurable)
				})
				if !s.Status.Phase.Terminal() || len(m.engine.Running(s.Facts.UID)) > 0 {
					t.Errorf("phase %s, running %v, want a terminated pod", s.Status.Phase, m.engine.Running(s.Facts.UID))
				}
				time.Sleep(time.Hour)
				if s, _ := m.Pod("p"); !hasCondition(s, supervisor.RemovalFailed) {
					t.Errorf("conditions after an hour: %+v", s.Status.Conditions)
				}
				m.disk.fail(nil)
				if tt.o.Delete {
					m.untilRemoved("p")
				} else {
					m.until("p", "at rest", func(s supervisor.Snapshot) bool {
						return s.AtRest && !s.NotDurable && !hasCondition(s, supervisor.RemovalFailed)
					})
				}
				m.leave()
				if stopped, exists := m.disk.files["p"]; exists == tt.o.Delete || exists && stopped.Facts.Stop.Requested.IsZero() {
					t.Errorf("state on the disk: %+v, exists: %v", stopped.Facts.Stop, exists)
				}
			})
		})
	}
}

// TestJoinedErrors expects joined errors of the runtime on one line.
func TestJoinedErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "StartContainer" || c.Method == "RemoveSandbox" {
				return errors.Join(errors.New("write a: read-only file system"), errors.New("remove b: read-only file system"))
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		const want = "write a: read-only file system; remove b: read-only file system"
		s := m.until("p", "waiting", func(s supervisor.Snapshot) bool {
			w := s.Status.ContainerStatuses[0].State.Waiting
			return w != nil && strings.HasPrefix(w.Message, "write a")
		})
		if got := s.Status.ContainerStatuses[0].State.Waiting.Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); err != nil {
			t.Fatal(err)
		}
		s = m.until("p", "not removed", func(s supervisor.Snapshot) bool { return hasCondition(s, supervisor.RemovalFailed) })
		if c := s.Status.Conditions[len(s.Status.Conditions)-1]; c.Message != want {
			t.Errorf("condition %+v, want the message %q", c, want)
		}
	})
}
