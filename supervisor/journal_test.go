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

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// journal is a [event.Journal] in memory that can hang and fail.
type journal struct {
	mu       sync.Mutex
	events   []event.Event
	hang     chan struct{} // if not nil, Append blocks until it is closed
	err      error
	tries    int
	retained [][]string
}

func (j *journal) Load() ([]event.Event, error) { return j.all(), nil }

func (j *journal) all() []event.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

func (j *journal) Read(pod string) ([]event.Event, error) {
	return slices.DeleteFunc(j.all(), func(e event.Event) bool { return e.Pod != pod }), nil
}

func (j *journal) Append(events []event.Event) error {
	j.mu.Lock()
	hang := j.hang
	j.mu.Unlock()
	if hang != nil {
		<-hang
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tries++
	if j.err != nil {
		return j.err
	}
	j.events = append(j.events, events...)
	return nil
}

func (j *journal) Retain(pods []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retained = append(j.retained, pods)
	return nil
}

func (j *journal) tried() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tries
}

func (j *journal) set(hang chan struct{}, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hang, j.err = hang, err
}

// kinds returns the kinds of events, with their containers.
func kinds(events []event.Event) []string {
	var list []string
	for _, e := range events {
		list = append(list, string(e.Kind)+" "+e.Container)
	}
	return list
}

// TestJournalKeepsCauses has a container that is never ready, and later fails its liveness probe. The journal must have the probe failures
// before the restart, but not all others.
func TestJournalKeepsCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"live": "true", "ready": "echo no; exit 1"})
		kept := &journal{}
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.journal = kept
		m.start()
		p := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000")
		p.Containers[0].LivenessProbe, p.Containers[0].ReadinessProbe = execProbe("live"), execProbe("ready")
		m.add(p)
		time.Sleep(time.Hour)
		synctest.Wait()
		before := kinds(kept.all())
		if diff := cmp.Diff([]string{"PodAccepted ", "SandboxReady ", "ImagePulling c0", "ImagePulled c0", "ContainerStarted c0"},
			before); diff != "" {
			t.Errorf("events of a pod that is not ready (-want +got):\n%s", diff)
		}
		a.set("live", "echo dead; exit 1")
		m.until("p", "restarted", restarted)
		a.set("live", "true")
		synctest.Wait()
		since := kept.all()[len(before):]
		var notAlive event.Event
		last := 0
		for _, e := range since {
			if e.Kind == api.EventContainerLivenessFailed {
				notAlive = e
			}
			if e.Kind == api.EventProbeFailed {
				last++
			}
		}
		if notAlive.Fields["count"] != "3" || notAlive.Fields["output"] != "dead" || last == 0 || last > 16 {
			t.Errorf("%d failed probes and %+v are in the journal: %v", last, notAlive, kinds(since))
		}
		if i := slices.IndexFunc(since, func(e event.Event) bool { return e.Seq == notAlive.Cause }); i < 0 ||
			since[i].Fields["count"] != "3" {
			t.Errorf("the causes of %+v are not in the journal: %v", notAlive, kinds(since))
		}
		n := len(kept.all())
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if now := kept.all(); len(now) != n {
			t.Errorf("an idle day added %v to the journal", kinds(now[n:]))
		}
	})
}

// TestSeqAcrossRestarts restarts the daemon and the host. It expects unique Seqs, and causes that are in the journal.
func TestSeqAcrossRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.journal = &journal{}
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 60; exit 3"))
		for range 3 {
			time.Sleep(10 * time.Minute)
			m.leave()
			m.start()
		}
		uid := func() string { s, _ := m.Pod("p"); return s.Facts.UID }()
		m.leave()
		m.engine.Reboot()
		m.boot = "boot-2"
		m.start()
		m.until("p", "running", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].State.Running != nil })
		synctest.Wait()
		events, err := m.History(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		earlier := map[uint64]event.Event{}
		recovered := 0
		for _, e := range events {
			if _, twice := earlier[e.Seq]; twice || e.UID != uid {
				t.Errorf("%+v: duplicate Seq, or event of another pod", e)
			}
			if cause, found := earlier[e.Cause]; e.Cause > 0 && (!found || cause.Seq >= e.Seq) {
				t.Errorf("the cause of %+v is not in the ring", e)
			}
			if e.Kind != api.EventPodAccepted && e.Cause == 0 {
				t.Errorf("%+v has no cause", e)
			}
			if e.Kind == api.EventPodRecovered {
				recovered++
			}
			earlier[e.Seq] = e
		}
		if recovered != 4 {
			t.Errorf("%d recoveries, want 4: %v", recovered, kinds(events))
		}
		running := events[len(events)-1]
		for running.Kind != api.EventHostRebooted && running.Cause > 0 {
			running = earlier[running.Cause]
		}
		if running.Kind != api.EventHostRebooted {
			t.Errorf("the newest start is not caused by the reboot: %v", kinds(events))
		}
		if ring, missed := m.Events().Since(0); len(ring) != len(events) || missed != 0 {
			t.Errorf("the ring has %d events and missed %d, want all %d", len(ring), missed, len(events))
		}
		// A follower continues after a restart where it stopped.
		if rest, missed := m.Events().Since(events[3].Seq); len(rest) != len(events)-4 || missed != 0 {
			t.Errorf("after the fourth event: %d of %d events, %d missed", len(rest), len(events), missed)
		}
		if first := m.Events().Restored(); first != 4_000_000_000 {
			t.Errorf("the Seqs of the fifth run start after %d", first)
		}
	})
}

