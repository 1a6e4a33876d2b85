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

func TestTakenUpAsItWas(t *testing.T) {
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
				t.Errorf("after a restart of the supervisor the container is %+v, before it was %+v", got, want)
			}
			if len(m.engine.Running(after.Facts.UID)) != 1 {
				t.Errorf("%v run", m.engine.Running(after.Facts.UID))
			}
			m.expectStory("PodRecovered")
		}
		m.engine.Crash(before.Facts.UID, "c0", lifecycle.Exit{Code: 1})
		m.until("p", "restarted", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].RestartCount == 1 })
	})
}

func TestExitWhileNobodyWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 60; exit 4"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		begun := time.Now()
		m.crash()
		time.Sleep(time.Hour)
		m.start()
		s := m.untilPhase("p", lifecycle.PhaseFailed)
		end := s.Status.ContainerStatuses[0].State.Terminated
		if end.ExitCode != 4 || end.FinishedAt.Sub(begun) > 2*time.Minute {
			t.Errorf("the end is %+v, want code 4 a minute after the start at %v", end, begun)
		}
	})
}

// TestKillPoints kills the supervisor before and after every call of a pod's life, so that the effect has happened or
// not and nobody knows, and expects the same end as without: the recovery table of the design, row by row and more.
func TestKillPoints(t *testing.T) {
	calls := life(t, strike{})
	if len(calls) < 25 {
		t.Fatalf("the life took %d calls, too few to tell anything", len(calls))
	}
	rows := map[string]bool{}
	for i, method := range calls {
		rows[method] = true
		t.Run(fmt.Sprintf("before %s, call %d", method, i+1), func(t *testing.T) { life(t, strike{at: i + 1}) })
		t.Run(fmt.Sprintf("after %s, call %d", method, i+1), func(t *testing.T) { life(t, strike{at: i + 1, after: true}) })
		t.Run(fmt.Sprintf("after %s, call %d, with the last writes lost", method, i+1), func(t *testing.T) {
			life(t, strike{at: i + 1, after: true, lost: 8})
		})
	}
	for _, method := range []string{
		"PullImage", "StartSandbox", "WaitSandbox", "StartContainer", "WaitContainer", "StopContainer", "KillContainer",
		"RemoveContainer", "RemoveSandbox", "RemovePod",
	} {
		if !rows[method] {
			t.Errorf("no life was struck at %s", method)
		}
	}
}

// strike says when a supervisor is killed: at which of its calls to the engine (0: never), before or after the effect,
// and with how many calls before that its writes no longer reached the disk.
type strike struct {
	at, lost int
	after    bool
}

// life lets a pod run through everything that needs an action, kills the supervisor as k says, and checks that the pod
// got what it would have got without. It returns the calls until the kill.
func life(t *testing.T, k strike) (calls []string) {
	synctest.Test(t, func(t *testing.T) {
		var m *machine
		kill := func(ctx context.Context) error {
			m.disk.kill()
			close(m.struck)
			<-ctx.Done() // nobody hears the answer
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
		m.struck = make(chan struct{})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 1000000", "sleep 5; exit 1")
		p.InitContainers = []spec.Container{{Name: "init", Image: "image", Command: []string{"sh", "-c", "sleep 3; echo once"}}}
		m.add(p)
		s := m.until("p", "restarted twice", func(s supervisor.Snapshot) bool {
			return s.Status.ContainerStatuses[1].RestartCount == 2 && s.Status.ContainerStatuses[0].Ready
		})
		if c := s.Status.InitContainerStatuses[0]; c.RestartCount != 0 || c.State.Terminated == nil {
			t.Errorf("the init container is %+v, want it to have run once", c)
		}
		if c := s.Status.ContainerStatuses[0]; c.RestartCount != 0 {
			t.Errorf("container c0 is %+v, want it to run on", c)
		}
		time.Sleep(time.Minute)
		if running := m.engine.Running(s.Facts.UID); len(running) > 2 {
			t.Errorf("%v run", running)
		}
		ten := 10 * time.Second
		for known := true; known; _, known = m.Pod("p") { // a client whose request was lost repeats it
			err := m.Stop(t.Context(), "p", supervisor.StopOptions{Grace: &ten, Delete: true, By: "test"})
			if err != nil && !errors.Is(err, supervisor.ErrNotFound) { // which it may be since the first request
				t.Fatal(err)
			}
			m.untilGoneOrStruck("p")
		}
		synctest.Wait()
		if found, _ := m.engine.Inventory(t.Context()); len(found) > 0 {
			t.Errorf("the engine still holds %+v", found)
		}
		if len(m.disk.files) > 0 {
			t.Errorf("the disk still holds %v", m.disk.files)
		}
		if waits := k.at > 0 && calls[k.at-1] == "WaitSandbox"; k.at > 0 && !done && !waits {
			t.Error("the supervisor was never struck")
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
		m.expectStory("HostRebooted", "PodRecovered", "SandboxReady", "ImagePresent init", "ContainerCreated init", "ContainerStarted init",
			"ContainerSucceeded init", "ImagePresent c0", "ContainerCreated c0", "ContainerStarted c0")
	})
}

func TestStopHoldsOverAReboot(t *testing.T) {
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
		if s, known := m.Pod("known"); !known || !s.Status.ContainerStatuses[0].Ready || s.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("the pod whose state was lost is %+v", s.Status)
		}
		if _, known := m.Pod("orphan"); known {
			t.Error("the pod that no state spoke of goes on")
		}
		if story := m.story(); !slices.Contains(story, "StateLost") || !slices.Contains(story, "OrphanFound") {
			t.Errorf("the events are %v", story)
		}
	})
}

