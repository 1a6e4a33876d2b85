package supervisor_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// holding returns a pod that requests memory, and runs until it is stopped.
func holding(name, memory string) *spec.Pod {
	pod := sleeper("100000")
	pod.Name = name
	pod.Containers[0].Resources.Requests = spec.ResourceList{"memory": resource.MustParse(memory)}
	return pod
}

// oneGi returns options of a host with 1 GiB of memory.
func oneGi() fakeruntime.Options {
	return fakeruntime.Options{Allocatable: spec.ResourceList{"memory": resource.MustParse("1Gi")}}
}

// expectOutOfMemory expects that a pod is rejected because of its request.
func (m *machine) expectOutOfMemory(pod *spec.Pod) {
	m.t.Helper()
	_, err := m.Add(pod, state.Owner{})
	refused, is := errors.AsType[*supervisor.RefusedError](err)
	if !is || len(refused.Refusals) != 1 || refused.Refusals[0].Reason != lifecycle.ReasonOutOfMemory {
		m.t.Errorf("pod %s: error %v, want %s", pod.Name, err, lifecycle.ReasonOutOfMemory)
	}
	if _, exists := m.Pod(pod.Name); exists {
		m.t.Errorf("the rejected pod %s exists", pod.Name)
	}
}

// TestRequestsBeyondHost expects that requests count until a pod has terminated, also while it is being stopped.
func TestRequestsBeyondHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, oneGi())
		m.start()
		one := holding("one", "600Mi")
		one.Containers[0].Command = []string{"sh", "-c", "trap '' TERM; sleep 100000"}
		one.TerminationGracePeriodSeconds = 30
		m.add(one)
		m.expectOutOfMemory(holding("two", "600Mi"))
		m.add(holding("three", "424Mi"))
		m.untilPhase("one", lifecycle.PhaseRunning)
		m.untilPhase("three", lifecycle.PhaseRunning)
		m.expectOutOfMemory(holding("two", "1"))
		m.add(holding("none", "0"))

		if err := m.Stop(t.Context(), "one", supervisor.StopOptions{By: "a test"}); err != nil {
			t.Fatal(err)
		}
		m.expectOutOfMemory(holding("two", "600Mi"))
		m.untilPhase("one", lifecycle.PhaseFailed)
		m.add(holding("two", "600Mi"))
	})
}

// TestRequestsOfConcurrentPods expects that pods that are added at the same time do not get the same memory.
func TestRequestsOfConcurrentPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, oneGi())
		m.start()
		var added sync.WaitGroup
		errs := make(chan error, 10)
		for i := range 10 {
			added.Go(func() {
				_, err := m.Add(holding(fmt.Sprintf("p%d", i), "300Mi"), state.Owner{})
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
		if accepted != 3 {
			t.Errorf("%d pods of 300Mi were accepted in 1Gi, want 3", accepted)
		}
	})
}

// TestRunningPodOnSmallerHost expects that a recovered pod keeps running on a host that has become too small, also after restarts of its
// containers, and that its requests count for new pods.
func TestRunningPodOnSmallerHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, oneGi())
		m.policy = admission.Policy{IgnoreRequests: true}
		m.start()
		one := holding("one", "4Gi")
		one.RestartPolicy = spec.RestartAlways
		one.Containers[0].Command = []string{"sleep", "60"}
		before := m.add(one)
		m.untilPhase("one", lifecycle.PhaseRunning)
		m.crash()
		m.policy = admission.Policy{}
		m.start()
		now := m.until("one", "restarted", func(s supervisor.Snapshot) bool {
			c := s.Status.ContainerStatuses
			return len(c) == 1 && c[0].RestartCount > 1 && c[0].State.Running != nil
		})
		if now.Facts.UID != before.Facts.UID {
			t.Errorf("the pod was replaced")
		}
		m.expectOutOfMemory(holding("two", "1Mi"))
		m.crash()
		m.boot = "boot-2"
		m.start()
		m.untilPhase("one", lifecycle.PhaseRunning)
	})
}

// TestRejectedForRequestsBeforePorts expects the kubelet's order of reasons.
func TestRejectedForRequestsBeforePorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, oneGi())
		m.start()
		m.add(server("one", 8080))
		two := server("two", 8080)
		two.Containers[0].Resources.Requests = spec.ResourceList{"memory": resource.MustParse("2Gi")}
		_, err := m.Add(two, state.Owner{})
		if err == nil || !strings.Contains(err.Error(), "; NodePorts: containers[0].ports[0].hostPort: Predicate NodePorts failed: "+
			"node(s) didn't have free ports for the requested pod ports: host port 8080/TCP is in use by pod \"one\"") ||
			!strings.HasPrefix(err.Error(), `pod "two" rejected: OutOfmemory: `) {
			t.Errorf("error %v", err)
		}
	})
}
