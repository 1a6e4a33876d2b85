//go:build e2e

package conformance

import (
	"fmt"
	"testing"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRow27: who follows a sidecar waits for its startup probe.
//
// fields: containers[].restartPolicy, containers[].startupProbe.exec.command
func TestRow27(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
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
	s.until(s.awake("sidecar-1", "sidecar-2", "app"))
	all := s.tale()
	s.check(all.StartedBefore("sidecar-1", "sidecar-2"), all.StartedBefore("sidecar-2", "app"))
	s.check(all.RunTogether("sidecar-1", "app"), all.RunTogether("sidecar-2", "app"))
	s.counts(0, "sidecar-1", "sidecar-2", "app")
}

// TestRow29: sidecars end after the containers that they are for, the last one first.
func TestRow29(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
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
	s.until(s.awake("sidecar-1", "sidecar-2", "sidecar-3", "app"))
	s.stop()
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	s.check(all.ExitsBeforeSignal("app", "sidecar-3"), all.ExitsBeforeSignal("sidecar-3", "sidecar-2"), all.ExitsBeforeSignal("sidecar-2", "sidecar-1"))
	for _, name := range []string{"sidecar-1", "sidecar-2", "sidecar-3", "app"} {
		s.check(all.HasNotRestarted(name))
		s.died(name, 0, lifecycle.ReasonCompleted)
	}
}

// TestRow31: the preStop hooks of all containers begin together, before the order of the sidecars holds back any signal.
func TestRow31(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
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
	s.until(s.awake("sidecar-1", "sidecar-2", "app"))
	s.stop()
	s.until(s.awake("PreStop-sidecar-1", "PreStop-sidecar-2", "PreStop-app")) // each waits for what comes now
	s.touch("go")
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	s.check(all.RunTogether("PreStop-sidecar-1", "PreStop-app"), all.RunTogether("PreStop-sidecar-2", "PreStop-app"))
	s.check(all.EndsBeforeSignal("PreStop-app", "app"), all.ExitsBeforeSignal("app", "sidecar-2"), all.ExitsBeforeSignal("sidecar-2", "sidecar-1"))
}

// TestRow33: sidecars do not keep a pod from succeeding; they are ended when its work is done.
func TestRow33(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Never", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := play(t, shared, `
restartPolicy = "`+policy+`"
[[initContainers]]
@sidecar
restartPolicy = "Always"
[[containers]]
@app until=done
`)
			s.until(s.awake("sidecar", "app"))
			s.touch("done")
			s.ended(lifecycle.PhaseSucceeded)
			s.check(s.tale().ExitsBeforeSignal("app", "sidecar"), s.tale().HasNotRestarted("sidecar"), s.tale().HasNotRestarted("app"))
			s.counts(0, "sidecar", "app")
		})
	}
}

// TestRow34: a sidecar that ends starts again, whatever it says and the pod's policy is, before and beside the others.
func TestRow34(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1} {
		t.Run(fmt.Sprint("exit", code), func(t *testing.T) {
			t.Parallel()
			s := play(t, shared, fmt.Sprintf(`
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
			s.until(s.ran("sidecar", 3), s.ran("init", 1))
			s.check(s.tale().DoesNotStart("app"))
			s.touch("initialized")
			s.until(s.awake("app"))
			before := len(s.tale().runs("sidecar"))
			s.until(s.ran("sidecar", before+2))
			s.touch("done")
			s.ended(lifecycle.PhaseSucceeded)
			s.check(s.tale().HasNotRestarted("app"), s.tale().HasNotRestarted("init"), s.tale().ExitsBefore("init", "app"))
		})
	}
}

// TestRow35: a sidecar whose liveness probe fails restarts, through its preStop hook, and nobody else notices.
func TestRow35(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
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
	s.until(s.restarted("sidecar", 1), s.ran("init", 1)) // before the app
	s.touch("initialized")
	s.until(s.awake("app"))
	before := s.container("sidecar").RestartCount
	s.until(s.restarted("sidecar", before+1)) // and beside it
	s.touch("done")
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	s.check(all.HasNotRestarted("init"), all.HasNotRestarted("app"), all.RunTogether("sidecar", "PreStop-sidecar"), all.EndsBeforeSignal("PreStop-sidecar", "sidecar"))
	s.counts(0, "init", "app")
}