func TestLaterVersionIsLeftAlone(t *testing.T) {
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
			t.Error("its container was touched")
		}
		var taken *supervisor.NameTakenError
		if _, err := m.Add(pod("p", spec.RestartNever, "true"), state.Owner{}); !errors.As(err, &taken) {
			t.Errorf("adding a pod of that name: %v, want a NameTakenError", err)
		}
	})
}

func TestDiskThatHangsOrFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.disk.hang = make(chan struct{})
		m.add(pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000 & wait"))
		s := m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		begun := time.Now()
		answered := make(chan error, 1)
		go func() { answered <- m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}) }()
		m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		if took := time.Since(begun); took > 0 {
			t.Errorf("a stop waited %v for the disk", took)
		}
		if err := <-answered; err != nil || time.Since(begun) != 10*time.Second {
			t.Errorf("the stop was answered after %v: %v, want 10 s for the disk", time.Since(begun), err)
		}
		if len(m.engine.Running(s.Facts.UID)) != 0 {
			t.Error("it still runs")
		}
		m.disk.fail(errors.New("no space left on device"))
		close(m.disk.hang)
		m.until("p", "known not to be durable", func(s supervisor.Snapshot) bool { return s.NotDurable })
		if story := m.story(); !slices.Contains(story, "StateNotDurable") {
			t.Errorf("the events are %v", story)
		}
		m.disk.fail(nil)
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
		m.untilGone("p")
	})
}

func TestOnePodsTroubleIsItsOwn(t *testing.T) {
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
		begun := time.Now()
		m.untilPhase("well", lifecycle.PhaseSucceeded)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("a pod beside one that hangs took %v", took)
		}
	})
}

func TestPanicInAnEffectIsAFailure(t *testing.T) {
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
		if story := m.story(); len(story) < 3 || story[1] != "SandboxFailed" || story[2] != "SandboxFailed" {
			t.Errorf("the events are %v", story)
		}
	})
}

func TestAcceptedIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.crash()
		m.start()
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
	})
}

func TestFailedWriteIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.disk.fail(errors.New("no space left on device"))
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "known not to be durable", func(s supervisor.Snapshot) bool { return s.NotDurable })
		m.disk.fail(nil)
		time.Sleep(2 * time.Minute) // in which nothing happens to the pod
		synctest.Wait()
		if s, _ := m.Pod("p"); s.NotDurable {
			t.Error("the state is not durable though the disk has recovered")
		}
		m.crash()
		m.start()
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
	})
}

// TestSilentPullIsTold: that a registry is asked is told before it answers.
func TestSilentPullIsTold(t *testing.T) {
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
		m.expectStory("PodAccepted", "SandboxReady", "ImagePulling c0")
	})
}