// TestJournalHangsAndFails expects that pods run on, that the failure is emitted once, and that the events are written later.
func TestJournalHangsAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &journal{}
		m := newMachine(t, fakeruntime.Options{})
		m.journal = kept
		m.start()
		hang := make(chan struct{})
		kept.set(hang, nil)
		m.add(pod("p", spec.RestartNever, "sleep 5"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		if n := len(kept.all()); n > 0 {
			t.Errorf("%d events were written by a journal that hangs", n)
		}
		kept.set(nil, errors.New("no space left on device"))
		close(hang)
		time.Sleep(10 * time.Minute)
		m.add(pod("q", spec.RestartNever, "sleep 5"))
		m.untilPhase("q", lifecycle.PhaseSucceeded)
		time.Sleep(10 * time.Minute)
		events, _ := m.Events().Since(0)
		emitted := slices.DeleteFunc(events, func(e event.Event) bool { return e.Kind != api.EventJournalNotDurable })
		if len(emitted) != 1 || emitted[0].Fields["error"] != "no space left on device" {
			t.Errorf("events of the failure: %+v", emitted)
		}
		if n := kept.tried(); n > 25 {
			t.Errorf("%d attempts in twenty minutes", n)
		}
		kept.set(nil, nil)
		time.Sleep(2 * time.Minute)
		for _, name := range []string{"p", "q"} {
			events, err := kept.Read(name)
			want := []string{
				"PodAccepted ", "SandboxReady ", "ImagePulling c0", "ImagePulled c0", "ContainerStarted c0", "ContainerSucceeded c0",
				"PodSucceeded ",
			}
			if name == "q" {
				want = slices.Replace(want, 2, 4, "ImagePresent c0")
			}
			if diff := cmp.Diff(want, kinds(events)); diff != "" || err != nil {
				t.Errorf("events of pod %s (-want +got, %v):\n%s", name, err, diff)
			}
		}
	})
}

func TestHistoryWhileDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &journal{}
		m := newMachine(t, fakeruntime.Options{})
		m.journal = &hangingReads{journal: kept, hang: t.Context().Done()}
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 5"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		events, err := m.History(ctx, "p")
		if len(events) == 0 || err == nil {
			t.Errorf("history: %v, %v", kinds(events), err)
		}
	})
}

// TestJournalRetain expects the names of the existing pods in Retain after a pod was removed.
func TestJournalRetain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &journal{}
		m := newMachine(t, fakeruntime.Options{})
		m.journal = kept
		m.start()
		m.add(pod("stays", spec.RestartAlways, "sleep 100000"))
		m.add(pod("goes", spec.RestartNever, "sleep 5"))
		m.untilPhase("goes", lifecycle.PhaseSucceeded)
		if err := m.Stop(t.Context(), "goes", supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved("goes")
		synctest.Wait()
		if len(kept.retained) != 1 || !slices.Contains(kept.retained[0], "stays") {
			t.Errorf("retained: %v", kept.retained)
		}
		events, _ := m.History(t.Context(), "goes")
		if got := kinds(events); len(got) == 0 || got[len(got)-1] != "PodRemoved " {
			t.Errorf("history of a removed pod: %v", got)
		}
	})
}

func TestRestoredRingSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &journal{}
		for i := range 5000 {
			e := event.Event{Seq: uint64(2*i + 1), Kind: api.EventContainerStarted, Pod: "p", UID: fmt.Sprint(i)}
			kept.events = append(kept.events, e)
		}
		m := newMachine(t, fakeruntime.Options{})
		m.journal = kept
		m.start()
		events, missed := m.Events().Since(0)
		if len(events) != 4096 || events[0].Seq != 2*904+1 || missed != 0 {
			t.Errorf("%d events from Seq %d, %d missed", len(events), events[0].Seq, missed)
		}
		m.add(pod("p", spec.RestartNever, "sleep 5"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		synctest.Wait()
		if events, missed := m.Events().Since(2*904 + 1); len(events) != 4096 || missed == 0 || events[4095].Seq < 1_000_000_000 {
			t.Errorf("%d events up to Seq %d, %d missed", len(events), events[len(events)-1].Seq, missed)
		}
	})
}

// hangingReads is a journal whose Read hangs.
type hangingReads struct {
	*journal
	hang <-chan struct{}
}

func (h *hangingReads) Read(string) ([]event.Event, error) {
	<-h.hang
	return nil, errors.New("too late")
}
