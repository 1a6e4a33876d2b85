package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
)

// TestRestartUnhealthyContainers: the first step of an escalation restarts the sidecars, the init container whose turn it is and the app
// containers.
func TestRestartUnhealthyContainers(t *testing.T) {
	pod := &spec.Pod{
		InitContainers: []spec.Container{{Name: "sidecar", RestartPolicy: spec.RestartAlways}, {Name: "first"}, {Name: "second"}},
		Containers:     []spec.Container{{Name: "app"}},
	}
	p := plan{pod: pod, facts: &Facts{Round: 1, Containers: map[string]Container{
		"sidecar": {Newest: Attempt{Ref: Ref{Container: "sidecar", Round: 1, Attempt: 1}, Started: Instant{Boot: "b", Mono: 1}}},
	}}}
	p.step(StepRestart, 0)
	var restarted []string
	for _, a := range p.decision.Actions {
		if a, ok := a.(RestartUnhealthy); ok {
			restarted = append(restarted, a.Container)
		}
	}
	if want := []string{"sidecar", "first", "app"}; !slices.Equal(restarted, want) {
		t.Errorf("restarted: %v, want %v", restarted, want)
	}
}

// TestRebootOfUnhealthyPod: the last step of an escalation reboots the host, and restarts nothing.
func TestRebootOfUnhealthyPod(t *testing.T) {
	p := plan{pod: &spec.Pod{Containers: []spec.Container{{Name: "app"}}}, facts: &Facts{}}
	p.step(StepReboot, time.Minute)
	if want := []Action{RebootHost{Unready: time.Minute}}; !slices.Equal(p.decision.Actions, want) {
		t.Errorf("%#v, want %#v", p.decision.Actions, want)
	}
}
