package supervisor_test

import (
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
		m.expectEvents("PodAccepted", "SandboxReady", "ImagePulling init", "ImagePulled init", "ContainerCreated init",
			"ContainerStarted init",
			"ContainerSucceeded init", "ImagePresent c0", "ContainerCreated c0", "ContainerStarted c0", "ContainerSucceeded c0",
			"PodSucceeded")
	})
}

func TestCausesOfEvents(t *testing.T) {
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
		var chain []string // from the last event to the first
		for seq := events[len(events)-1].Seq; seq != 0; seq = events[seq-1].Cause {
			if len(chain) > len(events) || events[seq-1].Cause >= seq {
				t.Fatalf("the cause of event %d is %d", seq, events[seq-1].Cause)
			}
			chain = append(chain, string(events[seq-1].Kind))
		}
		if got, want := chain[len(chain)-1], string(api.EventPodAccepted); got != want {
			t.Errorf("the first cause is %s, want %s", got, want)
		}
		if !slices.Contains(chain, string(api.EventContainerBackOff)) || !slices.Contains(chain, string(api.EventContainerFailed)) {
			t.Errorf("the causes of a restart are %v, want an exit and a back-off", chain)
		}
	})
}

func TestStop(t *testing.T) {
	zero, five := time.Duration(0), 5*time.Second
	for _, tt := range []struct {
		name    string
		command string
		grace   *time.Duration
		again   *time.Duration // of a second request one second later
		within  time.Duration
		code    int
	}{
		{"process exits at the stop signal", "trap 'exit 0' TERM; sleep 1000 & wait", nil, nil, 0, 0},
		{"process ignores the stop signal", "sleep 1000", nil, nil, 30 * time.Second, 137},
		{"shorter grace period requested", "sleep 1000", &five, nil, 5 * time.Second, 137},
		{"grace period shortened by a second request", "sleep 1000", nil, &five, 6 * time.Second, 137},
		{"grace period 0", "sleep 1000", nil, &zero, time.Second, 137},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				m.add(pod("p", spec.RestartAlways, tt.command))
				m.until("p", "ready", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready })
				started := time.Now()
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
				if took := time.Since(started); took != tt.within {
					t.Errorf("it took %v, want %v", took, tt.within)
				}
				if code := s.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != tt.code {
					t.Errorf("the exit code is %d, want %d", code, tt.code)
				}
			})
		})
	}
}

func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 1000 & wait", "exit 1"))
		time.Sleep(time.Minute)
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved("p")
		synctest.Wait()
		if found, _ := m.engine.Inventory(t.Context()); len(found) > 0 {
			t.Errorf("the engine still has %+v", found)
		}
		if len(m.disk.files) > 0 {
			t.Errorf("the disk still has %v", m.disk.files)
		}
		if err := m.Stop(t.Context(), "p", supervisor.StopOptions{}); !errors.Is(err, supervisor.ErrNotFound) {
			t.Errorf("second stop: %v, want ErrNotFound", err)
		}
		m.add(pod("p", spec.RestartNever, "true")) // the name can be used again
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
			t.Errorf("second add: %v, want a NameTakenError with the holder", err)
		}
	})
}

func TestSessionTimeoutStopsPods(t *testing.T) {
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
				t.Fatal("the session does not exist")
			}
		}
		m.leave() // the session survives an upgrade of the daemon
		m.start()
		time.Sleep(supervisor.SessionTimeout - time.Second)
		if s, known := m.Pod("p"); !known || !s.Facts.Stop.Requested.IsZero() {
			t.Fatal("the pod was stopped before the session timeout")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s, _ := m.Pod("p"); s.Facts.Stop.Requested.IsZero() {
			t.Error("the pod runs after the session timeout")
		}
		m.untilRemoved("p")
		if s, _ := m.Pod("other"); !s.Facts.Stop.Requested.IsZero() {
			t.Error("a pod without a session was stopped")
		}
		time.Sleep(2 * supervisor.SessionTimeout)
		if m.Touch("s") {
			t.Error("the session exists without pods")
		}
	})
}

// TestFinalStateIsKeptUntilSessionEnds deletes a pod while its client is connected.
func TestFinalStateIsKeptUntilSessionEnds(t *testing.T) {
	for name, end := range map[string]func(*machine){
		"ended":     func(m *machine) { m.EndSession("s") },
		"timed out": func(*machine) { time.Sleep(supervisor.SessionTimeout + time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				added, err := m.Add(pod("p", spec.RestartNever, "sleep 10"), state.Owner{Session: "s"})
				if err != nil {
					t.Fatal(err)
				}
				m.delete("p")
				m.untilRemoved("p")
				for range 5 { // heartbeats
					time.Sleep(supervisor.SessionTimeout / 2)
					m.Touch("s")
				}
				if final, ok := m.Final(added.Facts.UID); !ok || !final.Status.Phase.Terminal() {
					t.Errorf("final state %v: %+v, want one with a terminal phase", ok, final.Status)
				}
				end(m)
				synctest.Wait()
				if _, ok := m.Final(added.Facts.UID); ok || m.Touch("s") {
					t.Error("the session or the final state still exists")
				}
			})
		})
	}
}

func TestSessionTimeoutKeepsPods(t *testing.T) {
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
				t.Errorf("pod %s: exists %v, %+v; want it kept and at rest", name, known, s.Status)
			}
		}
		if m.Touch("s") {
			t.Error("the session exists without running pods")
		}
	})
}
