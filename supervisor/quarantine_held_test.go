package supervisor_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// crashedBy restarts the supervisor as after crashes while it handled a pod.
func (w *crashing) crashedBy(uid string, crashes int) {
	w.t.Helper()
	w.cause = outOfMemory
	for range crashes {
		w.crash()
		if err := os.WriteFile(w.handling()+"/"+uid, []byte("\np"), 0o600); err != nil {
			w.t.Fatal(err)
		}
		w.start()
	}
	w.cause = ""
}

// TestForcedDeletionOfQuarantinedPod checks that a forced deletion uses neither the saved state nor the definition of the pod: the only
// call to the engine is the removal.
func TestForcedDeletionOfQuarantinedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashing(t)
		w.start()
		bad := w.add(pod("bad", spec.RestartAlways, "sleep 100000"))
		w.awaitReady("bad")
		w.crashedBy(bad.Facts.UID, 2)
		if s, _ := w.Pod("bad"); s.Status.Reason != lifecycle.ReasonQuarantined {
			t.Fatalf("the pod is %+v, want it in quarantine", s.Status)
		}
		before := len(w.engine.Calls())
		if err := w.Stop(t.Context(), "bad", supervisor.StopOptions{Delete: true, Grace: new(time.Duration), By: "test"}); err != nil {
			t.Fatal(err)
		}
		w.untilRemoved("bad")
		removed := false
		for _, c := range w.engine.Calls()[before:] {
			removed = removed || c.Method == "RemovePod"
			if c.UID == bad.Facts.UID && c.Method != "RemovePod" {
				t.Errorf("call %+v, want only the removal", c)
			}
		}
		if !removed {
			t.Error("the pod was not removed from the engine")
		}
		w.add(pod("bad", spec.RestartAlways, "sleep 100000"))
		w.awaitReady("bad")
	})
}

// TestCompletedPodInQuarantine checks that the ports of a pod in quarantine are in use, unless the pod had completed.
func TestCompletedPodInQuarantine(t *testing.T) {
	for name, completed := range map[string]bool{"running": false, "completed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCrashing(t)
				w.start()
				p := server("bad", 8080)
				if completed {
					p = pod("bad", spec.RestartNever, "true")
					p.Containers[0].Ports = server("", 8080).Containers[0].Ports
				}
				bad := w.add(p)
				if completed {
					w.untilPhase("bad", lifecycle.PhaseSucceeded)
				} else {
					w.awaitReady("bad")
				}
				time.Sleep(time.Second) // until the state is saved
				synctest.Wait()
				w.crashedBy(bad.Facts.UID, 2)
				if s, _ := w.Pod("bad"); s.Status.Reason != lifecycle.ReasonQuarantined {
					t.Fatalf("the pod is %+v, want it in quarantine", s.Status)
				}
				_, err := w.Add(server("other", 8080), state.Owner{})
				if accepted := err == nil; accepted != completed ||
					!accepted && !strings.Contains(err.Error(), "is in use by pod \"bad\"") {
					t.Errorf("another pod with the port: %v", err)
				}
			})
		})
	}
}

// TestCausesOfSuspect checks that the first event of a suspect follows from the last one before the crash, as that of any other pod.
func TestCausesOfSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashing(t)
		w.journal = &journal{}
		w.start()
		p := w.add(pod("p", spec.RestartAlways, "sleep 100000"))
		w.awaitReady("p")
		synctest.Wait()
		w.crashedBy(p.Facts.UID, 1)
		w.awaitReady("p")
		synctest.Wait()
		events, _ := w.Events().Since(0)
		var before uint64
		for _, e := range events {
			switch {
			case e.UID != p.Facts.UID:
			case e.Kind == api.EventPodRecovered:
				if before == 0 || e.Cause != before {
					t.Errorf("the recovery follows from %d, want %d", e.Cause, before)
				}
				return
			case e.Container == "":
				before = e.Seq
			}
		}
		t.Errorf("the pod was not recovered: %v", kinds(events))
	})
}
