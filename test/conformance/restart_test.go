//go:build e2e

package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestCrashLoopBackOff: a container that always fails restarts immediately, and then after delays that double. Meanwhile it is waiting
// with CrashLoopBackOff and its last termination.
func TestCrashLoopBackOff(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
restartBackoff = { initialSeconds = 1, maxSeconds = 300 }
[[containers]]
@app exit=1 run=0s
`)
	s.check(checkBackOff(s, "app", time.Second, 300*time.Second, 3))
	var c api.ContainerStatus
	s.await(func() error { // the delay after the fifth run is 8 s, and those after it are longer
		c = s.container("app")
		if c.State.Waiting == nil || c.State.Waiting.Reason != api.ReasonCrashLoopBackOff || c.RestartCount < 4 {
			return fmt.Errorf("not in CrashLoopBackOff: %s", text(c))
		}
		return nil
	})
	want := fmt.Sprintf("back-off %v restarting failed container=app pod=%s_default(%s)", time.Second<<(c.RestartCount-1), s.name, s.uid)
	if got := c.State.Waiting.Message; got != want {
		t.Errorf("waiting message %q, want %q", got, want)
	}
	if d := c.LastState.Terminated; d == nil || d.ExitCode != 1 || d.Reason != api.ReasonError {
		t.Errorf("last state: %s", text(c.LastState))
	}
	if p := s.pod(); p.Status.Phase != api.PhaseRunning {
		t.Errorf("phase %s, want Running", p.Status.Phase)
	}
}

// TestCrashLoopBackOffReachesCap: the delay does not exceed maxSeconds.
func TestCrashLoopBackOffReachesCap(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
restartBackoff = { initialSeconds = 0.2, maxSeconds = 1 }
[[containers]]
@app exit=1 run=0s
`)
	s.check(checkBackOff(s, "app", 200*time.Millisecond, time.Second, 1))
	s.await(s.ran("app", 8), func() error {
		events := s.events(api.EventContainerBackOff, "app")
		if n := len(events); n == 0 || events[n-1].Attempt < 7 {
			return errors.New("no back-off event after the seventh run or a later one")
		}
		return nil
	})
	s.check(checkBackOff(s, "app", 200*time.Millisecond, time.Second, 1))
}

// TestRestartRulesPrecedence: a matching rule takes precedence over the container's restart policy, and that over the pod's.
//
// fields: containers[].restartPolicy, containers[].restartPolicyRules[].{action,exitCodes.operator,exitCodes.values}
func TestRestartRulesPrecedence(t *testing.T) {
	t.Parallel()
	const often = "restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"
	t.Run("Never", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, `
restartPolicy = "Never"
`+often+`
[[containers]]
@in exit=42,42,1 run=0s
restartPolicy = "Never"
restartPolicyRules = [{ action = "Restart", exitCodes = { operator = "In", values = [41, 42] } }]
[[containers]]
@not-in exit=7,0 run=0s
restartPolicy = "Never"
restartPolicyRules = [{ action = "Restart", exitCodes = { operator = "NotIn", values = [0, 3] } }]
[[containers]]
@own exit=1,1,0 run=0s
restartPolicy = "OnFailure"
[[containers]]
@pods exit=42 run=0s
`)
		s.awaitPhase(api.PhaseFailed)
		s.checkRestarts(2, "in", "own")
		s.checkRestarts(1, "not-in")
		s.checkRestarts(0, "pods")
		s.checkTerminated("in", 1, api.ReasonError)
		s.checkTerminated("pods", 42, api.ReasonError)
	})
	t.Run("Always", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, `
restartPolicy = "Always"
`+often+`
[[containers]]
@own exit=1 run=0s
restartPolicy = "Never"
[[containers]]
@pods exit=0 run=0s
`)
		s.await(s.restarted("pods", 3), s.exited("own", 1))
		s.checkRestarts(0, "own")
		s.checkTerminated("own", 1, api.ReasonError)
	})
}

