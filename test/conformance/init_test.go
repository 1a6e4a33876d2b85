//go:build e2e

package conformance

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// TestRow01: init containers run one after the other, each to its end, and the others after them.
//
// fields: initContainers
func TestRow01(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@init-1 run=0.5s
[[initContainers]]
@init-2 run=0.5s
[[initContainers]]
@init-3 run=0.5s
[[containers]]
@app run=0.2s
`)
	s.ended(lifecycle.PhaseSucceeded)
	all := s.tale()
	s.check(all.ExitsBefore("init-1", "init-2"), all.ExitsBefore("init-2", "init-3"), all.ExitsBefore("init-3", "app"))
	for _, name := range []string{"init-1", "init-2", "init-3", "app"} {
		s.check(all.HasNotRestarted(name))
		s.counts(0, name)
		s.died(name, 0, lifecycle.ReasonCompleted)
	}
}

// TestRow02: under Never the failure of an init container is the pod's, and its regular containers are never made.
func TestRow02(t *testing.T) {
	t.Parallel()
	s := play(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@init exit=1 run=0s
[[initContainers]]
@later run=0s
[[containers]]
@app run=0s
`)
	s.ended(lifecycle.PhaseFailed)
	all := s.tale()
	s.check(all.HasNotRestarted("init"), all.DoesNotStart("later"), all.DoesNotStart("app"), s.waits("app", lifecycle.ReasonPodInitializing)())
	s.counts(0, "init", "app")
	s.died("init", 1, lifecycle.ReasonError)
	if c := s.container("app"); c.ContainerID != "" {
		t.Errorf("a container was made: %s", text(c))
	}
}

// TestRow03: under Always and OnFailure an init container that fails is tried again, slower and slower, and nothing else happens.
func TestRow03(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Always", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := play(t, shared, `
restartPolicy = "`+policy+`"
restartBackoff = { initialSeconds = 0.3, maxSeconds = 300 }
[[initContainers]]
@init exit=1 run=0s
[[containers]]
@app run=0s
`)
			s.until(s.restarted("init", 4))
			s.check(s.tale().DoesNotStart("app"), s.waits("app", lifecycle.ReasonPodInitializing)(), slower(s, "init", 300*time.Millisecond, 300*time.Second, 2))
			if p := s.pod(); p.Status.Phase != lifecycle.PhasePending {
				t.Errorf("the phase is %s", p.Status.Phase)
			}
			if c := s.condition(lifecycle.PodInitialized); c.Status != "False" || c.Reason != lifecycle.ReasonContainersNotInitialized {
				t.Errorf("Initialized: %s", text(c))
			}
			s.stop()
			s.ended(lifecycle.PhaseFailed)
			s.check(s.tale().DoesNotStart("app"))
		})
	}
}

// slower fails unless the first restart of a container comes at once, and each later one not before its delay: the first, and
// twice the one before, up to a bound. A delay is told only if it is not over yet when the supervisor comes to it.
func slower(s *scene, name string, first, most time.Duration, told int) error {
	s.Helper()
	delayAfter := func(run int) time.Duration { return min(first<<max(run-2, 0), most) } // of the second run and later ones
	s.until(s.told(event.ContainerBackOff, name, told), s.ran(name, told+2))
	for _, e := range s.events(event.ContainerBackOff, name) {
		if got := e.Fields["delay"]; e.Attempt < 2 || got != delayAfter(e.Attempt).String() {
			return fmt.Errorf("%s: the delay after run %d is %s, want %v, and none after the first", name, e.Attempt, got, delayAfter(e.Attempt))
		}
	}
	runs := s.tale().runs(name)
	for i := 2; i < len(runs); i++ {
		if gap := runs[i].starting.Sub(runs[i-1].exiting); gap < delayAfter(i) {
			return fmt.Errorf("%s: run %d begins after %v, before its delay of %v", name, i+1, gap, delayAfter(i))
		}
	}
	return nil
}

// TestRow04: an image that cannot be had is no failure of the pod, whatever its policy; when it comes, the pod goes on.
func TestRow04(t *testing.T) {
	t.Parallel()
	registry := httptest.NewServer(http.NotFoundHandler())
	defer registry.Close()
	late := strings.TrimPrefix(registry.URL, "http://") + "/"
	late += fmt.Sprintf("%0*d:1", len(actor)-len(late)-len(":1"), images.Add(1))
	container := fmt.Sprintf("name = \"late\"\nimage = %q\nvolumeMounts = { tale = \"/tale\" }\ncommand = [\"/bin/actor\", \"late\", \"run=0s\"]\n", late)
	s := play(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@init run=0s
[[initContainers]]
`+container+`
[[containers]]
@app run=0s
`)
	s.until(s.waits("late", lifecycle.ReasonErrImagePull))
	if p := s.pod(); p.Status.Phase != lifecycle.PhasePending {
		t.Errorf("the phase is %s", p.Status.Phase)
	}
	s.until(s.waits("late", lifecycle.ReasonImagePullBackOff)) // when it has failed again, after 10 s
	again := s.events(event.ImagePullFailed, "late")
	s.check(s.over("init", 1)(), s.tale().DoesNotStart("late"), s.tale().DoesNotStart("app"))

	archive := filepath.Join(s.dir, "late.tar")
	s.check(nameAnew(shared.Archive("actor"), archive, late))
	fix := shared.play(t, s.name+"-fix", "imageArchives = [\""+archive+"\"]\n[[containers]]\n"+container)
	s.ended(lifecycle.PhaseSucceeded)
	came, found := fix.event(event.ImagePresent, "late").Time, s.event(event.ImagePresent, "late").Time
	if early := came.Sub(again[len(again)-1].Time) < 4*time.Second; early && found.Sub(came) > 15*time.Second {
		t.Errorf("it was found %v after it had come: only a pull waits for 20 s", found.Sub(came))
	}
	all := s.tale()
	s.check(all.ExitsBefore("init", "late"), all.ExitsBefore("late", "app"))
}

// images counts the names of images that were made up: what one test has fetched must not help the next.
var images atomic.Int32

// nameAnew copies the archive of the actors and gives their image another name of the same length.
func nameAnew(from, to, name string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if len(name) != len(actor) || !bytes.Contains(text, []byte(actor)) {
		return fmt.Errorf("name %s anew: %s does not fit", from, name)
	}
	return os.WriteFile(to, bytes.ReplaceAll(text, []byte(actor), []byte(name)), 0o600)
}
