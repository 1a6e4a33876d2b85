package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestWaitingMessageOfSandbox checks that every container shows the error of the sandbox until it is ready, also during a retry.
func TestWaitingMessageOfSandbox(t *testing.T) {
	pod := &spec.Pod{Name: "p", InitContainers: []spec.Container{{Name: "setup"}}, Containers: []spec.Container{{Name: "app"}}}
	missing := lifecycle.Failure{Reason: lifecycle.ReasonFailedMount, Message: `volume "conf": configmap "shop" not found`}
	facts := lifecycle.Facts{UID: "u", Accepted: at(0)}
	issue := func(n int) {
		t.Helper()
		facts = facts.Apply(lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: n, Round: n}, At: at(float64(n))})
	}
	waiting := func() *lifecycle.Waiting {
		t.Helper()
		s := lifecycle.StatusOf(pod, facts, at(9))
		if diff := cmp.Diff(s.InitContainerStatuses[0].State.Waiting, s.ContainerStatuses[0].State.Waiting); diff != "" {
			t.Errorf("init container and app container differ:\n%s", diff)
		}
		return s.ContainerStatuses[0].State.Waiting
	}
	issue(1)
	silent := &lifecycle.Waiting{Reason: lifecycle.ReasonPodInitializing}
	if diff := cmp.Diff(silent, waiting()); diff != "" {
		t.Errorf("before the start (-want +got):\n%s", diff)
	}
	stopping := &lifecycle.Waiting{Reason: lifecycle.ReasonPodInitializing, Message: missing.Message}
	facts = facts.Apply(lifecycle.ActionFailed{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, Failure: missing, At: at(2)})
	if diff := cmp.Diff(stopping, waiting()); diff != "" {
		t.Errorf("after a failure (-want +got):\n%s", diff)
	}
	issue(2)
	if diff := cmp.Diff(stopping, waiting()); diff != "" {
		t.Errorf("during the retry (-want +got):\n%s", diff)
	}
	facts = facts.Apply(lifecycle.SandboxStarted{Sandbox: 2, At: at(3)})
	if diff := cmp.Diff(silent, waiting()); diff != "" {
		t.Errorf("ready sandbox (-want +got):\n%s", diff)
	}
}

func TestEvictedStatus(t *testing.T) {
	pod := &spec.Pod{Name: "p", RestartPolicy: spec.RestartAlways, Containers: []spec.Container{{Name: "app"}}}
	const message = `Usage of EmptyDir volume "data" exceeds the limit "1Mi". `
	facts := lifecycle.Facts{UID: "u", Accepted: at(0)}
	ref := lifecycle.Ref{Container: "app", Round: 1, Attempt: 1}
	for _, e := range []lifecycle.Event{
		lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, At: at(1)},
		lifecycle.SandboxStarted{Sandbox: 1, At: at(1)},
		lifecycle.Issued{Action: lifecycle.StartContainer{Ref: ref, Sandbox: 1}, At: at(1)},
		lifecycle.ContainerStarted{Ref: ref, At: at(1)},
		lifecycle.PodEvicted{Message: message, At: at(2)},
		lifecycle.PodEvicted{Message: "again", At: at(3)},
	} {
		facts = facts.Apply(e)
	}
	target := func(s lifecycle.Status) []lifecycle.Condition {
		var list []lifecycle.Condition
		for _, c := range s.Conditions {
			if c.Type == lifecycle.DisruptionTarget {
				list = append(list, c)
			}
		}
		return list
	}
	// The phase becomes terminal only when no container can run any more.
	if s := lifecycle.StatusOf(pod, facts, at(4)); s.Phase != lifecycle.PhaseRunning || s.Reason != "" || len(target(s)) > 0 {
		t.Errorf("running: %+v", s)
	}
	facts = facts.Apply(lifecycle.ContainerExited{Ref: ref, At: at(5)})
	s := lifecycle.StatusOf(pod, facts, at(6))
	if s.Phase != lifecycle.PhaseFailed || s.Reason != lifecycle.ReasonEvicted || s.Message != message {
		t.Errorf("terminated: %s, %s, %q", s.Phase, s.Reason, s.Message)
	}
	want := []lifecycle.Condition{{Type: lifecycle.DisruptionTarget, Status: "True", Reason: "TerminationByKubelet", Message: message}}
	if diff := cmp.Diff(want, target(s)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestSandboxReadyResetsFailures checks that failures of a sandbox are kept during retries and cleared when it is ready, and
// that the message of a lost sandbox is not a failure of the next one.
func TestSandboxReadyResetsFailures(t *testing.T) {
	facts := lifecycle.Facts{UID: "u", Accepted: at(0)}
	for _, e := range []lifecycle.Event{
		lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 1, Round: 1}, At: at(1)},
		lifecycle.SandboxStarted{Sandbox: 1, At: at(1)},
		lifecycle.SandboxLost{Sandbox: 1, Message: "killed", At: at(2)},
		lifecycle.Issued{Action: lifecycle.StartSandbox{Sandbox: 2, Round: 2}, At: at(3)},
	} {
		facts = facts.Apply(e)
	}
	if diff := cmp.Diff(lifecycle.Sandbox{N: 2, Requested: at(3)}, facts.Sandbox); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
