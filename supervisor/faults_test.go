package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"sync"
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

func count(events []string, line string) int {
	n := 0
	for _, s := range events {
		if s == line {
			n++
		}
	}
	return n
}

func TestPanicInWatch(t *testing.T) {
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

func TestStopDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
		old := m.Supervisor
		m.leave()
		for range 20 {
			if err := old.Stop(t.Context(), "p", supervisor.StopOptions{By: "test"}); !errors.Is(err, supervisor.ErrLeaving) {
				t.Fatalf("stop after the shutdown: %v, want ErrLeaving", err)
			}
		}
	})
}

func TestPullingAfterFailedPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{After: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "PullImage" {
				return lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "engine unavailable"}
			}
			return nil
		}})
		m.start()
		p := pod("p", spec.RestartAlways, "true")
		p.Containers[0].ImagePullPolicy = spec.PullAlways
		m.add(p)
		time.Sleep(500 * time.Millisecond) // before the retry
		if s, _ := m.Pod("p"); len(s.Pulling) > 0 {
			t.Errorf("pulling %v, want none", s.Pulling)
		}
	})
}

func TestExitFoundByKill(t *testing.T) {
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
		if events := m.emitted(); count(events, "ContainerFailed c0") != 1 {
			t.Errorf("the events are %v, want the exit of c0 once", events)
		}
	})
}

// TestRepeatedFailuresAreEmittedOnce expects one event for a failure that repeats every second.
func TestRepeatedFailuresAreEmittedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		fails string
		why   lifecycle.Failure
		once  []string
	}{
		"engine unavailable": {
			"StartSandbox", lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "unavailable"}, []string{"EngineUnavailable"},
		},
		"stop signals fail": {
			"StopContainer", lifecycle.Failure{Message: "no"}, []string{"ContainerStopping c0", "SignalFailed c0"},
		},
		"kills fail": {
			"KillContainer", lifecycle.Failure{Message: "no"}, []string{"ContainerKilled c0", "SignalFailed c0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started, calls := time.Now(), 0
				m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
					if c.Method == tt.fails && time.Since(started) < time.Minute {
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
				events := m.emitted()
				for _, line := range tt.once {
					if count(events, line) != 1 {
						t.Errorf("after %d calls the events are %v, want %s once", calls, events, line)
					}
				}
			})
		})
	}
}

func TestStopOfDisconnectedClientIsEmittedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartAlways, "sleep 100000")
		p.TerminationGracePeriodSeconds = 600
		if _, err := m.Add(p, state.Owner{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved("p")
		synctest.Wait()
		if events := m.emitted(); count(events, "PodStopping") != 1 {
			t.Errorf("the events are %v, want the stop once", events)
		}
	})
}

// TestCauseOfPodFailure expects the exit of the failed container as the cause.
func TestCauseOfPodFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 5; exit 3", "sleep 1"))
		m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		synctest.Wait()
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind != api.EventPodFailed {
				continue
			}
			if cause := events[e.Cause-1]; cause.Kind != api.EventContainerFailed || cause.Container != "c0" {
				t.Errorf("the cause of the failure of the pod is %s %s", cause.Kind, cause.Container)
			}
			return
		}
		t.Error("no event for the failure of the pod")
	})
}

func TestFullDiskIsNoCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.disk.fail(errors.New("no space left on device"))
		m.add(pod("p", spec.RestartNever, "sleep 5"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Cause > 0 && events[e.Cause-1].Kind == api.EventStateNotDurable {
				t.Errorf("the cause of %s is the full disk", e.Kind)
			}
		}
		if !slices.ContainsFunc(events, func(e event.Event) bool { return e.Kind == api.EventStateNotDurable }) {
			t.Error("no event for the full disk")
		}
	})
}

// unnamed is an engine with sandboxes but without containers, so that it cannot name the pods.
type unnamed struct{ *fakeruntime.Runtime }

func (u unnamed) Inventory(ctx context.Context) ([]lifecycle.Found, error) {
	list, err := u.Runtime.Inventory(ctx)
	for i := range list {
		list[i].Pod, list[i].Runs = nil, nil
	}
	return list, err
}

// TestLaterStateFileKeepsUnnamedSandbox has a state file of a later version and a sandbox that may belong to it.
func TestLaterStateFileKeepsUnnamedSandbox(t *testing.T) {
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
			t.Error("the sandbox was removed")
		}
		m.expectEvents("StateUnsupported")
	})
}

func TestUnreadableStateWithoutContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.disk.bad = []state.Unusable{{Name: "p", File: "p.json.unreadable", Err: errors.New("unexpected end")}}
		m.start()
		m.expectEvents("StateLost")
		if events, _ := m.Events().Since(0); events[0].Pod != "p" {
			t.Errorf("the event is %+v", events[0])
		}
	})
}
