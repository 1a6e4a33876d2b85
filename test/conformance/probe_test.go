//go:build e2e

package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// often are the numbers of a probe that is to say something soon, and that a loaded machine may keep waiting. It has no time-out
// to speak of: a test of that has its own.
const often = "periodSeconds = 0.3, failureThreshold = 1, timeoutSeconds = 100"

// TestRow09: a liveness probe that fails restarts its container, once; one that succeeds never does. The first comes after its
// delay.
//
// fields: containers[].livenessProbe.{exec.command,initialDelaySeconds,periodSeconds,failureThreshold}
func TestRow09(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
[[containers]]
@sick
livenessProbe = { exec = { @Liveness-sick if=health }, initialDelaySeconds = 3, `+often+` }
[[containers]]
@well
livenessProbe = { exec = { @Liveness-well if=well }, `+often+` }
`, "well", "health")
	s.until(s.over("Liveness-sick", 3), s.over("Liveness-well", 3))
	s.counts(0, "sick", "well")
	s.check(s.tale().StartsAfter("Liveness-sick", s.container("sick").State.Running.StartedAt.Add(3*time.Second)))
	s.unlink("health")
	s.event(event.ContainerLivenessFailed, "sick")
	s.touch("health") // which the second run is asked for, 3 s after its start
	s.until(s.restarted("sick", 1))
	before := len(s.tale().runs("Liveness-sick"))
	s.until(s.over("Liveness-sick", before+3))
	s.counts(1, "sick")
	s.counts(0, "well")
	s.check(s.tale().HasNotRestarted("well"))
}

// TestRow10: what a liveness or startup probe ends, ends through its preStop hook; under Never it stays ended.
//
// fields: containers[].startupProbe.{exec.command,periodSeconds,failureThreshold}
func TestRow10(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"liveness", "startup"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := play(t, shared, `
restartPolicy = "Never"
[[containers]]
@app exit=3
`+kind+`Probe = { exec = { @Probe-app if=well }, `+often+` }
lifecycle.preStop.exec = { @PreStop-app run=0.5s }
`)
			s.ended(lifecycle.PhaseFailed)
			all := s.tale()
			s.check(all.HasNotRestarted("app"), all.RunTogether("app", "PreStop-app"), all.EndsBeforeSignal("PreStop-app", "app"), s.over("app", 1)())
			s.died("app", 3, lifecycle.ReasonError)
			s.counts(0, "app")
		})
	}
}

// TestRow11: a container is ready when its readiness probe says so, not before its delay is over, and never restarted by it.
//
// fields: containers[].readinessProbe.{exec.command,initialDelaySeconds,periodSeconds,failureThreshold,successThreshold}
func TestRow11(t *testing.T) {
	t.Parallel()
	t.Run("delayed", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, `
[[containers]]
@app
readinessProbe = { exec = { @Readiness-app if=well }, initialDelaySeconds = 3, successThreshold = 2, `+often+` }
`, "well")
		s.until(s.is(lifecycle.PodReady, "True"))
		c := s.container("app")
		if at := s.condition(lifecycle.PodReady).LastTransitionTime; at.Before(c.State.Running.StartedAt.Add(3 * time.Second)) {
			t.Errorf("started %v, ready %v", c.State.Running.StartedAt, at)
		}
		s.check(s.over("Readiness-app", 2)())
		s.counts(0, "app")
	})
	t.Run("failing", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, `
[[containers]]
@app
readinessProbe = { exec = { @Readiness-app if=well }, `+often+` }
`)
		s.until(s.over("Readiness-app", 5))
		if c := s.container("app"); c.Ready || c.Started == nil || !*c.Started {
			t.Errorf("it is shown as %s", text(c))
		}
		s.check(s.is(lifecycle.PodReady, "False")(), s.is(lifecycle.ContainersReady, "False")())
		s.counts(0, "app")
		s.check(s.tale().HasNotRestarted("app"))
	})
}

// TestRow12: until the startup probe has succeeded there is no liveness probe, and after that there is.
//
// fields: containers[].startupProbe.{initialDelaySeconds,successThreshold}, containers[].livenessProbe.successThreshold
func TestRow12(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
[[containers]]
@app
startupProbe = { exec = { @Startup-app if=up }, initialDelaySeconds = 1, periodSeconds = 0.3, failureThreshold = 10000, successThreshold = 1, timeoutSeconds = 100 }
livenessProbe = { exec = { @Liveness-app if=well }, successThreshold = 1, `+often+` }
`)
	s.until(s.over("Startup-app", 5))
	if c := s.container("app"); c.Ready || c.Started == nil || *c.Started {
		t.Errorf("it is shown as %s", text(c))
	}
	s.check(s.tale().DoesNotStart("Liveness-app"), s.tale().HasNotRestarted("app"))
	s.check(s.tale().StartsAfter("Startup-app", s.container("app").State.Running.StartedAt.Add(time.Second)))
	s.counts(0, "app")
	s.touch("up")
	s.until(s.restarted("app", 1), s.ran("app", 2))
	s.check(s.tale().ExitsBefore("Startup-app", "Liveness-app"))
	s.event(event.ContainerLivenessFailed, "app")
}

