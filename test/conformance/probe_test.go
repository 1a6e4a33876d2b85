//go:build e2e

package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// often makes a probe answer soon, and tolerates a loaded host: the timeout is long. Timeouts have tests of their own.
const often = "periodSeconds = 0.3, failureThreshold = 1, timeoutSeconds = 100"

// TestLivenessProbeRestartsContainer: a failed liveness probe restarts its container; a healthy one does not. The first probe runs after
// its initial delay.
//
// fields: containers[].livenessProbe.{exec.command,initialDelaySeconds,periodSeconds,failureThreshold}
func TestLivenessProbeRestartsContainer(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
[[containers]]
@unhealthy
livenessProbe = { exec = { @Liveness-unhealthy if=health }, initialDelaySeconds = 3, `+often+` }
[[containers]]
@healthy
livenessProbe = { exec = { @Liveness-healthy if=well }, `+often+` }
`, "well", "health")
	s.await(s.exited("Liveness-unhealthy", 3), s.exited("Liveness-healthy", 3))
	s.checkRestarts(0, "unhealthy", "healthy")
	s.check(s.timeline().StartsAfter("Liveness-unhealthy", s.container("unhealthy").State.Running.StartedAt.Add(3*time.Second)))
	s.unlink("health")
	s.event(api.EventContainerLivenessFailed, "unhealthy")
	s.touch("health") // the second run is probed 3 s after its start
	s.await(s.restarted("unhealthy", 1))
	before := len(s.timeline().runs("Liveness-unhealthy"))
	s.await(s.exited("Liveness-unhealthy", before+3))
	s.checkRestarts(1, "unhealthy")
	s.checkRestarts(0, "healthy")
	s.check(s.timeline().HasNotRestarted("healthy"))
}

// TestFailedProbeRunsPreStopHook: a container that fails its liveness or startup probe is stopped with its preStop hook. Under Never it
// does not restart.
//
// fields: containers[].startupProbe.{exec.command,periodSeconds,failureThreshold}
func TestFailedProbeRunsPreStopHook(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"liveness", "startup"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := runPod(t, shared, `
restartPolicy = "Never"
[[containers]]
@app exit=3
`+kind+`Probe = { exec = { @Probe-app if=well }, `+often+` }
lifecycle.preStop.exec = { @PreStop-app run=0.5s }
`)
			s.awaitPhase(api.PhaseFailed)
			all := s.timeline()
			s.check(all.HasNotRestarted("app"), all.RunTogether("app", "PreStop-app"), all.EndsBeforeSignal("PreStop-app", "app"),
				s.exited("app", 1)())
			s.checkTerminated("app", 3, api.ReasonError)
			s.checkRestarts(0, "app")
		})
	}
}

// TestReadinessProbe: a container becomes ready when its readiness probe succeeds, not before the initial delay. The probe never
// restarts it.
//
// fields: containers[].readinessProbe.{exec.command,initialDelaySeconds,periodSeconds,failureThreshold,successThreshold}
func TestReadinessProbe(t *testing.T) {
	t.Parallel()
	t.Run("succeeds after its delay", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, `
[[containers]]
@app
readinessProbe = { exec = { @Readiness-app if=well }, initialDelaySeconds = 3, successThreshold = 2, `+often+` }
`, "well")
		s.await(s.hasCondition(api.PodReady, "True"))
		c := s.container("app")
		if at := s.condition(api.PodReady).LastTransitionTime; at.Before(c.State.Running.StartedAt.Add(3 * time.Second)) {
			t.Errorf("started %v, ready %v", c.State.Running.StartedAt, at)
		}
		s.check(s.exited("Readiness-app", 2)())
		s.checkRestarts(0, "app")
	})
	t.Run("fails", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, `
[[containers]]
@app
readinessProbe = { exec = { @Readiness-app if=well }, `+often+` }
`)
		s.await(s.exited("Readiness-app", 5))
		if c := s.container("app"); c.Ready || c.Started == nil || !*c.Started {
			t.Errorf("container status: %s", text(c))
		}
		s.check(s.hasCondition(api.PodReady, "False")(), s.hasCondition(api.ContainersReady, "False")())
		s.checkRestarts(0, "app")
		s.check(s.timeline().HasNotRestarted("app"))
	})
}

// TestStartupProbeGatesLivenessProbe: liveness probes begin when the startup probe has succeeded.
//
// fields: containers[].startupProbe.{initialDelaySeconds,successThreshold}, containers[].livenessProbe.successThreshold
func TestStartupProbeGatesLivenessProbe(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
[[containers]]
@app
startupProbe = { exec = { @Startup-app if=up }, initialDelaySeconds = 1, periodSeconds = 0.3, failureThreshold = 10000, successThreshold = 1, timeoutSeconds = 100 }
livenessProbe = { exec = { @Liveness-app if=well }, successThreshold = 1, `+often+` }
`)
	s.await(s.exited("Startup-app", 5))
	if c := s.container("app"); c.Ready || c.Started == nil || *c.Started {
		t.Errorf("container status: %s", text(c))
	}
	s.check(s.timeline().DoesNotStart("Liveness-app"), s.timeline().HasNotRestarted("app"))
	s.check(s.timeline().StartsAfter("Startup-app", s.container("app").State.Running.StartedAt.Add(time.Second)))
	s.checkRestarts(0, "app")
	s.touch("up")
	s.await(s.restarted("app", 1), s.ran("app", 2))
	s.check(s.timeline().ExitsBefore("Startup-app", "Liveness-app"))
	s.event(api.EventContainerLivenessFailed, "app")
}

