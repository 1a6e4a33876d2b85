//go:build e2e

package conformance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRow20: a container's postStart hook runs beside it, when the init containers are done; the next container waits for it.
//
// fields: containers[].lifecycle.postStart.exec.command
func TestRow20(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
[[initContainers]]
@init run=0.3s
[[containers]]
@first
lifecycle.postStart.exec = { @PostStart-first delay=1s until=go }
[[containers]]
@second
`)
	s.until(s.awake("PostStart-first", "first"))
	s.check(s.waits("first", lifecycle.ReasonPodInitializing)(), s.tale().DoesNotStart("second"))
	s.touch("go")
	s.until(s.ran("second", 1))
	all := s.tale()
	s.check(all.ExitsBefore("init", "PostStart-first"), all.RunTogether("first", "PostStart-first"), all.ExitsBefore("PostStart-first", "second"))
	s.check(all.HasNotRestarted("first"), all.HasNotRestarted("PostStart-first"))
}

// TestRow21: a preStop hook is over before its container has the signal, whatever kind it is, and the container lives beside it.
//
// fields: containers[].lifecycle.preStop.{exec.command,httpGet.port,httpGet.scheme,sleep.seconds}
func TestRow21(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	s := play(t, shared, fmt.Sprintf(`
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
	p.answer(func(r *http.Request) {
		name := filepath.Base(r.URL.Path)
		s.tell(name, "Starting")
		s.tell(name, "Exiting")
	})
	s.until(s.awake("exec", "http", "https", "sleep"), s.runs("exec", "http", "https", "sleep"))
	s.stop()
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	for _, name := range []string{"exec", "http", "https"} {
		s.check(all.HasNotRestarted("PreStop-"+name), all.RunTogether("PreStop-"+name, name), all.EndsBeforeSignal("PreStop-"+name, name))
	}
	slept, err := all.first("sleep")
	s.check(err)
	if d := slept.terminating.Sub(s.event(event.ContainerStopping, "sleep").Time); d < 1900*time.Millisecond {
		t.Errorf("the signal came after %v, before the 2 s of the hook", d)
	}
}

// TestRow23: a preStop hook that does not end, of a container that does not, is over with the grace period; the container has
// two seconds more.
//
// fields: terminationGracePeriodSeconds
func TestRow23(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
terminationGracePeriodSeconds = 2
[[containers]]
@app term=never
lifecycle.preStop.exec = { @PreStop-app run=1h }
`)
	s.until(s.awake("app"))
	s.stop()
	s.ended(lifecycle.PhaseFailed)
	s.died("app", 137, lifecycle.ReasonError)
	stopped, killed := s.event(event.PodStopping, ""), s.event(event.ContainerKilled, "app")
	if d := killed.Time.Sub(stopped.Time); d < 3900*time.Millisecond || d > deadline/2 {
		t.Errorf("killed after %v, want 2 s of grace and 2 s after the signal", d)
	}
	run, err := s.tale().first("app")
	s.check(err)
	if d := run.terminating.Sub(stopped.Time); !run.terminating.IsZero() && d < 1900*time.Millisecond { // it has two seconds to say so
		t.Errorf("the signal came after %v, while the hook had time", d)
	}
}

// TestRow24: a container that does not end when it is told to is killed when its grace period is over.
//
// fields: terminationGracePeriodSeconds
func TestRow24(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
terminationGracePeriodSeconds = 10
[[containers]]
@deaf term=never
[[containers]]
@slow term=1s exit=7
`)
	s.until(s.awake("deaf", "slow"))
	s.stop()
	s.ended(lifecycle.PhaseFailed)
	s.died("deaf", 137, lifecycle.ReasonError)
	s.died("slow", 7, lifecycle.ReasonError)
	if d := s.event(event.ContainerKilled, "deaf").Time.Sub(s.event(event.PodStopping, "").Time); d < 9900*time.Millisecond || d > deadline/2 {
		t.Errorf("killed after %v, want 10 s", d)
	}
}

// TestRow26: a pod that is ended while something of it fails or was never there has failed, whatever its policy.
func TestRow26(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Always", "OnFailure", "Never"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := play(t, shared, `
restartPolicy = "`+policy+`"
terminationGracePeriodSeconds = 1
[[containers]]
@app term=never
`)
			s.until(s.awake("app"))
			s.stop()
			s.ended(lifecycle.PhaseFailed)
			s.died("app", 137, lifecycle.ReasonError)
			s.check(s.tale().HasNotRestarted("app"))
		})
	}
	t.Run("Pending", func(t *testing.T) {
		t.Parallel()
		s := play(t, shared, `
[[containers]]
name = "app"
imagePullPolicy = "Never"
image = "localhost/podstead/none:1"
`)
		s.until(s.waits("app", lifecycle.ReasonErrImageNeverPull))
		if p := s.pod(); p.Status.Phase != lifecycle.PhasePending {
			t.Errorf("the phase is %s", p.Status.Phase)
		}
		s.stop()
		s.ended(lifecycle.PhaseFailed)
		s.check(s.tale().DoesNotStart("app"))
	})
}
