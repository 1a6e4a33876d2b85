package supervisor_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func TestPodSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("hello", spec.RestartNever, "sleep 5")
		p.InitContainers = []spec.Container{{Name: "init", Image: "image", Command: []string{"true"}}}
		m.add(p)
		s := m.until("hello", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		if s.Status.Phase != lifecycle.PhaseSucceeded {
			t.Errorf("the phase is %s", s.Status.Phase)
		}
		m.expectStory("PodAccepted", "SandboxReady", "ImagePulling init", "ImagePulled init", "ContainerCreated init", "ContainerStarted init",
			"ContainerSucceeded init", "ImagePresent c0", "ContainerCreated c0", "ContainerStarted c0", "ContainerSucceeded c0", "PodSucceeded")
	})
}

func TestEventsNameTheirCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("crash", spec.RestartAlways, "exit 3"))
		m.until("crash", "restarted twice", func(s supervisor.Snapshot) bool {
			return s.Status.ContainerStatuses[0].RestartCount == 2
		})
		synctest.Wait()
		events, missed := m.Events().Since(0)
		if missed != 0 {
			t.Fatalf("%d events are missing", missed)
		}
		var chain []string // from the last event back to the first
		for seq := events[len(events)-1].Seq; seq != 0; seq = events[seq-1].Cause {
			if len(chain) > len(events) || events[seq-1].Cause >= seq {
				t.Fatalf("event %d is caused by %d", seq, events[seq-1].Cause)
			}
			chain = append(chain, string(events[seq-1].Kind))
		}
		if got, want := chain[len(chain)-1], string(supervisor.PodAccepted); got != want {
			t.Errorf("the first cause is %s, want %s", got, want)
		}
		if !slices.Contains(chain, string(supervisor.ContainerBackOff)) || !slices.Contains(chain, string(supervisor.ContainerFailed)) {
			t.Errorf("a restart's causes are %v: no exit or no back-off among them", chain)
		}
	})
}

func TestStop(t *testing.T) {
	zero, five := time.Duration(0), 5*time.Second
	for _, tt := range []struct {
		name    string
		command string
		grace   *time.Duration
		again   *time.Duration // asked for one second after the first
		within  time.Duration
		code    int
	}{
		{"a process that obeys ends at once", "trap 'exit 0' TERM; sleep 1000 & wait", nil, nil, 0, 0},
		{"one that ignores the signal is killed when its grace is over", "sleep 1000", nil, nil, 30 * time.Second, 137},
		{"a shorter grace is honoured", "sleep 1000", &five, nil, 5 * time.Second, 137},
		{"a second request shortens it", "sleep 1000", nil, &five, 6 * time.Second, 137},
		{"force ends it at once", "sleep 1000", nil, &zero, time.Second, 137},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				m.add(pod("p", spec.RestartAlways, tt.command))
				m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
				begun := time.Now()
				stop := func(grace *time.Duration) {
					if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Grace: grace, By: "test"}); err != nil {
						t.Fatal(err)
					}
				}
				stop(tt.grace)
				if tt.again != nil {
					time.Sleep(time.Second)
					stop(tt.again)
				}
				s := m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
				if took := time.Since(begun); took != tt.within {
					t.Errorf("it took %v, want %v", took, tt.within)
				}
				if code := s.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != tt.code {
					t.Errorf("the exit code is %d, want %d", code, tt.code)
				}
			})
		})
	}
}

func TestDeleteLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 1000 & wait", "exit 1"))
		time.Sleep(time.Minute)
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
		m.untilGone("p")
		synctest.Wait()
		if found, _ := m.engine.Inventory(t.Context()); len(found) > 0 {
			t.Errorf("the engine still holds %+v", found)
		}
		if len(m.disk.files) > 0 {
			t.Errorf("the disk still holds %v", m.disk.files)
		}
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{}); !errors.Is(err, supervisor.ErrNotFound) {
			t.Errorf("stopping it again: %v, want ErrNotFound", err)
		}
		m.add(pod("p", spec.RestartNever, "true")) // the name is free
		m.untilPhase("p", lifecycle.PhaseSucceeded)
	})
}

func TestNameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		if _, err := m.Add(pod("p", spec.RestartAlways, "sleep 1000"), state.Owner{By: "podstead run, pid 7"}); err != nil {
			t.Fatal(err)
		}
		_, err := m.Add(pod("p", spec.RestartAlways, "true"), state.Owner{})
		taken, is := errors.AsType[*supervisor.NameTakenError](err)
		if !is || taken.Name != "p" || !strings.Contains(taken.Holder, "podstead run, pid 7") {
			t.Errorf("adding it again: %v, want a NameTakenError that names the holder", err)
		}
	})
}

func TestLostClientEndsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		if _, err := m.Add(pod("p", spec.RestartAlways, "sleep 100000"), state.Owner{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		m.add(pod("other", spec.RestartAlways, "sleep 100000"))
		for range 10 {
			time.Sleep(supervisor.SessionTimeout - time.Second)
			if !m.Touch("s") {
				t.Fatal("the session is not known")
			}
		}
		m.leave() // the daemon is upgraded: the session goes on
		m.start()
		time.Sleep(supervisor.SessionTimeout - time.Second)
		if s, known := m.Pod("p"); !known || !s.Facts.Stop.Requested.IsZero() {
			t.Fatal("the pod was ended before its client was silent for long enough")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s, _ := m.Pod("p"); s.Facts.Stop.Requested.IsZero() {
			t.Error("the pod goes on though its client is lost")
		}
		m.untilGone("p")
		if s, _ := m.Pod("other"); !s.Facts.Stop.Requested.IsZero() {
			t.Error("a pod without a session was ended")
		}
		time.Sleep(2 * supervisor.SessionTimeout)
		if m.Touch("s") {
			t.Error("the session is known though it has no pods")
		}
	})
}

func TestLostClientKeepsWhatItWantedKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		for name, command := range map[string]string{"done": "true", "goes-on": "sleep 100000"} {
			if _, err := m.Add(pod(name, spec.RestartNever, command), state.Owner{Session: "s", Keep: true}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * supervisor.SessionTimeout)
		for _, name := range []string{"done", "goes-on"} {
			if s, known := m.Pod(name); !known || !s.AtRest {
				t.Errorf("pod %s: known %v, %+v; want it kept, and at rest", name, known, s.Status)
			}
		}
		if m.Touch("s") {
			t.Error("the session is known though none of its pods has to end")
		}
	})
}
