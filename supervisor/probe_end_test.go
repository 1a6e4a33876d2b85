package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// What becomes of a container that a probe ends is told in the kubelet's words: that it will be restarted only where its policy,
// or else the pod's, says so, and of a sidecar nothing.
func TestWhatAProbeEnds(t *testing.T) {
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
			"its own Never", spec.RestartAlways, spec.RestartNever, app,
			"Container c0 failed liveness probe", "Container c0 failed startup probe", lifecycle.PhaseFailed,
		},
		{
			"its own OnFailure", spec.RestartNever, spec.RestartOnFailure, app,
			"Container c0 failed liveness probe, will be restarted", "Container c0 failed startup probe, will be restarted", "",
		},
		{
			"a sidecar", spec.RestartNever, spec.RestartAlways, sidecar,
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
					m.until("p", "the end of the container", func(s supervisor.Snapshot) bool {
						if test.on == sidecar {
							return s.Status.InitContainerStatuses[0].RestartCount == 1
						}
						c := s.Status.ContainerStatuses[0]
						return c.RestartCount == 1 || s.Status.Phase.Terminal()
					})
					events, _ := m.Events().Since(0)
					var told []string
					for _, e := range events {
						if e.Reason == "Killing" && e.Container == test.on {
							told = append(told, e.Message)
						}
					}
					if len(told) != 1 || told[0] != want {
						t.Errorf("told %q, want once %q", told, want)
					}
					if s, _ := m.Pod("p"); test.phase != "" && s.Status.Phase != test.phase {
						t.Errorf("the phase is %s, want %s", s.Status.Phase, test.phase)
					}
				})
			})
		}
	}
}

// TestProbeIsTheCauseOfItsEnd has two probes of a container fail at the same moments, many times over: the end that one of them
// leads to follows from its failure, not from the other's.
func TestProbeIsTheCauseOfItsEnd(t *testing.T) {
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
			if e.Kind != supervisor.ContainerLivenessFailed {
				continue
			}
			ends++
			if cause := events[e.Cause-1]; cause.Container != e.Container || cause.Fields["probe"] != "Liveness" || cause.Fields["count"] != "3" {
				t.Errorf("%s was ended because of %s of %s %v", e.Container, cause.Kind, cause.Container, cause.Fields)
			}
		}
		if ends != containers {
			t.Errorf("%d containers were ended by their probes, want %d", ends, containers)
		}
	})
}
