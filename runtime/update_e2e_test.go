//go:build e2e

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/hooks"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// supervised is a host with a supervisor.
type supervised struct {
	*testHost
	*supervisor.Supervisor
	begun time.Time
}

func (s *supervised) clock() lifecycle.Instant {
	return lifecycle.Instant{Boot: "boot", Mono: time.Second + time.Since(s.begun), Wall: time.Now()}
}

// supervise starts a supervisor, which finds the pods of the last one.
func (s *supervised) supervise() {
	s.Helper()
	store, err := state.NewDir(filepath.Join(s.dir, "state"))
	if err != nil {
		s.Fatal(err)
	}
	s.Supervisor = supervisor.New(context.Background(), supervisor.Options{
		Runtime: s.Runtime, Hooks: hooks.New(s.Runtime, nil), Store: store, Clock: s.clock,
	})
	if err := s.Recover(s.ctx()); err != nil {
		s.Fatal(err)
	}
}

func (s *supervised) leave() {
	s.Helper()
	if err := s.Leave(s.ctx()); err != nil {
		s.Fatal(err)
	}
}

// until waits until the pod is as wanted.
func (s *supervised) until(what string, wanted func(supervisor.Snapshot) bool) supervisor.Snapshot {
	s.Helper()
	var now supervisor.Snapshot
	s.eventually(what, func() (string, bool) {
		now, _ = s.Pod("p")
		return fmt.Sprintf("%+v", now.Status), now.Pod != nil && wanted(now)
	})
	return now
}

// pid returns the PID of the shell whose command line contains a marker; 0 if there is none. Its children have the same one until they
// execute their program.
func (s *supervised) pid(marker string) int {
	first := 0
	for pid, cmdline := range s.processes() {
		if strings.HasPrefix(cmdline, "sh\x00") && strings.Contains(cmdline, marker) && (first == 0 || pid < first) {
			first = pid
		}
	}
	return first
}

// process waits for the process with a marker and returns its PID. A container has started before its program is executed.
func (s *supervised) process(marker string) (pid int) {
	s.Helper()
	s.eventually("process "+marker, func() (string, bool) { pid = s.pid(marker); return fmt.Sprint(s.processes()), pid != 0 })
	return pid
}

// running returns a condition: these containers run, the first one after that many restarts.
func running(restarts int, names ...string) func(supervisor.Snapshot) bool {
	return func(s supervisor.Snapshot) bool {
		list := s.Status.ContainerStatuses
		return len(list) == len(names) && list[0].RestartCount == restarts && s.Facts.Restart == lifecycle.Restart{} &&
			!slices.ContainsFunc(list, func(c lifecycle.ContainerStatus) bool { return c.State.Running == nil })
	}
}

