//go:build e2e

package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRow05: a container that always fails starts again at once, and then after a delay that doubles; meanwhile it is shown as
// backing off, with how it ended.
func TestRow05(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
restartBackoff = { initialSeconds = 1, maxSeconds = 300 }
[[containers]]
@app exit=1 run=0s
`)
	s.check(slower(s, "app", time.Second, 300*time.Second, 3))
	var c lifecycle.ContainerStatus
	s.until(func() error { // the delay after the fifth run is 8 s, and those after it are longer
		c = s.container("app")
		if c.State.Waiting == nil || c.State.Waiting.Reason != lifecycle.ReasonCrashLoopBackOff || c.RestartCount < 4 {
			return fmt.Errorf("it is shown as %s", text(c))
		}
		return nil
	})
	want := fmt.Sprintf("back-off %v restarting failed container=app pod=%s_default(%s)", time.Second<<(c.RestartCount-1), s.name, s.uid)
	if got := c.State.Waiting.Message; got != want {
		t.Errorf("while it waits: %q, want %q", got, want)
	}
	if d := c.LastState.Terminated; d == nil || d.ExitCode != 1 || d.Reason != lifecycle.ReasonError {
		t.Errorf("before: %s", text(c.LastState))
	}
	if p := s.pod(); p.Status.Phase != lifecycle.PhaseRunning {
		t.Errorf("the phase is %s", p.Status.Phase)
	}
}

// TestRow08: the delay grows no further than its bound.
func TestRow08(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
restartBackoff = { initialSeconds = 0.2, maxSeconds = 1 }
[[containers]]
@app exit=1 run=0s
`)
	s.check(slower(s, "app", 200*time.Millisecond, time.Second, 1))
	s.until(s.ran("app", 8), func() error {
		told := s.events(event.ContainerBackOff, "app")
		if n := len(told); n == 0 || told[n-1].Attempt < 7 {
			return errors.New("no delay is told of the seventh run or a later one")
		}
		return nil
	})
	s.check(slower(s, "app", 200*time.Millisecond, time.Second, 1))
}

// TestRow38: a rule that an exit code matches goes before the container's policy, and that before the pod's.
//
// fields: containers[].restartPolicy, containers[].restartPolicyRules[].{action,exitCodes.operator,exitCodes.values}
func TestRow38(t *testing.T) {
	t.Parallel()
	const often = "restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }\n"
	t.Run("Never", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, `
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
		s.ended(lifecycle.PhaseFailed)
		s.counts(2, "in", "own")
		s.counts(1, "not-in")
		s.counts(0, "pods")
		s.died("in", 1, lifecycle.ReasonError)
		s.died("pods", 42, lifecycle.ReasonError)
	})
	t.Run("Always", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, `
restartPolicy = "Always"
`+often+`
[[containers]]
@own exit=1 run=0s
restartPolicy = "Never"
[[containers]]
@pods exit=0 run=0s
`)
		s.until(s.restarted("pods", 3), s.over("own", 1))
		s.counts(0, "own")
		s.died("own", 1, lifecycle.ReasonError)
	})
}

// TestRestartAllContainers: an exit that such a rule matches ends everything without hooks and begins again with the init
// containers, in the same sandbox; all count it. The end of a sidecar that a rule matches too is no cause, as it comes of that, or of
// the end of the pod.
//
// fields: containers[].restartPolicyRules[].action
func TestRestartAllContainers(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
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
	s.until(s.over("source", 2), s.ran("app", 2))
	s.touch("over")
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	for _, name := range []string{"init", "sidecar", "app", "source"} {
		s.counts(1, name)
		if n := len(all.runs(name)); n != 2 {
			t.Errorf("%s ran %d times", name, n)
		}
	}
	s.check(all.DoesNotStart("PreStop-app"))
	if n := len(s.events(event.SandboxReady, "")); n != 1 {
		t.Errorf("there were %d sandboxes", n)
	}
	if by := s.event(event.PodRestarting, "").Fields["container"]; by != "source" {
		t.Errorf("all restarted because of %s", by)
	}
}

// TestRestartAllContainersAtTheEnd: a pod whose work is done ends, also if a sidecar then goes with a code that its rule names.
func TestRestartAllContainersAtTheEnd(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@sidecar exit=42
restartPolicy = "Always"
restartPolicyRules = [{ action = "RestartAllContainers", exitCodes = { operator = "In", values = [42] } }]
[[containers]]
@app until=over
`)
	s.until(s.awake("sidecar", "app"))
	s.touch("over")
	s.ended(lifecycle.PhaseSucceeded)
	s.counts(0, "sidecar", "app")
	s.died("sidecar", 42, lifecycle.ReasonError)
}

// TestActiveDeadline: a pod that has lived too long ends as Failed, with its hooks and its grace period.
//
// fields: activeDeadlineSeconds
func TestActiveDeadline(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
activeDeadlineSeconds = 20
terminationGracePeriodSeconds = 60
[[containers]]
@app term=0.5s
lifecycle.preStop.exec = { @PreStop-app run=0.5s }
`)
	p := s.ended(lifecycle.PhaseFailed)
	if p.Status.Reason != lifecycle.ReasonDeadlineExceeded || p.Status.Message != "Pod was active on the node longer than the specified deadline" {
		t.Errorf("reason %s, %q", p.Status.Reason, p.Status.Message)
	}
	if lived := s.event(event.PodDeadlineExceeded, "").Time.Sub(s.event(event.PodAccepted, "").Time); lived < 19900*time.Millisecond {
		t.Errorf("it was ended after %v", lived)
	}
	if len(s.tale().runs("app")) > 0 { // it was accepted, but had to wait for the machine
		s.check(s.tale().EndsBeforeSignal("PreStop-app", "app"), s.over("app", 1)())
	}
	if killed := s.events(event.ContainerKilled, ""); len(killed) > 0 {
		t.Errorf("killed: %+v", killed)
	}
}

// TestConditions: the conditions of a pod become True in their order, each when its time has come.
func TestConditions(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
[[initContainers]]
@init until=initialized
[[containers]]
@app
readinessProbe = { exec = { @Readiness-app if=ready }, periodSeconds = 0.3, timeoutSeconds = 60 }
`)
	order := []lifecycle.ConditionType{lifecycle.PodReadyToStartContainers, lifecycle.PodInitialized, lifecycle.ContainersReady, lifecycle.PodReady}
	firstAre := func(n int) func() error {
		return func() (err error) {
			for i, kind := range order {
				want := "False"
				if i < n {
					want = "True"
				}
				err = errors.Join(err, s.is(kind, want)())
			}
			return err
		}
	}
	s.until(s.ran("init", 1), firstAre(1))
	s.touch("initialized")
	s.until(s.ran("Readiness-app", 2), firstAre(2))
	s.touch("ready")
	s.until(firstAre(4))
	var last time.Time
	var kinds []string
	for _, kind := range order {
		c := s.condition(kind)
		if c.LastTransitionTime.Before(last) {
			t.Errorf("%s became True before what comes before it", kind)
		}
		last = c.LastTransitionTime
		kinds = append(kinds, string(c.Type)+"="+c.Status)
	}
	if got := strings.Join(kinds, " "); got != "PodReadyToStartContainers=True Initialized=True ContainersReady=True Ready=True" {
		t.Errorf("conditions: %s", got)
	}
}