// TestRow14: a command that takes too long has failed; one that has ended has said what it says, whatever it leaves behind.
//
// fields: containers[].{livenessProbe,readinessProbe,startupProbe}.timeoutSeconds
func TestRow14(t *testing.T) {
	t.Parallel()
	const short = "periodSeconds = 0.3, failureThreshold = 1, timeoutSeconds = 1"
	s := play(t, shared, `
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
	s.until(s.restarted("hangs", 1), s.restarted("starts", 1), s.restarted("leaves", 1), s.told(event.ProbeFailed, "unready", 3))
	if c := s.container("unready"); c.Ready || c.RestartCount != 0 {
		t.Errorf("it is shown as %s", text(c))
	}
	if e := s.event(event.ProbeFailed, "hangs"); e.Message != `Liveness probe failed: command timed out: "/bin/actor Liveness-hangs run=1h" timed out after 1s` {
		t.Errorf("the probe is told as %q", e.Message)
	}
}

// TestRow17: a gRPC probe succeeds with SERVING and restarts at a port where nobody answers; a TCP probe wants an open port.
func TestRow17(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	s := play(t, shared, fmt.Sprintf(`
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
@shut
livenessProbe = { tcpSocket = { port = %d }, `+often+` }
`, p.grpcPort(), p.shutPort(), p.tcpPort(), p.shutPort()))
	s.until(s.restarted("wrong", 1), s.restarted("shut", 1), p.asked("grpc", 3), p.asked("tcp", 3))
	s.counts(0, "serving", "open")
	s.check(s.tale().HasNotRestarted("serving"), s.tale().HasNotRestarted("open"))
}

// TestRow18: what a probe ends has the probe's own grace period, not the pod's.
//
// fields: containers[].{livenessProbe,startupProbe}.terminationGracePeriodSeconds
func TestRow18(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"liveness", "startup"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := play(t, shared, `
terminationGracePeriodSeconds = 500
[[containers]]
@app term=never
`+kind+`Probe = { exec = { @Probe-app if=well }, terminationGracePeriodSeconds = 3, `+often+` }
`)
			s.until(s.ran("app", 2), s.restarted("app", 1)) // long before 500 s
			kinds := map[string]event.Kind{"liveness": event.ContainerLivenessFailed, "startup": event.ContainerStartupFailed}
			stopped, killed := s.event(kinds[kind], "app"), s.event(event.ContainerKilled, "app")
			if grace := killed.Time.Sub(stopped.Time); grace < 2900*time.Millisecond {
				t.Errorf("killed after %v, before its 3 s", grace)
			}
			if d := s.container("app").LastState.Terminated; d == nil || d.ExitCode != 137 {
				t.Errorf("before: %s", text(s.container("app").LastState))
			}
		})
	}
}
