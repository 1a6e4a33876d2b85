package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestEventOfProbeStop expects the kubelet's message for a container that a probe stops. It announces a restart only if the restart policy
// of the container, or of the pod, demands one, and never for a sidecar.
func TestEventOfProbeStop(t *testing.T) {
	const app, sidecar = "c0", "side"
	for _, test := range []struct {
		name           string
		pod, container spec.RestartPolicy
		on             string
		liveness       string
		startup        string
		phase          lifecycle.Phase
	}{
		{
			"Never", spec.RestartNever, "", app,
			"Container c0 failed liveness probe", "Container c0 failed startup probe", lifecycle.PhaseFailed,
		},
		{
			"Never of the container", spec.RestartAlways, spec.RestartNever, app,
			"Container c0 failed liveness probe", "Container c0 failed startup probe", lifecycle.PhaseFailed,
		},
		{
			"OnFailure of the container", spec.RestartNever, spec.RestartOnFailure, app,
			"Container c0 failed liveness probe, will be restarted", "Container c0 failed startup probe, will be restarted", "",
		},
		{
			"sidecar", spec.RestartNever, spec.RestartAlways, sidecar,
			"Init container side failed liveness probe", "Init container side failed startup probe", "",
		},
	} {
		for kind, want := range map[string]string{"liveness": test.liveness, "startup": test.startup} {
			t.Run(test.name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := newAnswers(map[string]string{"probe": "exit 1"})
					m := newMachine(t, fakeruntime.Options{Exec: a.program})
					m.start()
					p := pod("p", test.pod, "trap 'exit 3' TERM; sleep 100000 & wait")
					c := &p.Containers[0]
					if test.on == sidecar {
						p.InitContainers = []spec.Container{{Name: sidecar, Image: "image", Command: c.Command}}
						c = &p.InitContainers[0]
					}
					c.RestartPolicy = test.container
					if kind == "liveness" {
						c.LivenessProbe = execProbe("probe")
					} else {
						c.StartupProbe = execProbe("probe")
					}
					m.add(p)
					m.until("p", "restarted or completed", func(s supervisor.Snapshot) bool {
						if test.on == sidecar {
							return s.Status.InitContainerStatuses[0].RestartCount == 1
						}
						c := s.Status.ContainerStatuses[0]
						return c.RestartCount == 1 || s.Status.Phase.Terminal()
					})
					events, _ := m.Events().Since(0)
					var emitted []string
					for _, e := range events {
						if e.Reason == "Killing" && e.Container == test.on {
							emitted = append(emitted, e.Message)
						}
					}
					if len(emitted) != 1 || emitted[0] != want {
						t.Errorf("emitted %q, want %q once", emitted, want)
					}
					if s, _ := m.Pod("p"); test.phase != "" && s.Status.Phase != test.phase {
						t.Errorf("the phase is %s, want %s", s.Status.Phase, test.phase)
					}
				})
			})
		}
	}
}

// TestProbeIsTheCauseOfItsStop has two probes of a container that fail at the same moments. The cause of the stop must be the failure of
// the liveness probe.
func TestProbeIsTheCauseOfItsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const containers = 30
		a := newAnswers(map[string]string{"live": "echo dead; exit 1", "ready": "echo no; exit 1"})
		m := newMachine(t, fakeruntime.Options{Exec: a.program})
		m.start()
		p := pod("p", spec.RestartNever, slices.Repeat([]string{"trap 'exit 0' TERM; sleep 100000 & wait"}, containers)...)
		for i := range p.Containers {
			p.Containers[i].LivenessProbe, p.Containers[i].ReadinessProbe = execProbe("live"), execProbe("ready")
		}
		m.add(p)
		m.untilPhase("p", lifecycle.PhaseSucceeded)
		events, _ := m.Events().Since(0)
		ends := 0
		for _, e := range events {
			if e.Kind != api.EventContainerLivenessFailed {
				continue
			}
			ends++
			if cause := events[e.Cause-1]; cause.Container != e.Container || cause.Fields["probe"] != "Liveness" ||
				cause.Fields["count"] != "3" {
				t.Errorf("the cause of the stop of %s is %s of %s %v", e.Container, cause.Kind, cause.Container, cause.Fields)
			}
		}
		if ends != containers {
			t.Errorf("%d containers were stopped by their probes, want %d", ends, containers)
		}
	})
}
