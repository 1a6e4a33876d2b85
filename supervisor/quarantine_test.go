package supervisor_test

import (
	"context"
	"errors"
	"os"
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

// outOfMemory is a cause of crashes.
const outOfMemory = "fatal error: out of memory"

// crashing is a machine whose supervisor crashes when it starts a container of some pods.
type crashing struct {
	*machine
	mu      sync.Mutex
	deadly  map[string]bool // by UID
	fatal   chan struct{}   // closed by the call that crashes the supervisor
	handled []string        // the UIDs that were being handled then
}

func newCrashing(t *testing.T) *crashing {
	dir := t.TempDir() // removed when the machine has stopped
	w := &crashing{deadly: map[string]bool{}, fatal: make(chan struct{})}
	w.machine = newMachine(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
		w.mu.Lock()
		fatal := c.Method == "StartContainer" && (w.deadly[c.UID] || w.deadly["all"])
		if fatal && w.handled == nil {
			w.handled = w.markers()
			close(w.fatal)
		}
		w.mu.Unlock()
		if fatal {
			<-ctx.Done() // a supervisor that has crashed does nothing
			return ctx.Err()
		}
		return nil
	}})
	w.quarantined = dir
	return w
}

func (w *crashing) handling() string { return w.quarantined + "/handling" }

func (w *crashing) markers() (uids []string) {
	files, err := os.ReadDir(w.handling())
	if err != nil {
		w.t.Error(err)
	}
	for _, f := range files {
		uids = append(uids, f.Name())
	}
	return uids
}

// crashed waits for the crash and starts the next supervisor. An empty cause is a kill.
func (w *crashing) crashed(cause string) {
	w.t.Helper()
	<-w.fatal
	w.crash()
	for _, uid := range w.handled {
		if err := os.WriteFile(w.handling()+"/"+uid, []byte("\np"), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.mu.Lock()
	w.fatal, w.handled = make(chan struct{}), nil
	w.mu.Unlock()
	w.cause = cause
	w.start()
	w.cause = ""
}

// accept adds a pod whose start crashes the supervisor.
func (w *crashing) accept(name string) string {
	w.t.Helper()
	w.mu.Lock()
	w.deadly["all"] = true
	w.mu.Unlock()
	s := w.add(pod(name, spec.RestartAlways, "sleep 100000"))
	<-w.fatal
	w.mu.Lock()
	w.deadly["all"], w.deadly[s.Facts.UID] = false, true
	w.mu.Unlock()
	return s.Facts.UID
}

func (w *crashing) awaitReady(name string) {
	w.t.Helper()
	w.until(name, "ready", func(s supervisor.Snapshot) bool {
		return len(s.Status.ContainerStatuses) > 0 && s.Status.ContainerStatuses[0].Ready
	})
}

func TestPodThatCrashesTheDaemonIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashing(t)
		w.start()
		w.add(pod("good", spec.RestartAlways, "sleep 100000"))
		w.awaitReady("good")
		uid := w.accept("bad")
		w.crashed(outOfMemory)
		w.awaitReady("good")
		w.crashed(outOfMemory)
		w.awaitReady("good")
		for life := range 2 {
			s, _ := w.Pod("bad")
			if s.Status.Reason != lifecycle.ReasonQuarantined || !strings.Contains(s.Status.Message, "2 times") ||
				!strings.Contains(s.Status.Message, outOfMemory) {
				t.Errorf("the pod is %+v, want it in quarantine", s.Status)
			}
			var taken *supervisor.NameTakenError
			if _, err := w.Add(pod("bad", spec.RestartNever, "true"), state.Owner{}); !errors.As(err, &taken) ||
				!strings.Contains(err.Error(), "not supervised") {
				t.Errorf("add a pod of the name: %v", err)
			}
			if events := w.emitted(); slices.Contains(events, string(api.EventPodQuarantined)) != (life == 0) {
				t.Errorf("the events are %v", events)
			}
			w.crash() // and it stays there
			w.start()
			w.awaitReady("good")
		}
		if err := w.Stop(t.Context(), "bad", supervisor.StopOptions{UID: uid, Delete: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
		w.untilRemoved("bad")
		w.add(pod("bad", spec.RestartAlways, "sleep 100000"))
		w.awaitReady("bad")
	})
}

// TestSuspectsAreToldApart checks that a pod that is started together with one that crashes the daemon is not quarantined, and that a
// suspect can be deleted.
func TestSuspectsAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashing(t)
		w.start()
		innocent := w.accept("innocent")
		w.mu.Lock()
		w.handled, w.fatal = nil, make(chan struct{})
		w.mu.Unlock()
		w.accept("bad")
		w.mu.Lock()
		delete(w.deadly, innocent)
		w.mu.Unlock()
		if len(w.handled) != 2 {
			t.Fatalf("being handled: %v, want two pods", w.handled)
		}
		w.crashed(outOfMemory)
		w.crashed(outOfMemory)
		w.awaitReady("innocent")
		if s, _ := w.Pod("bad"); s.Status.Reason != lifecycle.ReasonQuarantined {
			t.Errorf("the pod is %+v, want it in quarantine", s.Status)
		}
	})
}

// TestKilledDaemonAccusesNoPod checks that repeated kill -9 while a pod is started quarantines nothing.
func TestKilledDaemonAccusesNoPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashing(t)
		w.start()
		uid := w.accept("p")
		for range 5 {
			w.crashed("")
			if s, _ := w.Pod("p"); s.Status.Reason != "" {
				t.Fatalf("the pod is %+v", s.Status)
			}
		}
		<-w.fatal
		w.mu.Lock()
		delete(w.deadly, uid)
		w.mu.Unlock()
		w.crashed("")
		w.awaitReady("p")
		synctest.Wait()
		if left := w.markers(); len(left) > 0 {
			t.Errorf("the idle pod is still marked as being handled: %v", left)
		}
		time.Sleep(time.Hour)
	})
}
