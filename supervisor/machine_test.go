package supervisor_test

import (
	"context"
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
	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a host in a synctest bubble. Its engine and disk survive restarts of the supervisor.
type machine struct {
	rebooter    supervisor.Rebooter
	policy      admission.Policy
	t           *testing.T
	engine      *fakeruntime.Runtime
	disk        *disk
	checkpoints *checkpoints
	journal     event.Journal // may be nil
	host        *hostConditions
	damaged     []lifecycle.Damage
	finished    supervisor.FinishedPods
	keep        int          // of collected pods; 0: the default
	leap        atomic.Int64 // of the wall clock, in nanoseconds
	bug         atomic.Bool  // the next reading of the clock panics
	dial        probes.Dial  // of probes and hooks
	boot        string
	unclean     string // the boot that ended without a shutdown; empty: none is known
	quarantined string // directory of the quarantine; empty: there is none
	cause       string // of the crash of the last supervisor
	started     time.Time
	*supervisor.Supervisor
	seen   uint64        // the Seq of the newest event that emitted has returned
	killed chan struct{} // closed when a hook of the fake runtime kills the supervisor; may be nil
}

func newMachine(t *testing.T, o fakeruntime.Options) *machine {
	m := &machine{
		t: t, engine: fakeruntime.New(o), disk: &disk{files: map[string]state.Pod{}},
		host:        newHostConditions(),
		checkpoints: &checkpoints{kept: map[string]state.Checkpoint{}}, boot: "boot-1", started: time.Now(),
	}
	t.Cleanup(m.leave)
	return m
}

func (m *machine) clock() lifecycle.Instant {
	if m.bug.Swap(false) {
		panic("a bug")
	}
	return lifecycle.Instant{Boot: m.boot, Mono: time.Since(m.started), Wall: time.Now().Add(time.Duration(m.leap.Load()))}
}

// start starts a supervisor and recovers the pods.
func (m *machine) start() {
	m.t.Helper()
	var q *state.Quarantine
	if m.quarantined != "" {
		var err error
		if q, err = state.NewQuarantine(m.quarantined+"/suspects", m.quarantined+"/handling"); err != nil {
			m.t.Fatal(err)
		}
	}
	m.Supervisor = supervisor.New(m.t.Context(), supervisor.Options{
		Quarantine: q, Crash: m.cause, UncleanBoot: m.unclean,
		Runtime: m.engine, Prober: probes.New(m.engine, m.clock, probes.Options{Dial: m.dial}), Hooks: hooks.New(m.engine, m.dial),
		Store: m.disk, Checkpoints: m.checkpoints, Journal: m.journal, Clock: m.clock, Policy: m.policy,
		Damaged: m.damaged, Conditions: m.host, Finished: m.finished, Rebooter: m.rebooter,
	})
	m.CompareWith(compare)
	if m.keep != 0 {
		m.KeepCollected(m.keep)
	}
	m.seen = 0
	if err := m.Recover(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// leave shuts the supervisor down, as an upgrade does.
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

// crash shuts the supervisor down without any further write to the disk.
func (m *machine) crash() {
	m.disk.kill()
	m.leave()
	m.disk.mu.Lock()
	m.disk.dead = false
	m.disk.mu.Unlock()
}

// restartKilled starts a supervisor after the last one was killed.
func (m *machine) restartKilled() {
	m.crash()
	m.killed = nil
	m.start()
}

func (m *machine) add(pod *spec.Pod) supervisor.Snapshot {
	m.t.Helper()
	s, err := m.Add(pod, state.Owner{})
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// until waits until wanted returns true for the pod.
func (m *machine) until(name, what string, wanted func(supervisor.Snapshot) bool) supervisor.Snapshot {
	m.t.Helper()
	deadline := time.Now().Add(time.Hour)
	for {
		changed := m.Changed()
		s, exists := m.Pod(name)
		if exists && wanted(s) {
			return s
		}
		select {
		case <-changed:
		case <-m.killed:
			m.restartKilled()
		case <-time.After(time.Until(deadline)):
			m.t.Fatalf("pod %s is not %s within an hour; its status is %+v", name, what, s.Status)
		}
	}
}

func (m *machine) untilPhase(name string, phase lifecycle.Phase) supervisor.Snapshot {
	m.t.Helper()
	return m.until(name, string(phase), func(s supervisor.Snapshot) bool { return s.Status.Phase == phase })
}

func (m *machine) untilRemoved(name string) {
	m.t.Helper()
	if !m.untilRemovedOrKilled(name) {
		m.t.Fatal("the supervisor was killed")
	}
}

func (m *machine) untilRemovedOrKilled(name string) (removed bool) {
	m.t.Helper()
	for {
		changed := m.Changed()
		if _, exists := m.Pod(name); !exists {
			return true
		}
		select {
		case <-changed:
		case <-m.killed:
			m.restartKilled()
			return false
		case <-time.After(time.Hour):
			m.t.Fatalf("pod %s is not removed after an hour", name)
		}
	}
}

// emitted returns the kinds of the events since the last call, with their containers.
func (m *machine) emitted() []string {
	events, _ := m.Events().Since(m.seen)
	var lines []string
	for _, e := range events {
		lines = append(lines, strings.TrimSpace(string(e.Kind)+" "+e.Container))
		m.seen = e.Seq
	}
	return lines
}

func (m *machine) expectEvents(want ...string) {
	m.t.Helper()
	synctest.Wait()
	if got := m.emitted(); !slices.Equal(got, want) {
		m.t.Errorf("events:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// disk is a [state.Store] in memory that can hang, fail, or drop writes.
type disk struct {
	mu    sync.Mutex
	files map[string]state.Pod
	bad   []state.Unusable
	dead  bool
	err   error
	hang  chan struct{} // if not nil, Save blocks until it is closed
	saves int
}

func (d *disk) Load() ([]state.Pod, []state.Unusable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []state.Pod
	for _, e := range d.files {
		list = append(list, e)
	}
	return list, d.bad, d.err
}

func (d *disk) Save(e state.Pod) error {
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

// kill drops all further writes, as if the process had been killed.
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
