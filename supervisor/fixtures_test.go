package supervisor_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// checkpoints is a [state.Checkpoints] in memory.
type checkpoints struct {
	mu    sync.Mutex
	kept  map[string]state.Checkpoint
	saves int
}

func (v *checkpoints) Load() (map[string]state.Checkpoint, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.kept), nil
}

func (v *checkpoints) Save(uid string, c state.Checkpoint) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept[uid] = c
	v.saves++
	return nil
}

func (v *checkpoints) Delete(uid string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.kept, uid)
	return nil
}

// answers has the scripts that the commands of probes and hooks run, by name of the command.
type answers struct {
	mu      sync.Mutex
	scripts map[string]string
	ran     map[string]int
}

func newAnswers(scripts map[string]string) *answers {
	return &answers{scripts: scripts, ran: map[string]int{}}
}

func (a *answers) set(name, script string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripts[name] = script
}

func (a *answers) count(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ran[name]
}

func (a *answers) program(_ lifecycle.Ref, command []string) (fakeruntime.Program, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ran[command[0]]++
	return fakeruntime.Read([]string{"sh", "-c", a.scripts[command[0]]}), true
}

func execProbe(name string) *spec.Probe {
	return &spec.Probe{
		Exec: &spec.ExecAction{Command: []string{name}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

func execHook(name string) *spec.LifecycleHandler {
	return &spec.LifecycleHandler{Exec: &spec.ExecAction{Command: []string{name}}}
}

func ready(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].Ready }

func restarted(s supervisor.Snapshot) bool {
	return s.Status.ContainerStatuses[0].RestartCount == 1 && s.Status.ContainerStatuses[0].State.Running != nil
}

// expectMessages compares the events of the only container since the last call, except its starts and exits.
func (m *machine) expectMessages(want ...string) {
	m.t.Helper()
	synctest.Wait()
	events, _ := m.Events().Since(m.seen)
	var got []string
	for _, e := range events {
		m.seen = e.Seq
		if slices.Contains([]string{
			"Unhealthy", "ProbeWarning", "Killing", "FailedPostStartHook", "FailedPreStopHook", "LifecycleHTTPFallback",
		},
			e.Reason) {
			got = append(got, fmt.Sprintf("%s %s: %s", e.Level, e.Reason, e.Message))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func (m *machine) saves() int {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.disk.saves
}

func (m *machine) delete(name string) {
	m.t.Helper()
	if err := m.Stop(m.t.Context(), name, supervisor.StopOptions{Delete: true, By: "test"}); err != nil {
		m.t.Fatal(err)
	}
	m.untilRemoved(name)
	synctest.Wait()
}