// TestExecProbeTimeout: a probe command that exceeds its timeout fails. One that exits gives its result, whatever processes it leaves
// behind.
//
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.timeoutSeconds
func TestExecProbeTimeout(t *testing.T) {
	t.Parallel()
	const short = "periodSeconds = 0.3, failureThreshold = 1, timeoutSeconds = 1"
	s := runPod(t, shared, `
[[containers]]
@hangs
livenessProbe = { exec = { @Liveness-hangs run=1h }, `+short+` }
[[containers]]
@starts
startupProbe = { exec = { @Startup-starts run=1h }, `+short+` }
[[containers]]
@unready
readinessProbe = { exec = { @Readiness-unready run=1h }, `+short+` }
[[containers]]
@leaves
livenessProbe = { exec = { @Liveness-leaves run=0s leave=1h exit=1 }, `+often+` }
`)
	s.await(s.restarted("hangs", 1), s.restarted("starts", 1), s.restarted("leaves", 1), s.hasEvents(api.EventProbeFailed, "unready", 3))
	if c := s.container("unready"); c.Ready || c.RestartCount != 0 {
		t.Errorf("container status: %s", text(c))
	}
	if e := s.event(api.EventProbeFailed,
		"hangs"); e.Message != `Liveness probe failed: command timed out: "/bin/actor Liveness-hangs run=1h" timed out after 1s` {
		t.Errorf("probe event %q", e.Message)
	}
}

// TestGRPCAndTCPProbes: a gRPC probe succeeds with SERVING and a TCP probe with an open port. On a wrong port both restart the
// container.
func TestGRPCAndTCPProbes(t *testing.T) {
	t.Parallel()
	p := newProbeServer(t)
	s := runPod(t, shared, fmt.Sprintf(`
hostNetwork = true
[[containers]]
@serving
livenessProbe = { grpc = { port = %d }, `+often+` }
[[containers]]
@wrong
livenessProbe = { grpc = { port = %d }, periodSeconds = 0.3, failureThreshold = 1, timeoutSeconds = 1 }
[[containers]]
@open
livenessProbe = { tcpSocket = { port = %d }, `+often+` }
[[containers]]
@closed
livenessProbe = { tcpSocket = { port = %d }, `+often+` }
`, p.grpcPort(), p.closedPort(), p.tcpPort(), p.closedPort()))
	s.await(s.restarted("wrong", 1), s.restarted("closed", 1), p.requested("grpc", 3), p.requested("tcp", 3))
	s.checkRestarts(0, "serving", "open")
	s.check(s.timeline().HasNotRestarted("serving"), s.timeline().HasNotRestarted("open"))
}

// TestProbeGracePeriod: a container that a probe stops has the probe's grace period, not the pod's.
//
// fields: containers[].{livenessProbe,startupProbe}.terminationGracePeriodSeconds
func TestProbeGracePeriod(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"liveness", "startup"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := runPod(t, shared, `
terminationGracePeriodSeconds = 500
[[containers]]
@app term=never
`+kind+`Probe = { exec = { @Probe-app if=well }, terminationGracePeriodSeconds = 3, initialDelaySeconds = 2, `+often+` }
`)
			s.await(s.ran("app", 2), s.restarted("app", 1)) // long before 500 s
			kinds := map[string]api.EventKind{"liveness": api.EventContainerLivenessFailed, "startup": api.EventContainerStartupFailed}
			stopped, killed := s.event(kinds[kind], "app"), s.event(api.EventContainerKilled, "app")
			if grace := killed.Time.Sub(stopped.Time); grace < 2900*time.Millisecond {
				t.Errorf("killed after %v, before its grace period of 3 s", grace)
			}
			if d := s.container("app").LastState.Terminated; d == nil || d.ExitCode != 137 {
				t.Errorf("last state: %s", text(s.container("app").LastState))
			}
		})
	}
}
