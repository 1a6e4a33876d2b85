package supervisor_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

const graceful = "trap 'exit 0' TERM; sleep 100000 & wait"

// TestStopHolds checks that a stopped pod stays stopped after restarts of the daemon and of the host, and starts on request.
func TestStopHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		before := m.add(pod("p", spec.RestartAlways, graceful))
		m.untilPhase("p", lifecycle.PhaseRunning)
		m.stop("p")
		for _, again := range []func(){m.leave, m.crash, func() { m.crash(); m.engine.Reboot(); m.boot = "boot-2" }} {
			again()
			m.start()
			time.Sleep(time.Hour)
			if s, _ := m.Pod("p"); !s.AtRest || s.Facts.Stop.By != "test" || len(m.engine.Running(s.Facts.UID)) > 0 {
				t.Fatalf("after a restart: %+v", s)
			}
		}
		m.startAgain("p")
		s := m.until("p", "running", allRunning)
		if s.Facts.UID != before.Facts.UID || s.Status.ContainerStatuses[0].RestartCount != 1 {
			t.Errorf("after the start: %+v", s.Status)
		}
		m.startAgain("p") // it runs: nothing happens
		time.Sleep(time.Minute)
		if now, _ := m.Pod("p"); ids(now)["c0"] != ids(s)["c0"] {
			t.Errorf("a start of a running pod has restarted it: %+v", now.Status)
		}
	})
}

func TestRestartOfPodAndContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartNever, graceful, "sleep 1", graceful)
		p.InitContainers = []spec.Container{{Name: "init", Image: "image", Command: []string{"true"}}}
		first := m.add(p)
		m.until("p", "c1 completed", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[1].State.Terminated != nil })
		before, _ := m.Pod("p")
		m.restart("p", "c0")
		m.restart("p", "c1")
		s := m.until("p", "c0 and c1 restarted", func(s supervisor.Snapshot) bool {
			list := s.Status.ContainerStatuses
			return list[0].State.Running != nil && list[0].RestartCount == 1 && list[1].RestartCount == 1 && list[1].State.Terminated != nil
		})
		if ids(s)["c2"] != ids(before)["c2"] {
			t.Errorf("container c2 was restarted: %+v", s.Status)
		}
		var refused *supervisor.NotPossibleError
		if err := m.Restart(t.Context(), "p", "", "init", "test"); !errors.As(err, &refused) {
			t.Errorf("restart of a completed init container: %v", err)
		}
		var missing *supervisor.ContainerNotFoundError
		if err := m.Restart(t.Context(), "p", "", "none", "test"); !errors.As(err, &missing) {
			t.Errorf("restart of a container that does not exist: %v", err)
		}
		m.restart("p", "")
		s = m.until("p", "restarted", func(s supervisor.Snapshot) bool {
			return s.Status.InitContainerStatuses[0].RestartCount == 1 && s.Status.ContainerStatuses[2].RestartCount == 1 &&
				s.Status.ContainerStatuses[2].State.Running != nil
		})
		if s.Facts.UID != first.Facts.UID || s.Facts.Sandbox.N != 2 {
			t.Errorf("after the restart: %+v", s.Facts)
		}
		m.stop("p")
		if err := m.Restart(t.Context(), "p", "", "c0", "test"); !errors.As(err, &refused) {
			t.Errorf("restart of a container of a stopped pod: %v", err)
		}
		m.restart("p", "") // also starts a pod that was stopped
		m.until("p", "running", func(s supervisor.Snapshot) bool { return s.Status.ContainerStatuses[0].State.Running != nil })
	})
}

// TestStartNeedsPorts checks that a stopped pod is not started while another pod has its host port.
func TestStartNeedsPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		withPort := func(name string) *spec.Pod {
			p := pod(name, spec.RestartAlways, graceful)
			p.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: "TCP"}}
			return p
		}
		m.add(withPort("p"))
		m.until("p", "running", allRunning)
		m.stop("p")
		m.add(withPort("q"))
		var refused *supervisor.RefusedError
		if err := m.Start(t.Context(), "p", "", "test"); !errors.As(err, &refused) {
			t.Errorf("start with a port in use: %v", err)
		}
		m.delete("q")
		m.startAgain("p")
		m.until("p", "running", allRunning)
	})
}

