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

	"github.com/podstead/podstead/api"
)

// TestInitContainersRunInOrder: init containers run to completion one after the other, then the regular containers start.
//
// fields: initContainers
func TestInitContainersRunInOrder(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
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
	s.awaitPhase(api.PhaseSucceeded)
	all := s.timeline()
	s.check(all.ExitsBefore("init-1", "init-2"), all.ExitsBefore("init-2", "init-3"), all.ExitsBefore("init-3", "app"))
	for _, name := range []string{"init-1", "init-2", "init-3", "app"} {
		s.check(all.HasNotRestarted(name))
		s.checkRestarts(0, name)
		s.checkTerminated(name, 0, api.ReasonCompleted)
	}
}

// TestInitFailureFailsPodUnderNever: under Never a failed init container fails the pod, and its regular containers are never created.
func TestInitFailureFailsPodUnderNever(t *testing.T) {
	t.Parallel()
	s := runPod(t, shared, `
restartPolicy = "Never"
[[initContainers]]
@init exit=1 run=0s
[[initContainers]]
@later run=0s
[[containers]]
@app run=0s
`)
	s.awaitPhase(api.PhaseFailed)
	all := s.timeline()
	s.check(all.HasNotRestarted("init"), all.DoesNotStart("later"), all.DoesNotStart("app"), s.waiting("app", api.ReasonPodInitializing)())
	s.checkRestarts(0, "init", "app")
	s.checkTerminated("init", 1, api.ReasonError)
	if c := s.container("app"); c.ContainerID != "" {
		t.Errorf("a container was created: %s", text(c))
	}
}

// TestInitFailureBacksOff: under Always and OnFailure a failed init container restarts with back-off. The pod stays Pending.
func TestInitFailureBacksOff(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Always", "OnFailure"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			s := runPod(t, shared, `
restartPolicy = "`+policy+`"
restartBackoff = { initialSeconds = 0.3, maxSeconds = 300 }
[[initContainers]]
@init exit=1 run=0s
[[containers]]
@app run=0s
`)
			s.await(s.restarted("init", 4))
			s.check(s.timeline().DoesNotStart("app"), s.waiting("app", api.ReasonPodInitializing)(),
				checkBackOff(s, "init", 300*time.Millisecond, 300*time.Second, 2))
			if p := s.pod(); p.Status.Phase != api.PhasePending {
				t.Errorf("phase %s, want Pending", p.Status.Phase)
			}
			if c := s.condition(api.PodInitialized); c.Status != "False" || c.Reason != api.ReasonContainersNotInitialized {
				t.Errorf("Initialized: %s", text(c))
			}
			s.stop()
			s.awaitPhase(api.PhaseFailed)
			s.check(s.timeline().DoesNotStart("app"))
		})
	}
}

// checkBackOff fails unless the first restart of a container is immediate, and each later one waits for its delay, which doubles up to a
// cap. Only a delay that is not over yet is reported as an event; the test waits for so many events.
func checkBackOff(s *testPod, name string, first, limit time.Duration, events int) error {
	s.Helper()
	delayAfter := func(run int) time.Duration { return min(first<<max(run-2, 0), limit) } // of the second run and later ones
	s.await(s.hasEvents(api.EventContainerBackOff, name, events), s.ran(name, events+2))
	for _, e := range s.events(api.EventContainerBackOff, name) {
		if got := e.Fields["delay"]; e.Attempt < 2 || got != delayAfter(e.Attempt).String() {
			return fmt.Errorf("%s: delay %[3]s after run %[2]d, want %[4]v, and none after the first run", name, e.Attempt, got,
				delayAfter(e.Attempt))
		}
	}
	runs := s.timeline().runs(name)
	for i := 2; i < len(runs); i++ {
		if gap := runs[i].starting.Sub(runs[i-1].exiting); gap < delayAfter(i) {
			return fmt.Errorf("%s: run %d starts after %v, before its delay of %v", name, i+1, gap, delayAfter(i))
		}
	}
	return nil
}

// TestMissingInitImageKeepsPodPending: a missing image does not fail the pod under any restart policy. The pod continues when the image
// is present.
func TestMissingInitImageKeepsPodPending(t *testing.T) {
	t.Parallel()
	registry := httptest.NewServer(http.NotFoundHandler())
	defer registry.Close()
	late := strings.TrimPrefix(registry.URL, "http://") + "/"
	late += fmt.Sprintf("%0*d:1", len(actor)-len(late)-len(":1"), images.Add(1))
	container := fmt.Sprintf("name = \"late\"\nimage = %q\nvolumeMounts = { timeline = \"/timeline\" }\ncommand = [\"/bin/actor\", "+
		"\"late\", \"run=0s\"]\n",
		late)
	archive := filepath.Join(t.TempDir(), "late.tar") // contains the image later
	if err := renameImage(shared.Archive("actor"), archive, actor); err != nil {
		t.Fatal(err)
	}
	archives := fmt.Sprintf("imageArchives = [%q, %q]\n", shared.Archive("actor"), archive)
	s := runPod(t, shared, archives+`
restartPolicy = "Never"
[[initContainers]]
@init run=0s
[[initContainers]]
`+container+`
[[containers]]
@app run=0s
`)
	s.await(s.waiting("late", api.ReasonErrImagePull))
	if p := s.pod(); p.Status.Phase != api.PhasePending {
		t.Errorf("phase %s, want Pending", p.Status.Phase)
	}
	s.await(s.waiting("late", api.ReasonImagePullBackOff)) // after the second failed pull, 10 s later
	failures := s.events(api.EventImagePullFailed, "late")
	s.check(s.exited("init", 1)(), s.timeline().DoesNotStart("late"), s.timeline().DoesNotStart("app"))

	s.check(renameImage(shared.Archive("actor"), archive, late))
	fix := shared.runPod(t, s.name+"-fix", "imageArchives = [\""+archive+"\"]\n[[containers]]\n"+container)
	s.awaitPhase(api.PhaseSucceeded)
	came, found := fix.event(api.EventImagePresent, "late").Time, s.event(api.EventImagePresent, "late").Time
	if early := came.Sub(failures[len(failures)-1].Time) < 4*time.Second; early && found.Sub(came) > 15*time.Second {
		t.Errorf("the image was found %v after it was imported, want at once: only a pull backs off for 20 s", found.Sub(came))
	}
	all := s.timeline()
	s.check(all.ExitsBefore("init", "late"), all.ExitsBefore("late", "app"))
}

// images numbers the image names, so that no test finds the image of another.
var images atomic.Int32

// renameImage copies the archive of the actor image and gives the image another name of the same length.
func renameImage(from, to, name string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if len(name) != len(actor) || !bytes.Contains(text, []byte(actor)) {
		return fmt.Errorf("rename image in %s: %s has another length, or the archive another image", from, name)
	}
	return os.WriteFile(to, bytes.ReplaceAll(text, []byte(actor), []byte(name)), 0o600)
}
