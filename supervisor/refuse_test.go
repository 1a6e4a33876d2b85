package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// unsafeContext sets an unsafe sysctl.
var unsafeContext = &spec.PodSecurityContext{Sysctls: []spec.Sysctl{{Name: "net.core.somaxconn", Value: "1024"}}}

// TestRejectedForAllReasons expects all reasons in one rejection: of the policy, the host and other pods. Nothing is started or saved, and
// an event is emitted.
func TestRejectedForAllReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("not supported on this host")
		m := newMachine(t, fakeruntime.Options{Refuse: func(pod *spec.Pod) error {
			if pod.Name == "two" {
				return why
			}
			return nil
		}})
		m.start()
		m.add(server("one", 8080))
		m.untilPhase("one", lifecycle.PhaseRunning)
		m.leave()
		m.policy = admission.Policy{PodSecurity: admission.Baseline, HostPaths: []string{"/srv"}}
		m.start()
		m.untilPhase("one", lifecycle.PhaseRunning)
		synctest.Wait()

		calls := len(m.engine.Calls())
		two := server("two", 8080)
		two.SecurityContext = unsafeContext
		two.Volumes = []spec.Volume{{Name: "h", HostPath: &spec.HostPathVolume{Path: "/etc"}}}
		_, err := m.Add(two, state.Owner{By: "a test"})
		refused, is := errors.AsType[*supervisor.RefusedError](err)
		if !is || !errors.Is(err, why) {
			t.Fatalf("error %v", err)
		}
		var got []string
		for _, r := range refused.Refusals {
			got = append(got, string(r.Reason)+" "+r.Field)
		}
		want := []string{
			"PodSecurity volumes[0].hostPath", "PodSecurity containers[0].ports[0].hostPort", "PodSecurity securityContext.sysctls[0].name",
			"HostPathForbidden volumes[0].hostPath.path", "SysctlForbidden securityContext.sysctls[0].name",
			"UnexpectedAdmissionError ", "NodePorts containers[0].ports[0].hostPort",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if _, there := m.Pod("two"); there || len(m.engine.Calls()) != calls {
			t.Errorf("the pod exists, or the engine was called: %v", m.engine.Calls()[calls:])
		}
		events, err := m.History(t.Context(), "two")
		if err != nil || len(events) != 1 {
			t.Fatalf("events %v, %v", events, err)
		}
		e := events[0]
		if e.Kind != api.EventPodRejected || e.Reason != "PodSecurity" || e.UID != "" || e.Fields["by"] != "a test" ||
			e.Fields["hint"] == "" {
			t.Errorf("event %+v", e)
		}
	})
}

// TestRejectedAgain expects one event for the attempts to add a pod that is rejected for the same reasons, and another one for others.
func TestRejectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.policy = admission.Policy{HostPaths: []string{}}
		m.start()
		pod := server("web", 8080)
		pod.SecurityContext = unsafeContext
		var staged supervisor.Staged
		for i, events := range []int{1, 1, 1, 2} {
			if i == 3 {
				pod.Volumes = []spec.Volume{{Name: "h", HostPath: &spec.HostPathVolume{Path: "/etc"}}}
			}
			_, err := m.AddStaged(pod, state.Owner{File: "/pods.d/web.toml"}, staged)
			refused, is := errors.AsType[*supervisor.RefusedError](err)
			if !is {
				t.Fatalf("error %v", err)
			}
			staged.Refused = refused.Refusals
			if list, err := m.History(t.Context(), "web"); err != nil || len(list) != events {
				t.Errorf("attempt %d: %d events, %v, want %d", i+1, len(list), err, events)
			}
		}
	})
}

// TestRunningPodUnderStricterPolicy expects that a running pod is not checked again, not even for a restart of its containers.
func TestRunningPodUnderStricterPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		one := server("one", 8080)
		one.RestartPolicy = spec.RestartAlways
		one.Containers[0].Command = []string{"sleep", "60"}
		before := m.add(one)
		m.untilPhase("one", lifecycle.PhaseRunning)
		m.crash()
		m.policy = admission.Policy{PodSecurity: admission.Restricted}
		m.start()
		now := m.until("one", "restarted", func(s supervisor.Snapshot) bool {
			c := s.Status.ContainerStatuses
			return len(c) == 1 && c[0].RestartCount > 1 && c[0].State.Running != nil
		})
		if now.Facts.UID != before.Facts.UID {
			t.Errorf("the pod was replaced")
		}
		if _, err := m.Add(server("two", 8081), state.Owner{}); err == nil {
			t.Error("the policy does not apply to new pods")
		}
	})
}

func TestEphemeralContainerIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.policy = admission.Policy{PodSecurity: admission.Baseline}
		m.start()
		m.add(sleeper("100000"))
		name := sleeper("").Name
		m.untilPhase(name, lifecycle.PhaseRunning)
		c := &spec.Container{
			Name: "d", Image: "image", Command: []string{"true"}, SecurityContext: &spec.SecurityContext{Privileged: new(true)},
		}
		err := m.AddEphemeral(t.Context(), name, "", c, "a test")
		refused, is := errors.AsType[*supervisor.RefusedError](err)
		if !is || len(refused.Refusals) != 1 || refused.Refusals[0].Field != "ephemeralContainers[0].securityContext.privileged" {
			t.Fatalf("error %v", err)
		}
		c.SecurityContext = nil
		if err := m.AddEphemeral(t.Context(), name, "", c, "a test"); err != nil {
			t.Errorf("allowed ephemeral container: %v", err)
		}
	})
}