// TestRedefineRestartsPod checks that a change of what belongs to the sandbox restarts the pod with its UID, also if the daemon is killed
// meanwhile, and starts no pod that was stopped.
func TestRedefineRestartsPod(t *testing.T) {
	const slow = "trap '' TERM; sleep 100000"
	for name, interrupt := range map[string]bool{"undisturbed": false, "daemon killed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, fakeruntime.Options{})
				m.start()
				m.CompareWith(change.Between)
				before := m.add(pod("p", spec.RestartNever, slow, graceful))
				m.until("p", "running", allRunning)
				to := pod("p", spec.RestartNever, slow, graceful)
				to.Hostname = "other"
				if changes := m.redefine(to); len(changes) != 1 || changes[0].Effect != change.RestartPod {
					t.Fatalf("%v", changes)
				}
				if interrupt {
					time.Sleep(2 * time.Second)
					m.crash()
					m.start()
					m.CompareWith(change.Between)
				}
				s := m.until("p", "running in a new sandbox", func(s supervisor.Snapshot) bool {
					return s.Facts.Sandbox.N == 2 && allRunning(s)
				})
				if s.Facts.UID != before.Facts.UID || s.Pod.Hostname != "other" {
					t.Errorf("%+v", s.Facts)
				}
				for _, c := range s.Status.ContainerStatuses {
					why := s.Facts.Container(c.Name).Previous.StopReason
					if why != lifecycle.ReasonDefinitionChanged || c.RestartCount != 1 {
						t.Errorf("%s: %d restarts, stopped because of %s", c.Name, c.RestartCount, why)
					}
				}
				m.stop("p")
				m.until("p", "stopped", func(s supervisor.Snapshot) bool { return s.AtRest })
				again := pod("p", spec.RestartNever, slow, graceful)
				m.redefine(again)
				time.Sleep(time.Hour)
				if s, _ := m.Pod("p"); !s.AtRest || s.Pod.Hostname != "" {
					t.Errorf("a pod that was stopped: %+v", s.Status)
				}
				m.startAgain("p")
				m.until("p", "running", allRunning)
			})
		})
	}
}

func TestRedefine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pulls atomic.Int32 // since the registry is dead
		var dead atomic.Bool
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "PullImage" {
				if dead.Load() {
					pulls.Add(1)
					return lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "no route to host"}
				}
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, graceful, graceful, graceful))
		before := m.until("p", "running", allRunning)

		to := pod("p", spec.RestartAlways, graceful, graceful)
		to.Labels = map[string]string{"app": "shop"}
		to.Containers[1].Image, to.Containers[1].ImagePullPolicy = "image:2", spec.PullAlways
		to.Containers = append(to.Containers, spec.Container{Name: "new", Image: "image:3", Command: []string{"sh", "-c", graceful}})
		staged := m.stage(to)
		dead.Store(true)
		changes, err := m.Redefine(t.Context(), before.Facts.UID, to, staged, state.Owner{By: "test"})
		if err != nil || len(changes) == 0 {
			t.Fatalf("%v, %v", changes, err)
		}
		m.crash() // the change was saved
		m.start()
		time.Sleep(time.Minute)
		after := m.until("p", "running", allRunning)
		old, now := ids(before), ids(after)
		if now["c0"] != old["c0"] || now["c1"] == old["c1"] || now["new"] == "" ||
			after.Status.ContainerStatuses[1].ImageID != "sha256:image:2" {
			t.Errorf("containers %v, before %v; %+v", now, old, after.Status)
		}
		if pulls.Load() > 0 || after.Pod.Labels["app"] != "shop" || len(m.engine.Running(after.Facts.UID)) != 3 {
			t.Errorf("%d pulls, labels %v, running %v", pulls.Load(), after.Pod.Labels, m.engine.Running(after.Facts.UID))
		}
		if changes, err := m.Redefine(t.Context(), "", to, supervisor.Staged{}, state.Owner{}); len(changes) > 0 || err != nil {
			t.Errorf("the same definition again: %v, %v", changes, err)
		}
	})
}

func TestRedefineErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{Unreadable: func(p *spec.Pod) error {
			if p.Labels["broken"] != "" {
				return errors.New("configmap \"x\" not found")
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, graceful))
		m.until("p", "running", allRunning)
		to := pod("p", spec.RestartAlways, graceful)
		to.HostNetwork = true
		var replace *supervisor.ReplaceError
		if _, err := m.Redefine(t.Context(), "", to, m.stage(to), state.Owner{}); !errors.As(err, &replace) || len(replace.Changes) != 1 {
			t.Errorf("hostNetwork: %v", err)
		}
		to = pod("p", spec.RestartAlways, "sleep 5")
		var refused *supervisor.NotPossibleError
		if _, err := m.Redefine(t.Context(), "", to, supervisor.Staged{}, state.Owner{}); !errors.As(err, &refused) {
			t.Errorf("without a staged image: %v", err)
		}
		to.Labels = map[string]string{"broken": "yes"}
		if _, err := m.Stage(t.Context(), to, nil, func(string, lifecycle.Progress) {}); err == nil {
			t.Error("a definition with a missing config map was staged")
		}
		if _, err := m.Redefine(t.Context(), "other", to, supervisor.Staged{}, state.Owner{}); !errors.Is(err, supervisor.ErrNotFound) {
			t.Errorf("another UID: %v", err)
		}
	})
}

