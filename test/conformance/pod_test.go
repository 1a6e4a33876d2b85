//go:build e2e

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/test/internal/rig"
)

// testPod is the pod of one test.
type testPod struct {
	*testing.T
	daemon    *testDaemon
	name, uid string
	text      string // the pod file
	dir       string // the directory in which the actors log, and in which they find their files
}

// runPod creates a pod that is named after the test, with these files in its directory. It is removed with the test.
func runPod(t *testing.T, g *testDaemon, text string, files ...string) *testPod {
	t.Helper()
	return g.runPod(t, podName(t.Name()), text, files...)
}

// podName returns the name of the pod of a test.
func podName(test string) string {
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(strings.TrimPrefix(test, "Test")), "-"), "-")
	return name[:min(len(name), 50)]
}

func (g *testDaemon) runPod(t *testing.T, name, text string, files ...string) *testPod {
	t.Helper()
	dir, err := os.MkdirTemp(g.Dir, "timeline-")
	if err != nil {
		t.Fatal(err)
	}
	s := &testPod{T: t, daemon: g, name: name, dir: dir, text: expand(name, g.Archive("actor"), dir, text)}
	s.touch(files...)
	p, err := g.create(s.ctx(), name, s.text)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.text)
	}
	s.uid = p.Metadata.UID
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s)
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("timed out waiting for cleanup"))
		defer cancel()
		if *recordTo != "" {
			if err := s.writeRecording(ctx, text); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(g.remove(ctx, name, s.uid), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// recordTo is the directory that recordings are written to.
var recordTo = flag.String("record", "", "write recordings of the pods to this directory")

// writeRecording writes the recording of the pod, without paths of this host.
func (s *testPod) writeRecording(ctx context.Context, text string) error {
	var events []api.Event
	for e, err := range s.daemon.Client().Events(ctx, &client.EventQuery{UID: s.uid}) {
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	name := strings.ReplaceAll(s.Name(), "/", "_")
	if s.name != podName(s.Name()) {
		name += "-" + s.name // a test can have several pods
	}
	pod := regexp.MustCompile(`"/[^"]*/([^"/]+\.tar)"`).ReplaceAllString(expand(s.name, "actor.tar", "/timeline", text), `"$1"`)
	return writeRecording(filepath.Join(*recordTo, name+".txtar"), pod, events, time.Now())
}

// ctx ends with the test, and well before the timeout of go test.
func (s *testPod) ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(s.Context(), deadline, errors.New("the test timed out"))
	s.Cleanup(cancel)
	return ctx
}

// touch creates files that actors wait for or check.
func (s *testPod) touch(files ...string) {
	s.Helper()
	for _, file := range files {
		s.check(os.WriteFile(filepath.Join(s.dir, file), nil, 0o600))
	}
}

func (s *testPod) unlink(file string) {
	s.Helper()
	s.check(os.Remove(filepath.Join(s.dir, file)))
}

// check reports errors and continues.
func (s *testPod) check(errs ...error) {
	s.Helper()
	for _, err := range errs {
		if err != nil {
			s.Error(err)
		}
	}
}

// await waits until all conditions hold at the same time.
func (s *testPod) await(conditions ...func() error) {
	s.Helper()
	err := rig.Await(s.ctx(), func() error {
		for _, holds := range conditions {
			if err := holds(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// record writes a line to the log as an actor does. It is safe for concurrent use.
func (s *testPod) record(name, event string) {
	f, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666) // same mode as the actors use
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), name, event)
		err = errors.Join(err, f.Close())
	}
	s.check(err)
}

// timeline returns what the actors have logged so far.
func (s *testPod) timeline() timeline {
	s.Helper()
	t, err := readTimeline(filepath.Join(s.dir, "log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return t
}

// pod returns the pod from the API.
func (s *testPod) pod() api.Pod {
	s.Helper()
	p, err := s.daemon.Client().Pod(s.ctx(), s.name)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// container returns the status of a container.
func (s *testPod) container(name string) api.ContainerStatus {
	s.Helper()
	p := s.pod()
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.Name == name {
			return c
		}
	}
	s.Fatalf("the status has no container %q", name)
	panic("unreachable")
}

// condition returns a condition of the pod.
func (s *testPod) condition(kind api.ConditionType) api.Condition {
	s.Helper()
	for _, c := range s.pod().Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return api.Condition{Type: kind}
}

// events returns the events of a kind for a container, or any container if that is "".
func (s *testPod) events(kind api.EventKind, container string) (all []api.Event) {
	s.Helper()
	for e, err := range s.daemon.Client().Events(s.ctx(), &client.EventQuery{UID: s.uid}) {
		if err != nil {
			s.Fatal(err)
		}
		if e.Kind == kind && (container == "" || e.Container == container) {
			all = append(all, e)
		}
	}
	return all
}

// event waits for the first event of a kind for a container.
func (s *testPod) event(kind api.EventKind, container string) api.Event {
	s.Helper()
	s.await(s.hasEvents(kind, container, 1))
	return s.events(kind, container)[0]
}

// stop stops the pod with its own grace period.
func (s *testPod) stop() {
	s.Helper()
	if err := s.daemon.Client().Stop(s.ctx(), s.name, client.StopOptions{UID: s.uid}); err != nil {
		s.Fatal(err)
	}
}

// awaitStopped waits until no container of the pod runs, and returns the pod.
func (s *testPod) awaitStopped() api.Pod {
	s.Helper()
	s.await(func() error {
		if p := s.pod(); !p.Status.AtRest {
			return fmt.Errorf("the pod still runs: %+v", p.Status.ContainerStatuses)
		}
		return nil
	})
	return s.pod()
}

// awaitPhase waits until the pod has stopped, and fails unless it has that phase.
func (s *testPod) awaitPhase(phase api.Phase) api.Pod {
	s.Helper()
	p := s.awaitStopped()
	if p.Status.Phase != phase {
		s.Errorf("phase %s (%s), want %s", p.Status.Phase, p.Status.Reason, phase)
	}
	return p
}

// holds returns a condition on the timeline.
func (s *testPod) holds(f func(t timeline) error) func() error {
	return func() error { s.Helper(); return f(s.timeline()) }
}

// ran holds when an actor has started at least so often.
func (s *testPod) ran(name string, times int) func() error {
	return s.holds(func(t timeline) error {
		if n := len(t.runs(name)); n < times {
			return fmt.Errorf("%s ran %d times, want %d", name, n, times)
		}
		return nil
	})
}

// started holds when the newest runs of these actors have started and handle signals.
func (s *testPod) started(names ...string) func() error {
	return s.holds(func(t timeline) error {
		for _, name := range names {
			if run, err := t.last(name); err != nil || run.started.IsZero() {
				return errors.Join(err, fmt.Errorf("%s has not started", name))
			}
		}
		return nil
	})
}

// running holds when the status of these containers is Running.
func (s *testPod) running(names ...string) func() error {
	return func() error {
		s.Helper()
		for _, name := range names {
			if c := s.container(name); c.State.Running == nil {
				return fmt.Errorf("%s is not running: %s", name, text(c))
			}
		}
		return nil
	}
}

// exited holds when an actor has exited by itself at least so often.
func (s *testPod) exited(name string, times int) func() error {
	return s.holds(func(t timeline) error {
		n := 0
		for _, run := range t.runs(name) {
			if !run.exiting.IsZero() {
				n++
			}
		}
		if n < times {
			return fmt.Errorf("%s has exited %d times, want %d", name, n, times)
		}
		return nil
	})
}

// restarted holds when the restart count of a container is at least that.
func (s *testPod) restarted(name string, times int) func() error {
	return func() error {
		s.Helper()
		if n := s.container(name).RestartCount; n < times {
			return fmt.Errorf("%s has restarted %d times, want %d", name, n, times)
		}
		return nil
	}
}

// hasEvents holds when there are at least so many events of a kind for a container.
func (s *testPod) hasEvents(kind api.EventKind, container string, times int) func() error {
	return func() error {
		s.Helper()
		if n := len(s.events(kind, container)); n < times {
			return fmt.Errorf("%d events %s for %q, want %d", n, kind, container, times)
		}
		return nil
	}
}

// waiting holds when a container is waiting for that reason.
func (s *testPod) waiting(name string, reason api.Reason) func() error {
	return func() error {
		s.Helper()
		if c := s.container(name); c.State.Waiting == nil || c.State.Waiting.Reason != reason {
			return fmt.Errorf("%s is not waiting with reason %s: %s", name, reason, text(c))
		}
		return nil
	}
}

// hasCondition holds when a condition of the pod has that status.
func (s *testPod) hasCondition(kind api.ConditionType, status string) func() error {
	return func() error {
		s.Helper()
		if c := s.condition(kind); c.Status != status {
			return fmt.Errorf("condition %s is %q (%s), want %s", kind, c.Status, c.Reason, status)
		}
		return nil
	}
}

// isComplete returns a condition: the pod was ready for its minimum ready time.
func (s *testPod) isComplete() func() error {
	return func() error {
		s.Helper()
		if o := s.pod().Status.Outcome; o.State != api.RolloutComplete {
			return fmt.Errorf("the outcome is %s (%s)", o.State, o.Message)
		}
		return nil
	}
}

// checkRestarts fails unless the containers have exactly this restart count.
func (s *testPod) checkRestarts(want int, names ...string) {
	s.Helper()
	for _, name := range names {
		if got := s.container(name).RestartCount; got != want {
			s.Errorf("%s has restarted %d times, want %d", name, got, want)
		}
	}
}

// checkTerminated fails unless a container has terminated with that exit code and reason.
func (s *testPod) checkTerminated(name string, code int, reason api.Reason) {
	s.Helper()
	c := s.container(name)
	if d := c.State.Terminated; d == nil || d.ExitCode != code || d.Reason != reason {
		s.Errorf("%s has not terminated with exit code %d, %s: %s", name, code, reason, text(c))
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func isNotFound(err error) bool {
	answer, is := errors.AsType[*api.Error](err)
	return is && answer.Status == http.StatusNotFound
}

// String returns the pod file, the timeline and the daemon's log, for a failed test.
func (s *testPod) String() string {
	var b strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Fprintf(&b, "pod file:\n%s\ntimeline:\n", s.text)
	type item struct {
		at   time.Time
		line string
	}
	var items []item
	t, err := readTimeline(filepath.Join(s.dir, "log"))
	for _, l := range t {
		items = append(items, item{l.at, "     " + l.name + " " + l.event})
	}
	for e, eventErr := range s.daemon.Client().Events(ctx, &client.EventQuery{UID: s.uid}) {
		err = errors.Join(err, eventErr)
		items = append(items, item{e.Time, fmt.Sprintf("- %s %s: %s", e.Kind, e.Container, e.Message)})
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.at.Compare(b.at) })
	for _, i := range items[max(0, len(items)-200):] {
		fmt.Fprintf(&b, "%s %s\n", i.at.Format("04:05.000"), i.line)
	}
	p, podErr := s.daemon.Client().Pod(ctx, s.name)
	fmt.Fprintf(&b, "status: %s\nerrors: %v\nend of the daemon's log:\n%s\n", text(p.Status), errors.Join(err, podErr), s.daemon.EndOfLog())
	return b.String()
}
