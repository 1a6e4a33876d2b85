package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// server returns a pod with a host port that runs until it is stopped.
func server(name string, port int32) *spec.Pod {
	pod := sleeper("100000")
	pod.Name = name
	pod.Containers[0].Ports = []spec.ContainerPort{{ContainerPort: 80, HostPort: port, Protocol: spec.ProtocolTCP}}
	return pod
}

func TestHostPortInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		m.add(server("one", 8080))
		m.add(server("other", 8081))
		_, err := m.Add(server("two", 8080), state.Owner{})
		refused, is := errors.AsType[*supervisor.RefusedError](err)
		want := []lifecycle.Refusal{{
			Reason: lifecycle.ReasonNodePorts, Field: "containers[0].ports[0].hostPort",
			Message: lifecycle.NodePortsMessage + `: host port 8080/TCP is in use by pod "one"`,
			Hint:    "use another host port, or delete the other pod: podstead delete one",
		}}
		if !is || refused.Pod != "two" || !cmp.Equal(want, refused.Refusals) ||
			!strings.Contains(err.Error(), `host port 8080/TCP is in use by pod "one"`) {
			t.Fatalf("second pod with the host port: %v", err)
		}
		if _, exists := m.Pod("two"); exists {
			t.Error("the rejected pod exists")
		}
		// A pod that is being stopped does not block its successor, which waits for the port when its sandbox is created.
		if err := m.Stop(t.Context(), "one", supervisor.StopOptions{By: "a test"}); err != nil {
			t.Fatal(err)
		}
		m.add(server("two", 8080))
		m.untilPhase("one", lifecycle.PhaseFailed)
		if _, err := m.Add(server("three", 8080), state.Owner{}); err == nil {
			t.Error("the port of the successor was given to another pod")
		}
	})
}

func TestHostPortOfConcurrentPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		var added sync.WaitGroup
		errs := make(chan error, 10)
		for i := range 10 {
			added.Go(func() {
				_, err := m.Add(server("p"+string(rune('0'+i)), 8080), state.Owner{})
				errs <- err
			})
		}
		added.Wait()
		close(errs)
		accepted := 0
		for err := range errs {
			if err == nil {
				accepted++
			}
		}
		if accepted != 1 {
			t.Errorf("%d pods were accepted for one host port, want 1", accepted)
		}
	})
}

func TestHostRejectsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("host port 22/TCP: sshd (process 7) listens there")
		m := newMachine(t, fakeruntime.Options{Refuse: func(*spec.Pod) error { return why }})
		m.start()
		if _, err := m.Add(server("one", 22), state.Owner{}); !errors.Is(err, why) {
			t.Errorf("error %v, want %v", err, why)
		}
	})
}

func TestVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		pod := sleeper("100000")
		pod.Volumes = []spec.Volume{
			{Name: "a", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "data"}},
			{Name: "b", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "data"}},
			{Name: "c", EmptyDir: &spec.EmptyDirVolume{}},
		}
		m.add(pod)
		m.untilPhase(pod.Name, lifecycle.PhaseRunning)
		list, err := m.Volumes(t.Context())
		if diff := cmp.Diff([]supervisor.Volume{{Name: "data", Pods: []string{pod.Name}}}, list); diff != "" || err != nil {
			t.Errorf("%v, (-want +got):\n%s", err, diff)
		}
		err = m.RemoveVolume(t.Context(), "data")
		if used, is := errors.AsType[*supervisor.VolumeInUseError](err); !is || used.Pod != pod.Name {
			t.Errorf("removal of a volume in use: %v", err)
		}
		if err := m.Stop(t.Context(), pod.Name, supervisor.StopOptions{Delete: true}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved(pod.Name)
		if err := m.RemoveVolume(t.Context(), "data"); err != nil {
			t.Error(err)
		}
		if err := m.RemoveVolume(t.Context(), "data"); !errors.Is(err, supervisor.ErrNotFound) {
			t.Errorf("second removal: %v", err)
		}
		if list, err := m.Volumes(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("remaining volumes: %v, %v", list, err)
		}
	})
}

func TestPodWithVolumeInRemovalIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, resume := make(chan struct{}), make(chan struct{})
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "RemoveVolume" {
				close(started)
				<-resume
			}
			return nil
		}})
		m.start()
		pod := sleeper("0")
		pod.Volumes = []spec.Volume{{Name: "a", PersistentVolumeClaim: &spec.ClaimVolume{ClaimName: "data"}}}
		m.add(pod)
		m.untilPhase(pod.Name, lifecycle.PhaseSucceeded)
		if err := m.Stop(t.Context(), pod.Name, supervisor.StopOptions{Delete: true}); err != nil {
			t.Fatal(err)
		}
		m.untilRemoved(pod.Name)
		removed := make(chan error)
		go func() { removed <- m.RemoveVolume(t.Context(), "data") }()
		<-started
		if _, err := m.Add(pod, state.Owner{}); err == nil || !strings.Contains(err.Error(), `volume "data" is being deleted`) {
			t.Errorf("the pod was not rejected: %v", err)
		}
		close(resume)
		if err := <-removed; err != nil {
			t.Error(err)
		}
		m.add(pod)
		m.untilPhase(pod.Name, lifecycle.PhaseSucceeded)
	})
}

// TestEviction expects that an evicted pod fails, whatever its restart policy is.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		pod := sleeper("100000")
		uid := m.add(pod).Facts.UID
		m.untilPhase(pod.Name, lifecycle.PhaseRunning)
		m.engine.Evict(uid, "too much. ")
		s := m.untilPhase(pod.Name, lifecycle.PhaseFailed)
		if s.Status.Reason != lifecycle.ReasonEvicted || s.Status.Message != "too much. " {
			t.Errorf("status: %s, %q", s.Status.Reason, s.Status.Message)
		}
		emitted := 0
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind == api.EventPodEvicted && e.Message == "too much. " && e.Reason == "Evicted" {
				emitted++
			}
		}
		if emitted != 1 {
			t.Errorf("emitted %d times, want once", emitted)
		}
	})
}

// TestMissingVolumeIsEmittedOnce expects one event for a volume that stays missing.
func TestMissingVolumeIsEmittedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missing atomic.Bool
		missing.Store(true)
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if c.Method == "StartSandbox" && missing.Load() {
				return lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: `volume "conf": configmap "shop" not found`}
			}
			return nil
		}})
		m.start()
		pod := sleeper("100000")
		m.add(pod)
		s := m.until(pod.Name, "waiting", func(s supervisor.Snapshot) bool { return s.Facts.Sandbox.Failures > 0 })
		time.Sleep(10 * time.Minute)
		if w := s.Status.ContainerStatuses[0].State.Waiting; w == nil || w.Reason != lifecycle.ReasonContainerCreating ||
			!strings.Contains(w.Message, `"shop" not found`) {
			t.Errorf("waiting state: %+v", w)
		}
		missing.Store(false)
		m.untilPhase(pod.Name, lifecycle.PhaseRunning)
		emitted := 0
		events, _ := m.Events().Since(0)
		for _, e := range events {
			if e.Kind == api.EventVolumeFailed {
				emitted++
			}
		}
		if emitted != 1 {
			t.Errorf("emitted %d times, want once", emitted)
		}
	})
}

func sleeper(seconds string) *spec.Pod {
	return &spec.Pod{Name: "p", RestartPolicy: spec.RestartNever, Containers: []spec.Container{
		{Name: "c", Image: "i", Command: []string{"sleep", seconds}},
	}}
}
