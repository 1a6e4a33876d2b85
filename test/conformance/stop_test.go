//go:build e2e

package conformance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
)

// TestPostStartHookGatesNextContainer: a postStart hook runs beside its container, after the init containers. The next container waits
// for it.
//
// fields: containers[].lifecycle.postStart.exec.command
func TestPostStartHookGatesNextContainer(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
[[initContainers]]
@init run=0.3s
[[containers]]
@first
lifecycle.postStart.exec = { @PostStart-first delay=1s until=go }
[[containers]]
@second
`)
	s.await(s.started("PostStart-first", "first"))
	s.check(s.waiting("first", api.ReasonPodInitializing)(), s.timeline().DoesNotStart("second"))
	s.touch("go")
	s.await(s.ran("second", 1))
	all := s.timeline()
	s.check(all.ExitsBefore("init", "PostStart-first"), all.RunTogether("first", "PostStart-first"),
		all.ExitsBefore("PostStart-first", "second"))
	s.check(all.HasNotRestarted("first"), all.HasNotRestarted("PostStart-first"))
}

// TestPreStopHookRunsBeforeSignal: a preStop hook of any handler ends before its container gets the signal, and the container runs
// meanwhile.
//
// fields: containers[].lifecycle.preStop.{exec.command,httpGet.port,httpGet.scheme,sleep.seconds}
func TestPreStopHookRunsBeforeSignal(t *testing.T) {
	t.Parallel()
	p := newProbeServer(t)
	s := runPod(t, shared, fmt.Sprintf(`
hostNetwork = true
terminationGracePeriodSeconds = 100
[[containers]]
@exec
lifecycle.preStop.exec = { @PreStop-exec run=0.5s }
[[containers]]
@http
lifecycle.preStop.httpGet = { port = %d, path = "/PreStop-http" }
[[containers]]
@https
lifecycle.preStop.httpGet = { port = %d, path = "/PreStop-https", scheme = "HTTPS" }
[[containers]]
@sleep
lifecycle.preStop.sleep = { seconds = 2 }
`, p.httpPort(), p.httpsPort()))
	p.onRequest(func(r *http.Request) {
		name := filepath.Base(r.URL.Path)
		s.record(name, "Starting")
		s.record(name, "Exiting")
	})
	s.await(s.started("exec", "http", "https", "sleep"), s.running("exec", "http", "https", "sleep"))
	s.stop()
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	for _, name := range []string{"exec", "http", "https"} {
		s.check(all.HasNotRestarted("PreStop-"+name), all.RunTogether("PreStop-"+name, name), all.EndsBeforeSignal("PreStop-"+name, name))
	}
	slept, err := all.first("sleep")
	s.check(err)
	if d := slept.terminating.Sub(s.event(api.EventContainerStopping, "sleep").Time); d < 1900*time.Millisecond {
		t.Errorf("the signal came after %v, before the 2 s of the hook", d)
	}
}

// TestPreStopHookExceedsGracePeriod: a preStop hook that hangs is stopped at the end of the grace period. The container gets two more
// seconds, then SIGKILL.
//
// fields: terminationGracePeriodSeconds
func TestPreStopHookExceedsGracePeriod(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
terminationGracePeriodSeconds = 2
[[containers]]
@app term=never
lifecycle.preStop.exec = { @PreStop-app run=1h }
`)
	s.await(s.started("app"))
	s.stop()
	s.awaitPhase(api.PhaseFailed)
	s.checkTerminated("app", 137, api.ReasonError)
	stopped, killed := s.event(api.EventPodStopping, ""), s.event(api.EventContainerKilled, "app")
	if d := killed.Time.Sub(stopped.Time); d < 3900*time.Millisecond || d > deadline/2 {
		t.Errorf("killed after %v, want a grace period of 2 s and 2 s after the signal", d)
	}
	run, err := s.timeline().first("app")
	s.check(err)
	// it may be killed before it records the signal
	if d := run.terminating.Sub(stopped.Time); !run.terminating.IsZero() && d < 1900*time.Millisecond {
		t.Errorf("the signal came after %v, while the hook had time", d)
	}
}

// TestGracePeriodEndsWithSIGKILL: a container that ignores SIGTERM is killed at the end of its grace period.
//
// fields: terminationGracePeriodSeconds
func TestGracePeriodEndsWithSIGKILL(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
terminationGracePeriodSeconds = 10
[[containers]]
@ignores term=never
[[containers]]
@slow term=1s exit=7
`)
	s.await(s.started("ignores", "slow"))
	s.stop()
	s.awaitPhase(api.PhaseFailed)
	s.checkTerminated("ignores", 137, api.ReasonError)
	s.checkTerminated("slow", 7, api.ReasonError)
	if d := s.event(api.EventContainerKilled, "ignores").Time.Sub(s.event(api.EventPodStopping, "").Time); d < 9900*time.Millisecond ||
		d > deadline/2 {
		t.Errorf("killed after %v, want 10 s", d)
	}
}

// TestDeletedPodFails: a pod that is stopped while a container fails, or while its image is missing, has failed under every restart
// policy.
func TestDeletedPodFails(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Always", "OnFailure", "Never"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := runPod(t, shared, `
restartPolicy = "`+policy+`"
terminationGracePeriodSeconds = 1
[[containers]]
@app term=never
`)
			s.await(s.started("app"))
			s.stop()
			s.awaitPhase(api.PhaseFailed)
			s.checkTerminated("app", 137, api.ReasonError)
			s.check(s.timeline().HasNotRestarted("app"))
		})
	}
	t.Run("image missing", func(t *testing.T) {
		t.Parallel()
		s := runPod(t, shared, `
[[containers]]
name = "app"
imagePullPolicy = "Never"
image = "localhost/podstead/none:1"
`)
		s.await(s.waiting("app", api.ReasonErrImageNeverPull))
		if p := s.pod(); p.Status.Phase != api.PhasePending {
			t.Errorf("phase %s, want Pending", p.Status.Phase)
		}
		s.stop()
		s.awaitPhase(api.PhaseFailed)
		s.check(s.timeline().DoesNotStart("app"))
	})
}