// redefine changes the pod to the definition of a pod file.
func (s *supervised) redefine(to *spec.Pod) {
	s.Helper()
	staged, err := s.Stage(s.ctx(), to, nil, func(string, lifecycle.Progress) {})
	if err == nil {
		_, err = s.Redefine(s.ctx(), "", to, staged, state.Owner{By: "test"})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// updated is a pod file with a label, an environment variable of its first container, and further containers.
func updated(label, variable string, more ...string) string {
	const container = `
[[containers]]
name = %[1]q
image = "localhost/podstead/busybox:1"
command = ["sh", "-c", "echo %[1]s $V >> /data/log; trap 'exit 0' TERM; while :; do sleep 0.1; done; : marker-%[1]s"]
env.V = %[2]q
volumeMounts.data = "/data"
lifecycle.preStop.exec.command = ["sh", "-c", "echo stop-%[1]s >> /data/log"]
`
	text := "name = \"p\"\nterminationGracePeriodSeconds = 10\nlabels.l = \"" + label + "\"\n" + fmt.Sprintf(container, "a", variable)
	for _, name := range more {
		text += fmt.Sprintf(container, name, "x")
	}
	return text + "\n[[volumes]]\nname = \"data\"\nemptyDir = {}\n"
}

// newSupervised returns a host on which the pod of [updated] runs, with the containers a and b.
func newSupervised(t *testing.T) (*supervised, supervisor.Snapshot) {
	s := superviseNew(t)
	if _, err := s.Add(s.parse(updated("one", "1", "b")), state.Owner{}); err != nil {
		t.Fatal(err)
	}
	return s, s.until("running", running(0, "a", "b"))
}

// superviseNew returns a host with a supervisor that has no pod. The pod p is removed at the end of the test.
func superviseNew(t *testing.T) *supervised {
	s := &supervised{testHost: newTestHost(t), begun: time.Now()}
	s.supervise()
	t.Cleanup(func() {
		if err := s.Stop(s.ctx(), "p", supervisor.StopOptions{Delete: true}); err != nil {
			t.Error(err)
		}
		s.eventually("removed", func() (string, bool) { now, exists := s.Pod("p"); return fmt.Sprintf("%+v", now.Status), !exists })
		s.leave()
	})
	return s
}

func (s *supervised) log(uid string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "lib", "pods", uid, "volumes", "data", "log"))
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// TestRestartOnRequest: a restart of one container leaves the other one alone. A restart of the pod keeps its UID and its emptyDir. A stop
// holds over a restart of the engine and of the supervisor.
func TestRestartOnRequest(t *testing.T) {
	s, first := newSupervised(t)
	a, b := s.process("marker-a"), s.process("marker-b")
	if err := s.Restart(s.ctx(), "p", "", "a", "test"); err != nil {
		t.Fatal(err)
	}
	s.until("a restarted", running(1, "a", "b"))
	if s.process("marker-b") != b || s.process("marker-a") == a {
		t.Errorf("processes %d and %d, before the restart %d and %d", s.process("marker-a"), s.process("marker-b"), a, b)
	}
	if err := s.Restart(s.ctx(), "p", "", "", "test"); err != nil {
		t.Fatal(err)
	}
	now := s.until("pod restarted", running(2, "a", "b"))
	s.eventually("log", func() (string, bool) { text := s.log(now.Facts.UID); return text, strings.Count(text, "a 1\n") == 3 })
	if text := s.log(now.Facts.UID); now.Facts.UID != first.Facts.UID || strings.Count(text, "stop-a") != 2 ||
		strings.Count(text, "stop-b") != 1 {
		t.Errorf("UID %s, before %s; log:\n%s", now.Facts.UID, first.Facts.UID, text)
	}
	if err := s.Stop(s.ctx(), "p", supervisor.StopOptions{By: "test"}); err != nil {
		t.Fatal(err)
	}
	s.until("stopped", func(p supervisor.Snapshot) bool { return p.AtRest })
	s.leave()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.supervise()
	if p, _ := s.Pod("p"); !p.AtRest || s.pid("marker-a") != 0 {
		t.Errorf("the stopped pod is %+v after a restart", p.Status)
	}
	if err := s.Start(s.ctx(), "p", "", "test"); err != nil {
		t.Fatal(err)
	}
	s.until("started", running(3, "a", "b"))
}

// TestRedefineOnRealContainers: labels change in place, a changed variable restarts one container, and a removed container gets its
// preStop hook.
func TestRedefineOnRealContainers(t *testing.T) {
	s, first := newSupervised(t)
	a, b := s.process("marker-a"), s.process("marker-b")
	s.redefine(s.parse(updated("two", "1", "b")))
	if now, _ := s.Pod("p"); now.Pod.Labels["l"] != "two" || s.process("marker-a") != a || s.process("marker-b") != b {
		t.Errorf("labels %v, processes %d and %d, before %d and %d", now.Pod.Labels, s.process("marker-a"), s.process("marker-b"), a, b)
	}
	s.redefine(s.parse(updated("two", "2", "b")))
	s.until("a restarted", running(1, "a", "b"))
	if s.process("marker-b") != b || s.process("marker-a") == a {
		t.Errorf("processes %d and %d, before %d and %d", s.process("marker-a"), s.process("marker-b"), a, b)
	}
	a = s.process("marker-a")
	s.redefine(s.parse(updated("two", "2", "c")))
	s.until("b removed, c added", running(1, "a", "c"))
	s.eventually("b forgotten", func() (string, bool) {
		now, _ := s.Pod("p")
		return fmt.Sprintf("%+v", now.Facts), len(now.Facts.Outgoing) == 0
	})
	text := s.log(first.Facts.UID)
	if !strings.Contains(text, "a 2\n") || strings.Count(text, "stop-b") != 1 || s.pid("marker-b") != 0 || s.process("marker-a") != a {
		t.Errorf("process a %d, before %d; b %d; log:\n%s", s.process("marker-a"), a, s.pid("marker-b"), text)
	}
}