// TestRedefineCompletedPod checks that a pod that has completed runs again with a changed container, and not if it only got a label.
func TestRedefineCompletedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(pod("p", spec.RestartNever, "sleep 1", "sleep 1"))
		before := m.untilPhase("p", lifecycle.PhaseSucceeded)
		labelled := pod("p", spec.RestartNever, "sleep 1", "sleep 1")
		labelled.Labels = map[string]string{"a": "b"}
		m.redefine(labelled)
		time.Sleep(time.Minute)
		s, _ := m.Pod("p")
		if s.Status.Phase != lifecycle.PhaseSucceeded || s.Facts.Round != before.Facts.Round || s.Status.ObservedGeneration != 1 {
			t.Errorf("after a change of labels: %+v", s.Status)
		}
		m.redefine(pod("p", spec.RestartNever, "sleep 1", "exit 3"))
		s = m.untilPhase("p", lifecycle.PhaseFailed)
		if c := s.Status.ContainerStatuses; c[0].RestartCount != 1 || c[1].RestartCount != 1 || s.Facts.UID != before.Facts.UID {
			t.Errorf("after a change of a container: %+v", s.Status)
		}
		if s.Status.ObservedGeneration != 2 {
			t.Errorf("generation %d, want 2", s.Status.ObservedGeneration)
		}
	})
}

// TestRedefineProbe checks that a changed probe runs with its new definition.
func TestRedefineProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"good": "true", "bad": "exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, graceful)
		p.Containers[0].ReadinessProbe = execProbe("good")
		m.add(p)
		before := m.until("p", "ready", ready)
		to := pod("p", spec.RestartAlways, graceful)
		to.Containers[0].ReadinessProbe = execProbe("bad")
		m.redefine(to)
		after := m.until("p", "not ready", func(s supervisor.Snapshot) bool { return !ready(s) })
		if ids(before)["c0"] != ids(after)["c0"] {
			t.Errorf("the container was restarted: %+v", after.Status)
		}
	})
}

// TestRemovedContainerHook checks that a removed container gets the preStop hook that it was started with, also after a restart of the
// daemon.
func TestRemovedContainerHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers(map[string]string{"hook": "sleep 10"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartAlways, graceful, graceful)
		p.Containers[1].Lifecycle = &spec.Lifecycle{PreStop: execHook("hook")}
		m.add(p)
		m.until("p", "running", allRunning)
		m.redefine(pod("p", spec.RestartAlways, graceful))
		time.Sleep(5 * time.Second)
		if a.count("hook") != 1 {
			t.Fatal("the preStop hook was not run")
		}
		m.crash()
		m.start()
		time.Sleep(time.Minute)
		s, _ := m.Pod("p")
		if a.count("hook") != 2 || len(m.engine.Running(s.Facts.UID)) != 1 || len(s.Facts.Containers) != 1 {
			t.Errorf("hook run %d times, running %v", a.count("hook"), m.engine.Running(s.Facts.UID))
		}
		if found, _ := m.engine.Inventory(t.Context()); slices.ContainsFunc(found[0].Runs,
			func(r lifecycle.Run) bool { return r.Container == "c1" }) {
			t.Errorf("a record of the removed container is left: %+v", found)
		}
	})
}

// TestAddStaged checks that a pod whose images were staged is not pulled again.
func TestAddStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartAlways, graceful)
		p.Containers[0].ImagePullPolicy = spec.PullAlways
		staged := m.stage(p)
		if _, err := m.AddStaged(p, state.Owner{}, staged); err != nil {
			t.Fatal(err)
		}
		m.until("p", "running", allRunning)
		pulls := 0
		for _, c := range m.engine.Calls() {
			if c.Method == "PullImage" {
				pulls++
			}
		}
		if pulls != 1 {
			t.Errorf("%d pulls, want that of the staging", pulls)
		}
	})
}

// TestRedefineSetsOwner: a pod without an owner, because its state file was lost, gets one even if its definition stays the same.
func TestRedefineSetsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartAlways, graceful)
		if _, err := m.Add(p, state.Owner{}); err != nil {
			t.Fatal(err)
		}
		before := m.until("p", "running", allRunning)
		owner := state.Owner{By: "the pods directory (p.toml)", File: "/pods.d/p.toml"}
		if changes, err := m.Redefine(t.Context(), before.Facts.UID, p, supervisor.Staged{}, owner); len(changes) > 0 || err != nil {
			t.Fatalf("%v, %v", changes, err)
		}
		m.crash() // the owner was saved
		m.start()
		if after := m.until("p", "running", allRunning); after.Owner != owner || ids(after)["c0"] != ids(before)["c0"] {
			t.Errorf("owner %+v, containers %v, before %v", after.Owner, ids(after), ids(before))
		}
	})
}
