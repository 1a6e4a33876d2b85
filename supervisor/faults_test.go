package supervisor_test

import (
	"context"
	"errors"
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

func count(story []string, line string) int {
	n := 0
	for _, s := range story {
		if s == line {
			n++
		}
	}
	return n
}

func TestPanicInAWatchIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var panicked sync.Map
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method != "WaitContainer" && c.Method != "WaitSandbox" {
				return nil
			}
			if _, before := panicked.LoadOrStore(c.Method, true); !before {
				panic("a bug")
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 5; exit 4"))
		s := m.untilPhase("p", lifecycle.PhaseFailed)
		if code := s.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 4 {
			t.Errorf("the exit code is %d, want the process's own", code)
		}
	})
}

func TestStopIsNotLostByLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		old := m.Supervisor
		m.leave()
		for range 20 {
			if err := old.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); !errors.Is(err, supervisor.ErrLeaving) {
				t.Fatalf("a stop that nobody hears any more: %v, want ErrLeaving", err)
			}
		}
	})
}

func TestPullingEndsWithThePull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{After: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "PullImage" {
				return lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "the engine is away"}
			}
			return nil
		}})
		m.start()
		p := pod("p", spec.RestartAlways, "true")
		p.Containers[0].ImagePullPolicy = spec.PullAlways
		m.add(p)
		time.Sleep(500 * time.Millisecond) // before it is tried again
		if s, _ := m.Pod("p"); len(s.Pulling) > 0 {
			t.Errorf("%v is told of though nothing is pulled", s.Pulling)
		}
	})
}

func TestExitIsToldWhoeverFindsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "StopContainer" {
				return lifecycle.Failure{Kind: lifecycle.FailureNotFound, Message: "not found"}
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); err != nil {
			t.Fatal(err)
		}
		m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		synctest.Wait()
		if story := m.story(); count(story, "ContainerFailed c0") != 1 {
			t.Errorf("the events are %v, want the end of c0 once", story)
		}
	})
}

// TestWhatGoesOnIsToldOnce lets things fail every second for a while, and expects room for other pods in the ring.
func TestWhatGoesOnIsToldOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		fails string
		why   lifecycle.Failure
		once  []string
	}{
		"an engine that is away": {
			"StartSandbox", lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "away"}, []string{"EngineUnavailable"},
		},
		"signals that cannot be sent": {
			"StopContainer", lifecycle.Failure{Message: "no"}, []string{"ContainerStopping c0", "SignalFailed c0"},
		},
		"kills that cannot be sent": {
			"KillContainer", lifecycle.Failure{Message: "no"}, []string{"ContainerKilled c0", "SignalFailed c0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, calls := time.Now(), 0
				m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
					if c.Method == tt.fails && time.Since(begun) < time.Minute {
						calls++
						return tt.why
					}
					return nil
				}})
				m.start()
				m.add(pod("p", spec.RestartAlways, "sleep 100000"))
				time.Sleep(time.Second)
				if err := m.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); err != nil && tt.fails != "StartSandbox" {
					t.Fatal(err)
				}
				m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
				synctest.Wait()
				story := m.story()
				for _, line := range tt.once {
					if count(story, line) != 1 {
						t.Errorf("after %d calls the events are %v, want %s once", calls, story, line)
					}
				}
			})
		})
	}
}

func TestLostClientIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.TerminationGracePeriodSeconds = 600
		if _, err := m.Add(p, state.Owner{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		m.untilGone("p")
		synctest.Wait()
		if story := m.story(); count(story, "PodStopping") != 1 {
			t.Errorf("the events are %v, want the stop once", story)
		}
	})
}

// TestEndNamesItsCause expects the exit that a pod failed by behind its failure, and the person who stopped it, not the
// disk, behind a stop.
func TestEndNamesItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 5; exit 3", "sleep 1"))
		m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		synctest.Wait()
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind != supervisor.PodFailed {
				continue
			}
			if cause := events[e.Cause-1]; cause.Kind != supervisor.ContainerFailed || cause.Container != "c0" {
				t.Errorf("the pod failed because of %s %s", cause.Kind, cause.Container)
			}
			return
		}
		t.Error("that the pod failed was not told")
	})
}

func TestDiskIsNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.disk.fail(errors.New("no space left on device"))
		m.add(pod("p", spec.RestartNever, "sleep 5"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Cause > 0 && events[e.Cause-1].Kind == supervisor.StateNotDurable {
				t.Errorf("%s is caused by a disk that is full", e.Kind)
			}
		}
		if !slices.ContainsFunc(events, func(e supervisor.Event) bool { return e.Kind == supervisor.StateNotDurable }) {
			t.Error("that the disk is full was not told")
		}
	})
}

// unnamed is an engine that holds sandboxes alone, whose pods it cannot name.
type unnamed struct{ *fakeruntime.Runtime }

func (u unnamed) Inventory(ctx context.Context) ([]lifecycle.Found, error) {
	list, err := u.Runtime.Inventory(ctx)
	for i := range list {
		list[i].Pod, list[i].Runs = nil, nil
	}
	return list, err
}

// TestLaterVersionIsLeftAloneUnnamed has a pod of a later version that has no container yet: its sandbox may be any pod's.
func TestLaterVersionIsLeftAloneUnnamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		uid := m.add(pod("p", spec.RestartAlways, "sleep 100000")).Facts.UID
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		m.crash()
		clear(m.disk.files)
		m.disk.bad = []state.Unusable{{Name: "p", File: "p.json", Err: errors.New("written by a later version"), Kept: true}}
		m.Supervisor = supervisor.New(t.Context(), supervisor.Options{Runtime: unnamed{m.engine}, Store: m.disk, Clock: m.clock})
		m.seen = 0
		if err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if len(m.engine.Running(uid)) != 1 {
			t.Error("its sandbox was touched")
		}
		m.expectStory("StateUnsupported")
	})
}

func TestUnreadableStateIsToldOfThoughNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.disk.bad = []state.Unusable{{Name: "p", File: "p.json.unreadable", Err: errors.New("unexpected end")}}
		m.start()
		m.expectStory("StateLost")
		if events, _ := m.Events().Since(0); events[0].Pod != "p" {
			t.Errorf("the event is %+v", events[0])
		}
	})
}
