package supervisor_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// TestRedefineFailingPod changes a container of a pod that is being evicted or has exceeded its deadline: the pod runs again.
func TestRedefineFailingPod(t *testing.T) {
	limit := spec.Seconds(60)
	for name, fail := range map[string]func(*machine, string){
		"evicted": func(m *machine, uid string) {
			m.engine.Evict(uid, "too much")
			synctest.Wait()
			m.engine.Evict(uid, "") // for the next sandbox
		},
		"deadline exceeded": func(*machine, string) { time.Sleep(61 * time.Second) },
	} {
		for _, atRest := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := newMachine(t, fakeruntime.Options{})
					m.start()
					p := pod("p", spec.RestartNever, "sleep 100000")
					p.ActiveDeadlineSeconds = &limit
					m.add(p)
					before := m.until("p", "running", allRunning)
					fail(m, before.Facts.UID)
					m.until("p", "failing", func(s supervisor.Snapshot) bool { return s.Facts.Stop.Reason != "" && (s.AtRest || !atRest) })
					to := pod("p", spec.RestartNever, graceful)
					to.ActiveDeadlineSeconds = &limit
					m.redefine(to)
					s := m.until("p", "running", func(s supervisor.Snapshot) bool {
						return s.Status.ContainerStatuses[0].RestartCount == 1 && allRunning(s)
					})
					if s.Facts.UID != before.Facts.UID || s.Status.Phase != lifecycle.PhaseRunning {
						t.Errorf("after the change: %+v", s.Status)
					}
				})
			})
		}
	}
}

// TestRedefineRevivesPod expects that a completed pod runs again as a whole if its new definition does not let it end, and that a pod that
// was stopped stays stopped.
func TestRedefineRevivesPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		of := func(policy spec.RestartPolicy, name string) *spec.Pod {
			p := pod(name, policy, "sleep 1", "sleep 1")
			p.InitContainers = []spec.Container{{Name: "init", Image: "image", Command: []string{"true"}}}
			return p
		}
		m.add(of(spec.RestartNever, "p"))
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		m.redefine(of(spec.RestartAlways, "p"))
		s := m.until("p", "running", allRunning)
		if c := s.Status.InitContainerStatuses[0]; c.RestartCount != 1 || s.Facts.Again == 0 {
			t.Errorf("the pod was not started again as a whole: %+v", s.Status)
		}
		m.add(of(spec.RestartNever, "stopped"))
		m.stop("stopped")
		m.redefine(of(spec.RestartAlways, "stopped"))
		time.Sleep(time.Minute)
		if s, _ := m.Pod("stopped"); !s.AtRest {
			t.Errorf("a pod that was stopped runs: %+v", s.Status)
		}
	})
}

// TestRedefinePort expects that a probe follows a change of the port that it names.
func TestRedefinePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.dial = func(_ context.Context, _, address string) (net.Conn, error) {
			if address != "127.0.0.1:9090" {
				return nil, errors.New("connection refused")
			}
			client, _ := net.Pipe()
			return client, nil
		}
		m.start()
		with := func(port int32) *spec.Pod {
			p := pod("p", spec.RestartAlways, graceful)
			p.HostNetwork = true
			c := &p.Containers[0]
			c.Ports = []spec.ContainerPort{{Name: "web", ContainerPort: port}}
			c.ReadinessProbe = execProbe("")
			c.ReadinessProbe.Exec, c.ReadinessProbe.TCPSocket = nil, &spec.TCPSocketAction{Port: spec.Port{Name: "web"}}
			return p
		}
		m.add(with(8080))
		time.Sleep(time.Minute)
		before, _ := m.Pod("p")
		if ready(before) {
			t.Fatal("ready without a server")
		}
		m.redefine(with(9090))
		if s := m.until("p", "ready", ready); ids(s)["c0"] != ids(before)["c0"] {
			t.Errorf("the container was restarted: %+v", s.Status)
		}
	})
}

// TestRedefineWithConflict expects that a pod that was stopped or has completed can be changed while another pod has its host port, but not
// started.
func TestRedefineWithConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		of := func(name, command string, labels map[string]string) *spec.Pod {
			p := pod(name, spec.RestartNever, command)
			p.Labels, p.ImageArchives = labels, []string{"/images.tar"}
			p.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: spec.ProtocolTCP}}
			return p
		}
		m.add(of("done", "sleep 1", nil))
		m.untilPhase("done", lifecycle.PhaseSucceeded)
		m.add(of("stopped", graceful, nil))
		m.until("stopped", "running", allRunning)
		m.stop("stopped")
		m.add(of("other", graceful, nil))
		label := map[string]string{"a": "b"}
		m.redefine(of("done", "sleep 1", label))
		m.redefine(of("stopped", "sleep 2", label))
		renamed := of("stopped", "sleep 2", label)
		if _, err := m.Redefine(t.Context(), "", renamed, m.stage(renamed), state.Owner{File: "/renamed.toml"}); err != nil {
			t.Error(err)
		}
		if s, _ := m.Pod("stopped"); s.Pod.Labels["a"] != "b" || s.Owner.File != "/renamed.toml" || !s.AtRest {
			t.Errorf("the stopped pod is %+v", s)
		}
		var refused *supervisor.RefusedError
		_, err := m.Stage(t.Context(), of("done", "sleep 2", label), nil, func(string, lifecycle.Progress) {})
		if !errors.As(err, &refused) {
			t.Errorf("change that starts the completed pod again: %v", err)
		}
		m.engine.Retag("image")
		newer, err := m.NewerImages(t.Context(), of("done", "sleep 1", label))
		if err != nil || len(newer) != 1 {
			t.Fatalf("newer images %v: %v", newer, err)
		}
		_, err = m.Stage(t.Context(), of("done", "sleep 1", label), newer, func(string, lifecycle.Progress) {})
		if !errors.As(err, &refused) {
			t.Errorf("newer image that starts the completed pod again: %v", err)
		}
		staged := supervisor.Staged{Images: newer} // before another pod took the port
		if _, err := m.Redefine(t.Context(), "", of("done", "sleep 1", label), staged, state.Owner{}); !errors.As(err, &refused) {
			t.Errorf("newer image that was staged: %v", err)
		}
		for _, name := range []string{"done", "stopped"} {
			if err := m.Start(t.Context(), name, "", "test"); !errors.As(err, &refused) {
				t.Errorf("start of %s: %v", name, err)
			}
		}
	})
}

// TestRedefineRemovesHook expects that a postStart hook that is removed while it runs is cancelled, and that its failure does not count.
func TestRedefineRemovesHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"post": "sleep 10; exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, graceful)
		p.Containers[0].Lifecycle = &spec.Lifecycle{PostStart: execHook("post")}
		m.add(p)
		time.Sleep(5 * time.Second)
		m.redefine(pod("p", spec.RestartAlways, graceful))
		s := m.until("p", "ready", ready)
		time.Sleep(time.Minute)
		if now, _ := m.Pod("p"); a.count("post") != 1 || now.Status.ContainerStatuses[0].RestartCount != 0 ||
			ids(now)["c0"] != ids(s)["c0"] {
			t.Errorf("the hook ran %d times: %+v", a.count("post"), now.Status)
		}
	})
}
