package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/podstead/podstead/hooks"
	"github.com/podstead/podstead/internal/httpget"
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a machine in a bubble: an engine and a disk that outlive the supervisors that are started on it.
type machine struct {
	policy  policy.Policy
	t       *testing.T
	engine  *fakeruntime.Runtime
	disk    *disk
	notes   *notes
	journal supervisor.Journal // nil: there is none
	bug     atomic.Bool        // the next reading of the clock panics
	dial    httpget.Dial       // of probes and hooks
	boot    string
	begun   time.Time
	*supervisor.Supervisor
	seen   uint64        // the newest event that story has returned
	struck chan struct{} // closed when the supervisor was killed by a hook; nil: nobody does that
}

func newMachine(t *testing.T, o fakeruntime.Options) *machine {
	m := &machine{
		t: t, engine: fakeruntime.New(o), disk: &disk{files: map[string]supervisor.Envelope{}},
		notes: &notes{kept: map[string]supervisor.Note{}}, boot: "boot-1", begun: time.Now(),
	}
	t.Cleanup(m.leave)
	return m
}

func (m *machine) clock() lifecycle.Instant {
	if m.bug.Swap(false) {
		panic("a bug")
	}
	return lifecycle.Instant{Boot: m.boot, Mono: time.Since(m.begun), Wall: time.Now()}
}

// start starts a supervisor and lets it take up what an earlier one left.
func (m *machine) start() {
	m.t.Helper()
	m.Supervisor = supervisor.New(m.t.Context(), supervisor.Options{
		Runtime: m.engine, Prober: probes.New(m.engine, m.clock, probes.Options{Dial: m.dial}), Hooks: hooks.New(m.engine, m.dial),
		Store: m.disk, Notes: m.notes, Journal: m.journal, Clock: m.clock, Policy: m.policy,
	})
	m.seen = 0
	if err := m.Recover(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// leave ends the supervisor as an upgrade does.
func (m *machine) leave() {
	if m.Supervisor == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.t.Context()), time.Minute)
	defer cancel()
	if err := m.Leave(ctx); err != nil {
		m.t.Error(err)
	}
	m.Supervisor = nil
}

// crash ends the supervisor so that nothing it does from now on reaches the disk.
func (m *machine) crash() {
	m.disk.kill()
	m.leave()
	m.disk.mu.Lock()
	m.disk.dead = false
	m.disk.mu.Unlock()
}

// revive starts another supervisor after one was struck.
func (m *machine) revive() {
	m.crash()
	m.struck = nil
	m.start()
}

func (m *machine) add(pod *spec.Pod) supervisor.Snapshot {
	m.t.Helper()
	s, err := m.Add(pod, supervisor.Owner{})
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// until lets time pass until the pod is as wanted.
func (m *machine) until(name, what string, wanted func(supervisor.Snapshot) bool) supervisor.Snapshot {
	m.t.Helper()
	deadline := time.Now().Add(time.Hour)
	for {
		changed := m.Changed()
		s, known := m.Pod(name)
		if known && wanted(s) {
			return s
		}
		select {
		case <-changed:
		case <-m.struck:
			m.revive()
		case <-time.After(time.Until(deadline)):
			m.t.Fatalf("pod %s is not %s within an hour; its status is %+v", name, what, s.Status)
		}
	}
}

func (m *machine) untilPhase(name string, phase lifecycle.Phase) supervisor.Snapshot {
	m.t.Helper()
	return m.until(name, string(phase), func(s supervisor.Snapshot) bool { return s.Status.Phase == phase })
}

func (m *machine) untilGone(name string) {
	m.t.Helper()
	if !m.untilGoneOrStruck(name) {
		m.t.Fatal("the supervisor was struck")
	}
}

func (m *machine) untilGoneOrStruck(name string) (gone bool) {
	m.t.Helper()
	for {
		changed := m.Changed()
		if _, known := m.Pod(name); !known {
			return true
		}
		select {
		case <-changed:
		case <-m.struck:
			m.revive()
			return false
		case <-time.After(time.Hour):
			m.t.Fatalf("pod %s is still there after an hour", name)
		}
	}
}

// story returns the kinds of the events since the last call, each with its container.
func (m *machine) story() []string {
	events, _ := m.Events().Since(m.seen)
	var lines []string
	for _, e := range events {
		lines = append(lines, strings.TrimSpace(string(e.Kind)+" "+e.Container))
		m.seen = e.Seq
	}
	return lines
}

func (m *machine) expectStory(want ...string) {
	m.t.Helper()
	synctest.Wait()
	if got := m.story(); !slices.Equal(got, want) {
		m.t.Errorf("the events are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// disk is a store in memory that can hang, fail, and die.
type disk struct {
	mu    sync.Mutex
	files map[string]supervisor.Envelope
	bad   []supervisor.Unusable
	dead  bool
	err   error
	hang  chan struct{} // not nil: saves wait for it
	saves int
}

func (d *disk) Load() ([]supervisor.Envelope, []supervisor.Unusable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []supervisor.Envelope
	for _, e := range d.files {
		list = append(list, e)
	}
	return list, d.bad, d.err
}

func (d *disk) Save(e supervisor.Envelope) error {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saves++
	if d.dead || d.err != nil {
		return d.err
	}
	d.files[e.Pod.Name] = e
	return nil
}

func (d *disk) Delete(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dead {
		delete(d.files, name)
	}
	return nil
}

// kill makes all that follows as if the writer had been killed now.
func (d *disk) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func pod(name string, policy spec.RestartPolicy, commands ...string) *spec.Pod {
	p := &spec.Pod{Name: name, RestartPolicy: policy, TerminationGracePeriodSeconds: 30}
	for i, command := range commands {
		c := spec.Container{Name: fmt.Sprintf("c%d", i), Image: "image", Command: []string{"sh", "-c", command}}
		p.Containers = append(p.Containers, c)
	}
	return p
}

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
		m.expectStory("PodAccepted", "SandboxReady", "ImagePulling init", "ImageFetched init", "ContainerCreated init", "ContainerRunning init",
			"ContainerSucceeded init", "ImagePresent c0", "ContainerCreated c0", "ContainerRunning c0", "ContainerSucceeded c0", "PodSucceeded")
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
		if _, err := m.Add(pod("p", spec.RestartAlways, "sleep 1000"), supervisor.Owner{By: "podstead run, pid 7"}); err != nil {
			t.Fatal(err)
		}
		_, err := m.Add(pod("p", spec.RestartAlways, "true"), supervisor.Owner{})
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
		if _, err := m.Add(pod("p", spec.RestartAlways, "sleep 100000"), supervisor.Owner{Session: "s"}); err != nil {
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
		if s, known := m.Pod("p"); !known || !s.Facts.Stop.Asked.IsZero() {
			t.Fatal("the pod was ended before its client was silent for long enough")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s, _ := m.Pod("p"); s.Facts.Stop.Asked.IsZero() {
			t.Error("the pod goes on though its client is lost")
		}
		m.untilGone("p")
		if s, _ := m.Pod("other"); !s.Facts.Stop.Asked.IsZero() {
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
			if _, err := m.Add(pod(name, spec.RestartNever, command), supervisor.Owner{Session: "s", Keep: true}); err != nil {
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
