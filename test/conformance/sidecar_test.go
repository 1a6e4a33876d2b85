//go:build e2e

package conformance

import (
	"fmt"
	"testing"

	"github.com/podstead/podstead/api"
)

// TestSidecarStartupProbeGatesNextContainer: the container after a sidecar waits for the sidecar's startup probe.
//
// fields: containers[].restartPolicy, containers[].startupProbe.exec.command
func TestSidecarStartupProbeGatesNextContainer(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
[[initContainers]]
@sidecar-1 delay=1.5s touch=up-1
restartPolicy = "Always"
startupProbe = { exec = { @Startup-1 if=up-1 }, periodSeconds = 0.3, failureThreshold = 10000, timeoutSeconds = 100 }
[[initContainers]]
@sidecar-2 delay=1.5s touch=up-2
restartPolicy = "Always"
startupProbe = { exec = { @Startup-2 if=up-2 }, periodSeconds = 0.3, failureThreshold = 10000, timeoutSeconds = 100 }
[[containers]]
@app
`)
	s.await(s.started("sidecar-1", "sidecar-2", "app"))
	all := s.timeline()
	s.check(all.StartedBefore("sidecar-1", "sidecar-2"), all.StartedBefore("sidecar-2", "app"))
	s.check(all.RunTogether("sidecar-1", "app"), all.RunTogether("sidecar-2", "app"))
	s.checkRestarts(0, "sidecar-1", "sidecar-2", "app")
}

// TestSidecarsStopInReverseOrder: sidecars stop after the regular containers, the last one first.
func TestSidecarsStopInReverseOrder(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
terminationGracePeriodSeconds = 100
[[initContainers]]
@sidecar-1 term=0.5s
restartPolicy = "Always"
[[initContainers]]
@sidecar-2 term=0.5s
restartPolicy = "Always"
[[initContainers]]
@sidecar-3 term=0.5s
restartPolicy = "Always"
[[containers]]
@app term=0.5s
`)
	s.await(s.started("sidecar-1", "sidecar-2", "sidecar-3", "app"))
	s.stop()
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	s.check(all.ExitsBeforeSignal("app", "sidecar-3"), all.ExitsBeforeSignal("sidecar-3", "sidecar-2"),
		all.ExitsBeforeSignal("sidecar-2", "sidecar-1"))
	for _, name := range []string{"sidecar-1", "sidecar-2", "sidecar-3", "app"} {
		s.check(all.HasNotRestarted(name))
		s.checkTerminated(name, 0, api.ReasonCompleted)
	}
}

// TestPreStopHooksStartTogether: the preStop hooks of all containers start together. The order of the sidecars delays the signals only.
func TestPreStopHooksStartTogether(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
terminationGracePeriodSeconds = 100
[[initContainers]]
@sidecar-1
restartPolicy = "Always"
lifecycle.preStop.exec = { @PreStop-sidecar-1 until=go }
[[initContainers]]
@sidecar-2
restartPolicy = "Always"
lifecycle.preStop.exec = { @PreStop-sidecar-2 until=go }
[[containers]]
@app
lifecycle.preStop.exec = { @PreStop-app until=go }
`)
	s.await(s.started("sidecar-1", "sidecar-2", "app"))
	s.stop()
	s.await(s.started("PreStop-sidecar-1", "PreStop-sidecar-2", "PreStop-app")) // all three run at the same time
	s.touch("go")
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	s.check(all.RunTogether("PreStop-sidecar-1", "PreStop-app"), all.RunTogether("PreStop-sidecar-2", "PreStop-app"))
	s.check(all.EndsBeforeSignal("PreStop-app", "app"), all.ExitsBeforeSignal("app", "sidecar-2"),
		all.ExitsBeforeSignal("sidecar-2", "sidecar-1"))
}

// TestSidecarDoesNotKeepPodRunning: sidecars are stopped when the regular containers are done, and the pod succeeds.
func TestSidecarDoesNotKeepPodRunning(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Never", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := runPod(t, shared, `
restartPolicy = "`+policy+`"
[[initContainers]]
@sidecar
restartPolicy = "Always"
[[containers]]
@app until=done
`)
			s.await(s.started("sidecar", "app"))
			s.touch("done")
			s.awaitPhase(api.PhaseSucceeded)
			s.check(s.timeline().ExitsBeforeSignal("app", "sidecar"), s.timeline().HasNotRestarted("sidecar"),
				s.timeline().HasNotRestarted("app"))
			s.checkRestarts(0, "sidecar", "app")
		})
	}
}

// TestSidecarRestartsUnderNever: a sidecar restarts after any exit code, under any restart policy of the pod, before and beside the
// regular containers.
func TestSidecarRestartsUnderNever(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1} {
		t.Run(fmt.Sprintf("exit code %d", code), func(t *testing.T) {
			t.Parallel()
			s := runPod(t, shared, fmt.Sprintf(`
restartPolicy = "Never"
restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }
[[initContainers]]
@sidecar run=0.2s exit=%d
restartPolicy = "Always"
[[initContainers]]
@init until=initialized
[[containers]]
@app until=done
`, code))
			s.await(s.ran("sidecar", 3), s.ran("init", 1))
			s.check(s.timeline().DoesNotStart("app"))
			s.touch("initialized")
			s.await(s.started("app"))
			before := len(s.timeline().runs("sidecar"))
			s.await(s.ran("sidecar", before+2))
			s.touch("done")
			s.awaitPhase(api.PhaseSucceeded)
			s.check(s.timeline().HasNotRestarted("app"), s.timeline().HasNotRestarted("init"), s.timeline().ExitsBefore("init", "app"))
		})
	}
}

// TestSidecarLivenessProbe: a sidecar that fails its liveness probe runs its preStop hook and restarts. Other containers are not
// affected.
func TestSidecarLivenessProbe(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
restartPolicy = "Never"
restartBackoff = { initialSeconds = 0.1, maxSeconds = 0.1 }
[[initContainers]]
@sidecar
restartPolicy = "Always"
livenessProbe = { exec = { @Liveness-sidecar if=well }, `+often+` }
lifecycle.preStop.exec = { @PreStop-sidecar run=0.2s }
[[initContainers]]
@init until=initialized
[[containers]]
@app until=done
`)
	s.await(s.restarted("sidecar", 1), s.ran("init", 1)) // before the regular container starts
	s.touch("initialized")
	s.await(s.started("app"))
	before := s.container("sidecar").RestartCount
	s.await(s.restarted("sidecar", before+1)) // while the regular container runs
	s.touch("done")
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	s.check(all.HasNotRestarted("init"), all.HasNotRestarted("app"), all.RunTogether("sidecar", "PreStop-sidecar"),
		all.EndsBeforeSignal("PreStop-sidecar", "sidecar"))
	s.checkRestarts(0, "init", "app")
}
