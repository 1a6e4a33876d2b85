package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p, limit := pod("p", spec.RestartAlways, "trap 'exit 0' TERM; sleep 100000"), spec.Seconds(90)
		p.ActiveDeadlineSeconds = &limit
		started := time.Now()
		m.add(p)
		s := m.until("p", "at rest", func(s supervisor.Snapshot) bool { return s.AtRest })
		if s.Status.Phase != lifecycle.PhaseFailed || s.Status.Reason != lifecycle.ReasonDeadlineExceeded ||
			time.Since(started) != 90*time.Second {
			t.Errorf("after %v the pod is %s (%s)", time.Since(started), s.Status.Phase, s.Status.Reason)
		}
		m.expectEvents("PodAccepted", "SandboxReady", "ImagePulling c0", "ImagePulled c0", "ContainerCreated c0", "ContainerStarted c0",
			"PodDeadlineExceeded", "ContainerStopping c0", "ContainerSucceeded c0", "PodFailed")
	})
}

func TestSidecarAndRestartAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p := pod("p", spec.RestartNever, "sleep 10; exit 42")
		p.InitContainers = []spec.Container{{
			Name: "side", Image: "image", RestartPolicy: spec.RestartAlways,
			Command: []string{"sh", "-c", "trap 'exit 0' TERM; sleep 100000"},
		}}
		p.Containers[0].RestartPolicy = spec.RestartNever
		p.Containers[0].RestartPolicyRules = []spec.RestartRule{{
			Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "In", Values: []int32{42}},
		}}
		m.add(p)
		s := m.until("p", "in its second round", func(s supervisor.Snapshot) bool {
			return s.Facts.Round == 2 && s.Status.Phase == lifecycle.PhaseRunning && s.Status.ContainerStatuses[0].Ready
		})
		side, app := s.Status.InitContainerStatuses[0], s.Status.ContainerStatuses[0]
		if s.Facts.Sandbox.N != 1 || side.RestartCount != 1 || app.RestartCount != 1 {
			t.Errorf("sandbox %d, restarts %d and %d; want the first, and one each", s.Facts.Sandbox.N, side.RestartCount, app.RestartCount)
		}
		m.expectEvents("PodAccepted", "SandboxReady", "ImagePulling side", "ImagePulled side", "ContainerCreated side",
			"ContainerStarted side",
			"ImagePresent c0", "ContainerCreated c0", "ContainerStarted c0", "ContainerFailed c0", "ContainerStopping side",
			"ContainerSucceeded side", "PodRestarting",
			"ImagePresent side", "ContainerCreated side", "ContainerStarted side", "ImagePresent c0", "ContainerCreated c0",
			"ContainerStarted c0")
	})
}

func TestPhaseUnknownWhileEngineUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		m := newMachine(t, fakeruntime.Options{Before: func(_ context.Context, c fakeruntime.Call) error {
			if since := time.Since(started); c.Method == "StartContainer" && since < 30*time.Second {
				return lifecycle.Failure{Kind: lifecycle.FailureUnavailable, Message: "unavailable"}
			}
			return nil
		}})
		m.start()
		m.add(pod("p", spec.RestartAlways, "sleep 100000"))
		s := m.untilPhase("p", lifecycle.PhaseUnknown)
		if since := time.Since(started); s.Status.Reason != lifecycle.ReasonEngineUnavailable || since <= 10*time.Second ||
			since > 12*time.Second {
			t.Errorf("after %v the pod is Unknown (%s)", since, s.Status.Reason)
		}
		m.crash()
		m.start()
		if s, _ := m.Pod("p"); s.Status.Phase != lifecycle.PhasePending {
			t.Errorf("the phase before the engine has answered is %s", s.Status.Phase)
		}
		s = m.untilPhase("p", lifecycle.PhaseRunning)
		if s.Status.Reason != "" || !s.Facts.EngineUnavailable.IsZero() {
			t.Errorf("engine available: reason %s, unavailable since %v", s.Status.Reason, s.Facts.EngineUnavailable)
		}
	})
}

// TestRetries: a pod that is retried has the back-off and the limit of its Job over a power cut and a crash of the daemon. The event states
// which retry it is. What is lost with the host is not a retry, what is lost alone is none either, but restarts all containers.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, fakeruntime.Options{})
		m.start()
		p, limit := pod("p", spec.RestartNever, "sleep 100; exit 1"), int32(2)
		p.BackoffLimit = &limit
		p.Containers[0].RestartPolicy = spec.RestartNever
		p.Containers[0].RestartPolicyRules = []spec.RestartRule{{
			Action: "RestartAllContainers", ExitCodes: &spec.ExitCodes{Operator: "NotIn", Values: []int32{0}},
		}}
		m.add(p)
		round := func(n int) {
			m.until("p", "in its round", func(s supervisor.Snapshot) bool { return s.Facts.Round >= n && s.Facts.SandboxReady() > 0 })
		}
		restarts := func() (messages []string) {
			synctest.Wait()
			events, _ := m.Events().Since(m.seen)
			for _, e := range events {
				m.seen = e.Seq
				if e.Kind == api.EventPodRestarting {
					messages = append(messages, e.Message)
				}
			}
			return messages
		}
		expect := func(after string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, restarts()); diff != "" {
				t.Errorf("events after %s (-want +got):\n%s", after, diff)
			}
		}
		boot := func(name string) {
			m.crash()
			m.engine.Reboot()
			m.boot, m.started = name, time.Now()
			m.start()
		}
		s := m.until("p", "up", ready)
		if !m.engine.Crash(s.Facts.UID, "c0", lifecycle.Exit{Code: 255, Reason: lifecycle.ReasonUnknown}) {
			t.Fatal("the container does not run")
		}
		round(2)
		expect("the loss of a container", "Restarting all containers, container c0 was lost")
		m.until("p", "up", ready)
		boot("boot-2")
		m.until("p", "up", ready)
		expect("a power cut")
		failed := func(n int) supervisor.Snapshot {
			return m.until("p", "failed", func(s supervisor.Snapshot) bool { return s.Facts.Container("c0").Failures == n })
		}
		failed(1)
		exited := time.Now()
		time.Sleep(4 * time.Second)
		boot("boot-3")
		m.until("p", "up", ready)
		if took := time.Since(exited); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("the retry after a power cut came after %v, want the back-off of 10s, of which some is repeated", took)
		}
		expect("a failure and a power cut", "Restarting all containers, retry 1 of 2 after container c0 failed")
		s = failed(2)
		time.Sleep(4 * time.Second)
		m.crash()
		m.start()
		m.until("p", "up", ready)
		if c := &s.Status.ContainerStatuses[0]; c.State.Waiting == nil || c.State.Waiting.Reason != lifecycle.ReasonCrashLoopBackOff {
			t.Errorf("state in the back-off: %+v", c.State)
		}
		expect("another failure and a crash of the daemon", "Restarting all containers, retry 2 of 2 after container c0 failed")
		s = m.untilPhase("p", lifecycle.PhaseFailed)
		if s.Status.Reason != lifecycle.ReasonBackoffLimit {
			t.Errorf("reason %q, want %s", s.Status.Reason, lifecycle.ReasonBackoffLimit)
		}
	})
}
