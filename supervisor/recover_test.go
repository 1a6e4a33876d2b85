package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func TestRecoverRunningPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		before := m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		for _, end := range []func(){m.leave, m.crash} {
			end()
			time.Sleep(time.Hour)
			m.start()
			time.Sleep(time.Second)
			after, _ := m.Pod("p")
			if got, want := after.Status.ContainerStatuses[0], before.Status.ContainerStatuses[0]; got.ContainerID != want.ContainerID ||
				got.RestartCount != 0 || !got.Ready {
				t.Errorf("after the restart the container is %+v, want %+v", got, want)
			}
			if len(m.engine.Running(after.Facts.UID)) != 1 {
				t.Errorf("running: %v", m.engine.Running(after.Facts.UID))
			}
			m.expectEvents("PodRecovered")
		}
		m.engine.Crash(before.Facts.UID, "c0", lifecycle.Exit{Code: 1})
		m.until("p", "restarted", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].RestartCount == 1 })
	})
}

func TestExitDuringDaemonRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 60; exit 4"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		started := time.Now()
		m.crash()
		time.Sleep(time.Hour)
		m.start()
		s := m.untilPhase("p", lifecycle.PhaseFailed)
		end := s.Status.ContainerStatuses[0].State.Terminated
		if end.ExitCode != 4 || end.FinishedAt.Sub(started) > 2*time.Minute {
			t.Errorf("the exit is %+v, want code 4 one minute after the start at %v", end, started)
		}
	})
}

// TestKillPoints kills the supervisor before and after every call to the engine in the life of a pod. The effect has happened or not, and
// the supervisor does not know. It expects the same result as without a kill.
func TestKillPoints(t *testing.T) {
	calls := life(t, killPoint{})
	if len(calls) < 25 {
		t.Fatalf("the pod needed %d calls, too few for this test", len(calls))
	}
	rows := map[string]bool{}
	for i, method := range calls {
		rows[method] = true
		t.Run(fmt.Sprintf("before %s, call %d", method, i+1), func(t *testing.T) { life(t, killPoint{at: i + 1}) })
		t.Run(fmt.Sprintf("after %s, call %d", method, i+1), func(t *testing.T) { life(t, killPoint{at: i + 1, after: true}) })
		t.Run(fmt.Sprintf("after %s, call %d, last writes lost", method, i+1), func(t *testing.T) {
			life(t, killPoint{at: i + 1, after: true, lost: 8})
		})
	}
	for _, method := range []string{
		"PullImage", "StartSandbox", "WaitSandbox", "StartContainer", "WaitContainer", "StopContainer", "KillContainer",
		"RemoveContainer", "RemoveSandbox", "RemovePod",
	} {
		if !rows[method] {
			t.Errorf("no kill at %s", method)
		}
	}
}

// killPoint is when a supervisor is killed: at which of its calls to the engine (0: never), before or after the effect, and how many calls
// earlier writes stop to reach the disk.
type killPoint struct {
	at, lost int
	after    bool
}

// life runs a pod through everything that needs an action, kills the supervisor at k, and checks that the result is the same as without the
// kill. It returns the calls until the kill.
func life(t *testing.T, k killPoint) (calls []string) {
	synctest.Test(t, func(t *testing.T) {
		var m *machine
		kill := func(ctx context.Context) error {
			m.disk.kill()
			close(m.killed)
			<-ctx.Done() // the result is lost
			return ctx.Err()
		}
		var mu sync.Mutex
		done := false
		strikes := func(c fakeruntime.Call, after bool) bool {
			mu.Lock()
			defer mu.Unlock()
			if done || c.Method == "Inventory" {
				return false
			}
			if !after {
				calls = append(calls, c.Method)
				if k.lost > 0 && len(calls) == k.at-k.lost {
					m.disk.kill()
				}
				done = len(calls) == k.at && !k.after
			} else {
				done = k.after && len(calls) >= k.at && c.Method == calls[k.at-1]
			}
			return done
		}
		m = newMachine(t, fakeruntime.Options{
			Before: func(ctx context.Context, c fakeruntime.Call) error {
				if strikes(c, false) {
					return kill(ctx)
				}
				return nil
			},
			After: func(ctx context.Context, c fakeruntime.Call) error {
				if strikes(c, true) {
					return kill(ctx)
				}
				return nil
			},
		})
		m.killed = make(chan struct{})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 1000000", "sleep 5; exit 1")
		p.InitContainers = []spec.Container{{Name: "init", Image: "image", Command: []string{"sh", "-c", "sleep 3; echo once"}}}
		m.add(p)
		s := m.until("p", "restarted twice", func(s supervisor.Snapshot) bool {
			return s.Status.ContainerStatuses[1].RestartCount == 2 && s.Status.ContainerStatuses[0].Ready
		})
		if c := s.Status.InitContainerStatuses[0]; c.RestartCount != 0 || c.State.Terminated == nil {
			t.Errorf("the init container is %+v, want one attempt", c)
		}
		if c := s.Status.ContainerStatuses[0]; c.RestartCount != 0 {
			t.Errorf("container c0 is %+v, want it running", c)
		}
		time.Sleep(time.Minute)
		if running := m.engine.Running(s.Facts.UID); len(running) > 2 {
			t.Errorf("running: %v", running)
		}
		ten := 10 * time.Second
		for exists := true; exists; _, exists = m.Pod("p") { // the client repeats a lost request
			err := m.Stop(t.Context(), "p", supervisor.StopOptions{Grace: &ten, Delete: true, By: "test"})
			if err != nil && !errors.Is(err, supervisor.ErrNotFound) { // after a request that was handled
				t.Fatal(err)
			}
			m.untilRemovedOrKilled("p")
		}
		synctest.Wait()
		if found, _ := m.engine.Inventory(t.Context()); len(found) > 0 {
			t.Errorf("the engine still has %+v", found)
		}
		if len(m.disk.files) > 0 {
			t.Errorf("the disk still has %v", m.disk.files)
		}
		if waits := k.at > 0 && calls[k.at-1] == "WaitSandbox"; k.at > 0 && !done && !waits {
			t.Error("the supervisor was never killed")
		}
	})
	return calls
}

func TestReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.InitContainers = []spec.Container{{Name: "init", Image: "image", Command: []string{"true"}}}
		m.add(p)
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		m.crash()
		m.engine.Reboot()
		m.boot = "boot-2"
		m.start()
		s := m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		if s.Facts.Round != 2 || s.Status.ContainerStatuses[0].RestartCount != 1 || s.Status.InitContainerStatuses[0].RestartCount != 1 {
			t.Errorf("after a reboot: round %d, %+v", s.Facts.Round, s.Status)
		}
		m.expectEvents("HostRebooted", "PodRecovered", "SandboxReady", "ImagePresent init", "ContainerCreated init",
			"ContainerStarted init",
			"ContainerSucceeded init", "ImagePresent c0", "ContainerCreated c0", "ContainerStarted c0")
	})
}

func TestStopBeforeReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m.crash()
		m.engine.Reboot()
		m.boot = "boot-2"
		m.start()
		time.Sleep(time.Hour)
		if s, _ := m.Pod("p"); !s.AtRest || s.Status.Phase != lifecycle.PhaseFailed {
			t.Errorf("a stopped pod is %s after a reboot, at rest: %v", s.Status.Phase, s.AtRest)
		}
	})
}

func TestStateLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("known", spec.RestartAlways, "sleep 100000"))
		m.add(pod("orphan", spec.RestartAlways, "sleep 100000"))
		for _, name := range []string{"known", "orphan"} {
			m.until(name, "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		}
		m.crash()
		clear(m.disk.files)
		m.disk.bad = []state.Unusable{{Name: "known", File: "known.json.unreadable", Err: errors.New("unexpected end")}}
		m.start()
		time.Sleep(time.Minute)
		if s, exists := m.Pod("known"); !exists || !s.Status.ContainerStatuses[0].Ready || s.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("the pod with the lost state is %+v", s.Status)
		}
		if events := m.emitted(); !slices.Contains(events, "StateLost") || !slices.Contains(events, "OrphanFound") {
			t.Errorf("the events are %v", events)
		}
		for range 2 { // the mark is kept
			if s, exists := m.Pod("orphan"); !exists || !s.Owner.Orphan || !s.Status.ContainerStatuses[0].Ready ||
				s.Status.ContainerStatuses[0].RestartCount != 0 {
				t.Errorf("the orphaned pod is %+v, owner %+v", s.Status, s.Owner)
			}
			m.disk.bad = nil
			m.restartKilled()
			time.Sleep(time.Minute)
		}
		if s, _ := m.Pod("known"); s.Owner.Orphan {
			t.Error("a pod whose state file was renamed counts as orphaned")
		}
	})
}

func TestLaterStateFileKeepsContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		s := m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		m.crash()
		clear(m.disk.files)
		m.disk.bad = []state.Unusable{{Name: "p", File: "p.json", Err: errors.New("written by a later version"), Kept: true}}
		m.start()
		time.Sleep(time.Hour)
		if len(m.engine.Running(s.Facts.UID)) != 1 {
			t.Error("the container was stopped or removed")
		}
		shown, exists := m.Pod("p")
		if !exists || len(m.Pods()) != 1 || m.Count() != 1 || shown.Facts.UID != s.Facts.UID ||
			shown.Status.Reason != lifecycle.ReasonNewerState {
			t.Errorf("the pod is %+v, want it with the reason NewerState", shown)
		}
		var taken *supervisor.NameTakenError
		if _, err := m.Add(pod("p", spec.RestartNever, "true"), state.Owner{}); !errors.As(err, &taken) {
			t.Errorf("add with the blocked name: %v, want a NameTakenError", err)
		}
		var newer *supervisor.NotSupervisedError
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true}); !errors.As(err, &newer) {
			t.Errorf("delete without force: %v, want a NotSupervisedError", err)
		}
		if err := m.SetCondition(t.Context(), "p", "", "c", lifecycle.SetCondition{Status: "True"}, ""); !errors.As(err, &newer) {
			t.Errorf("set a condition: %v, want a NotSupervisedError", err)
		}
		force := supervisor.StopOptions{UID: s.Facts.UID, Grace: new(time.Duration), Delete: true, By: "test"}
		if err := m.Stop(t.Context(), "p", force); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved("p")
		if found, err := m.engine.Inventory(t.Context()); err != nil || len(found) > 0 {
			t.Errorf("after the forced deletion the engine still has %+v, %v", found, err)
		}
		m.add(pod("p", spec.RestartNever, "true"))
	})
}

func TestDiskHangsAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.disk.hang = make(chan struct{})
		added := time.Now()
		s := m.add(pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait"))
		i := slices.IndexFunc(s.Status.Conditions, func(c lifecycle.Condition) bool { return c.Type == supervisor.StateNotDurable })
		if took := time.Since(added); took != 3*time.Second || i < 0 || s.Status.Conditions[i].Status != "True" ||
			s.Status.Conditions[i].Reason != "WriteTimeout" {
			t.Errorf("added after %v with the conditions %+v, want 3 s and StateNotDurable", took, s.Status.Conditions)
		}
		if events := m.emitted(); !slices.Contains(events, "StateNotDurable") {
			t.Errorf("the events while the disk hangs are %v", events)
		}
		s = m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		started := time.Now()
		answered := make(chan error, 1)
		go func() { answered <- m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}) }()
		m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		if took := time.Since(started); took > 0 {
			t.Errorf("the stop signal waited %v for the disk", took)
		}
		if s, _ := m.Pod("p"); s.Status.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("the exited container is shown as %+v", s.Status.ContainerStatuses[0])
		}
		if err := <-answered; err != nil || time.Since(started) != 3*time.Second {
			t.Errorf("Stop returned after %v: %v, want 3 s", time.Since(started), err)
		}
		if len(m.engine.Running(s.Facts.UID)) != 0 {
			t.Error("the container still runs")
		}
		m.disk.fail(errors.New("no space left on device"))
		close(m.disk.hang)
		synctest.Wait()
		s = m.until("p", "not durable", func(s supervisor.Snapshot) bool { return s.NotDurable })
		i = slices.IndexFunc(s.Status.Conditions, func(c lifecycle.Condition) bool { return c.Type == supervisor.StateNotDurable })
		if s.Status.Conditions[i].Reason != "WriteFailed" || s.Status.Conditions[i].Message != "no space left on device" {
			t.Errorf("the condition is %+v, want the error of the write", s.Status.Conditions[i])
		}
		if events := m.emitted(); slices.Contains(events, "StateNotDurable") || slices.Contains(events, "StateDurable") {
			t.Errorf("the events after the write has failed are %v, want no other one about the state", events)
		}
		m.disk.fail(nil)
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved("p")
	})
}

func TestHangingPodDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
			if c.Container == "c0" && c.Method == "StartContainer" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		m.start()
		m.add(pod("wedged", spec.RestartAlways, "sleep 1000", "sleep 1000", "sleep 1000"))
		well := pod("well", spec.RestartNever, "sleep 5")
		well.Containers[0].Name = "c"
		m.add(well)
		started := time.Now()
		m.untilPhase("well", lifecycle.PhaseSucceeded)
		if took := time.Since(started); took > time.Minute {
			t.Errorf("the other pod took %v", took)
		}
	})
}

func TestPanicInEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 2
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "StartSandbox" && panics > 0 {
				panics--
				panic("a bug")
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartNever, "true"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		if events := m.emitted(); len(events) < 3 || events[1] != "SandboxFailed" || events[2] != "SandboxFailed" {
			t.Errorf("the events are %v", events)
		}
	})
}

func TestAddIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.crash()
		m.start()
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
	})
}

func TestFailedWriteIsRetriedWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.disk.fail(errors.New("no space left on device"))
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "not durable", func(s supervisor.Snapshot) bool { return s.NotDurable })
		m.disk.fail(nil)
		time.Sleep(2 * time.Minute) // without a message for the pod
		synctest.Wait()
		if s, _ := m.Pod("p"); s.NotDurable {
			t.Error("the state is not durable although the disk has recovered")
		}
		m.crash()
		m.start()
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
	})
}

// TestPullIsEmittedAtStart expects the event of a pull before the registry answers.
func TestPullIsEmittedAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
			if c.Method == "PullImage" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "true"))
		synctest.Wait()
		m.expectEvents("PodAccepted", "SandboxReady", "ImagePulling c0")
	})
}
