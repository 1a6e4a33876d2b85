package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestPowerCuts: a container that runs well is not delayed at the next boot, however often the machine loses its power.
func TestPowerCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000000"))
		for n := 2; n < 6; n++ {
			m.until("p", "up", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
			time.Sleep(24 * time.Hour)
			m.crash()
			m.engine.Reboot()
			m.boot, m.begun = fmt.Sprintf("boot-%d", n), time.Now()
			m.start()
			m.until("p", "up", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
			if took := time.Since(m.begun); took > 2*time.Second {
				t.Errorf("boot %d: it was up after %v", n, took)
			}
		}
	})
}

// TestDiskIsTriedAgain: a state that could not be written is, once the disk is well, whatever else the pod hears of.
func TestDiskIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Exec: func(lifecycle.Ref, []string) (fakeruntime.Program, bool) {
			return fakeruntime.Read([]string{"false"}), true
		}})
		m.start()
		m.disk.fail(errors.New("no space left on device"))
		p := pod("p", spec.RestartAlways, "sleep 1000000")
		p.Containers[0].ReadinessProbe = execProbe("fails") // each answer is a message
		m.add(p)
		m.until("p", "known not to be durable", func(s supervisor.Snapshot) bool { return s.NotDurable })
		time.Sleep(time.Minute)
		m.disk.fail(nil)
		time.Sleep(2 * time.Minute)
		if s, _ := m.Pod("p"); s.NotDurable || len(m.disk.files) != 1 {
			t.Errorf("2 minutes after the disk is well: not durable %v, %d files", s.NotDurable, len(m.disk.files))
		}
	})
}

// TestFailedRemovals: what could not be removed goes with what is removed next.
func TestFailedRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "RemoveContainer" && time.Since(begun) < time.Hour {
				return errors.New("disk full")
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 1; exit 1"))
		time.Sleep(2 * time.Hour)
		if found, _ := m.engine.Inventory(t.Context()); len(found) != 1 || len(found[0].Runs) > 2 {
			t.Errorf("an hour after the last failure the engine holds %+v", found)
		}
	})
}

// TestEngineAnswersAWatch: an engine that was away is there when the end of what runs is told, though nothing else is asked.
func TestEngineAnswersAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "Exec" {
				return lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "away"}
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

// TestEphemeralOfAPodThatFinishes is refused: it would never run.
func TestEphemeralOfAPodThatFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartNever, "sleep 5")
		p.InitContainers = []spec.Container{{Name: "side", Image: "image", RestartPolicy: spec.RestartAlways, Command: []string{"sleep", "100000"}}}
		m.add(p)
		time.Sleep(10 * time.Second) // the sidecar has its grace period
		err := m.AddEphemeral(t.Context(), "p", "", &spec.Container{Name: "debug", Image: "image"}, "test")
		if _, refused := errors.AsType[*supervisor.RefusedError](err); !refused {
			t.Errorf("an ephemeral container in a pod whose work is done: %v, want a refusal", err)
		}
	})
}

// TestEphemeralsThatOnlyTheEngineKnows are taken up with all that they are.
func TestEphemeralsThatOnlyTheEngineKnows(t *testing.T) {
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