// TestRestartAllContainers: an exit that matches such a rule stops all containers without hooks and starts them again in the same
// sandbox, init containers first. All restart counts rise. A sidecar that is stopped by this restart, or with the pod, does not trigger
// another one.
//
// fields: containers[].restartPolicyRules[].action
func TestRestartAllContainers(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@init run=0s
[[initContainers]]
@sidecar exit=3
restartPolicy = "Always"
restartPolicyRules = [{ action = "RestartAllContainers", exitCodes = { operator = "NotIn", values = [0] } }]
[[containers]]
@app until=over
lifecycle.preStop.exec = { @PreStop-app run=0s }
[[containers]]
@source exit=42,0 run=0.5s
restartPolicy = "Never"
restartPolicyRules = [{ action = "RestartAllContainers", exitCodes = { operator = "In", values = [42] } }]
`)
	s.await(s.exited("source", 2), s.ran("app", 2))
	s.touch("over")
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	for _, name := range []string{"init", "sidecar", "app", "source"} {
		s.checkRestarts(1, name)
		if n := len(all.runs(name)); n != 2 {
			t.Errorf("%s ran %d times, want 2", name, n)
		}
	}
	s.check(all.DoesNotStart("PreStop-app"))
	if n := len(s.events(api.EventSandboxReady, "")); n != 1 {
		t.Errorf("%d sandboxes, want 1", n)
	}
	if by := s.event(api.EventPodRestarting, "").Fields["container"]; by != "source" {
		t.Errorf("restart requested by %s, want source", by)
	}
}

// TestRestartAllContainersAfterCompletion: a pod that is done completes, even if a sidecar then exits with a code that its rule matches.
func TestRestartAllContainersAfterCompletion(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@sidecar exit=42
restartPolicy = "Always"
restartPolicyRules = [{ action = "RestartAllContainers", exitCodes = { operator = "In", values = [42] } }]
[[containers]]
@app until=over
`)
	s.await(s.started("sidecar", "app"))
	s.touch("over")
	s.awaitPhase(api.PhaseSucceeded)
	s.checkRestarts(0, "sidecar", "app")
	s.checkTerminated("sidecar", 42, api.ReasonError)
}

// TestActiveDeadline: a pod that exceeds activeDeadlineSeconds fails, with its hooks and grace period.
//
// fields: activeDeadlineSeconds
func TestActiveDeadline(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
activeDeadlineSeconds = 20
terminationGracePeriodSeconds = 60
[[containers]]
@app term=0.5s
lifecycle.preStop.exec = { @PreStop-app run=0.5s }
`)
	p := s.awaitPhase(api.PhaseFailed)
	if p.Status.Reason != api.ReasonDeadlineExceeded ||
		p.Status.Message != "Pod was active on the node longer than the specified deadline" {
		t.Errorf("reason %s, %q", p.Status.Reason, p.Status.Message)
	}
	if active := s.event(api.EventPodDeadlineExceeded, "").Time.Sub(s.event(api.EventPodAccepted,
		"").Time); active < 19900*time.Millisecond {
		t.Errorf("stopped after %v, want 20 s", active)
	}
	if len(s.timeline().runs("app")) > 0 { // on a slow host the deadline may pass before the container starts
		s.check(s.timeline().EndsBeforeSignal("PreStop-app", "app"), s.exited("app", 1)())
	}
	if killed := s.events(api.EventContainerKilled, ""); len(killed) > 0 {
		t.Errorf("killed: %+v", killed)
	}
}

// TestConditions: the conditions of a pod become True in order.
func TestConditions(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
[[initContainers]]
@init until=initialized
[[containers]]
@app
readinessProbe = { exec = { @Readiness-app if=ready }, periodSeconds = 0.3, timeoutSeconds = 60 }
`)
	order := []api.ConditionType{api.PodReadyToStartContainers, api.PodInitialized, api.ContainersReady, api.PodReady}
	firstAre := func(n int) func() error {
		return func() (err error) {
			for i, kind := range order {
				want := "False"
				if i < n {
					want = "True"
				}
				err = errors.Join(err, s.hasCondition(kind, want)())
			}
			return err
		}
	}
	s.await(s.ran("init", 1), firstAre(1))
	s.touch("initialized")
	s.await(s.ran("Readiness-app", 2), firstAre(2))
	s.touch("ready")
	s.await(firstAre(4))
	var last time.Time
	var kinds []string
	for _, kind := range order {
		c := s.condition(kind)
		if c.LastTransitionTime.Before(last) {
			t.Errorf("%s became True before the condition that precedes it", kind)
		}
		last = c.LastTransitionTime
		kinds = append(kinds, string(c.Type)+"="+c.Status)
	}
	if got := strings.Join(kinds, " "); got != "PodReadyToStartContainers=True Initialized=True ContainersReady=True Ready=True" {
		t.Errorf("conditions: %s", got)
	}
}
