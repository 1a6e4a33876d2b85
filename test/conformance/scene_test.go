//go:build e2e

package conformance

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/test/internal/rig"
)

// scene is one pod of a row.
type scene struct {
	*testing.T
	stage     *stage
	name, uid string
	text      string // the pod file
	dir       string // where the actors write, and find the files of their parts
}

// play creates a pod that is named after the test, in whose folder there are files already. It is taken away with the test.
func play(t *testing.T, g *stage, text string, files ...string) *scene {
	t.Helper()
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-"), "-")
	return g.play(t, name[:min(len(name), 50)], text, files...)
}

func (g *stage) play(t *testing.T, name, text string, files ...string) *scene {
	t.Helper()
	dir, err := os.MkdirTemp(g.Dir, "tale-")
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, stage: g, name: name, dir: dir, text: expand(name, g.Archive("actor"), dir, text)}
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
		ctx, cancel := context.WithTimeoutCause(context.Background(), deadline, errors.New("it does not go"))
		defer cancel()
		if err := errors.Join(g.remove(ctx, name, s.uid), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ctx ends with the test, and well before go test gives up on all of them.
func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeoutCause(s.Context(), deadline, errors.New("the test waited too long"))
	s.Cleanup(cancel)
	return ctx
}

// touch makes files that parts wait for or look at.
func (s *scene) touch(files ...string) {
	s.Helper()
	for _, file := range files {
		s.check(os.WriteFile(filepath.Join(s.dir, file), nil, 0o600))
	}
}

func (s *scene) unlink(file string) {
	s.Helper()
	s.check(os.Remove(filepath.Join(s.dir, file)))
}

// check fails the test at an error, and goes on with the rest.
func (s *scene) check(errs ...error) {
	s.Helper()
	for _, err := range errs {
		if err != nil {
			s.Error(err)
		}
	}
}

// until waits until all of the conditions hold at once.
func (s *scene) until(conditions ...func() error) {
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

// tell writes a line as an actor does. It is safe for concurrent use.
func (s *scene) tell(name, event string) {
	f, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666) //nolint:gosec // as actors do
	if err == nil {
		_, err = fmt.Fprintf(f, "%s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), name, event)
		err = errors.Join(err, f.Close())
	}
	s.check(err)
}

// tale is what the actors have written so far.
func (s *scene) tale() tale {
	s.Helper()
	t, err := readTale(filepath.Join(s.dir, "log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return t
}

// pod is the pod as the API shows it.
func (s *scene) pod() api.Pod {
	s.Helper()
	p, err := s.stage.Client().Pod(s.ctx(), s.name)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// container is the status of one of the pod's containers.
func (s *scene) container(name string) lifecycle.ContainerStatus {
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

// condition is one of the pod's conditions.
func (s *scene) condition(kind lifecycle.ConditionType) lifecycle.Condition {
	s.Helper()
	for _, c := range s.pod().Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return lifecycle.Condition{Type: kind}
}

// events are those of a kind about a container, "" for any.
func (s *scene) events(kind event.Kind, container string) (all []api.Event) {
	s.Helper()
	for e, err := range s.stage.Client().Events(s.ctx(), &api.EventQuery{UID: s.uid}) {
		if err != nil {
			s.Fatal(err)
		}
		if e.Kind == kind && (container == "" || e.Container == container) {
			all = append(all, e)
		}
	}
	return all
}

// event is the first of a kind about a container, which is waited for.
func (s *scene) event(kind event.Kind, container string) api.Event {
	s.Helper()
	s.until(s.told(kind, container, 1))
	return s.events(kind, container)[0]
}

// stop asks the pod to end, within its own grace period.
func (s *scene) stop() {
	s.Helper()
	if err := s.stage.Client().Stop(s.ctx(), s.name, api.StopOptions{UID: s.uid}); err != nil {
		s.Fatal(err)
	}
}

// end waits until nothing of the pod runs, and returns it.
func (s *scene) end() api.Pod {
	s.Helper()
	s.until(func() error {
		if p := s.pod(); !p.Status.AtRest {
			return fmt.Errorf("something of the pod runs: %+v", p.Status.ContainerStatuses)
		}
		return nil
	})
	return s.pod()
}

// ended waits for the end and fails unless the pod has that phase then.
func (s *scene) ended(phase lifecycle.Phase) api.Pod {
	s.Helper()
	p := s.end()
	if p.Status.Phase != phase {
		s.Errorf("the phase is %s (%s), want %s", p.Status.Phase, p.Status.Reason, phase)
	}
	return p
}

// holds is a condition about what the actors have written.
func (s *scene) holds(f func(t tale) error) func() error {
	return func() error { s.Helper(); return f(s.tale()) }
}

// ran holds when an actor has started at least so often.
func (s *scene) ran(name string, times int) func() error {
	return s.holds(func(t tale) error {
		if n := len(t.runs(name)); n < times {
			return fmt.Errorf("%s ran %d times, not yet %d", name, n, times)
		}
		return nil
	})
}

// awake holds when the newest runs of actors were started: they hear signals.
func (s *scene) awake(names ...string) func() error {
	return s.holds(func(t tale) error {
		for _, name := range names {
			if run, err := t.last(name); err != nil || run.started.IsZero() {
				return errors.Join(err, fmt.Errorf("%s is not started yet", name))
			}
		}
		return nil
	})
}

// runs holds when containers are shown as running.
func (s *scene) runs(names ...string) func() error {
	return func() error {
		s.Helper()
		for _, name := range names {
			if c := s.container(name); c.State.Running == nil {
				return fmt.Errorf("%s does not run: %s", name, text(c))
			}
		}
		return nil
	}
}

// over holds when an actor has ended of itself at least so often.
func (s *scene) over(name string, times int) func() error {
	return s.holds(func(t tale) error {
		n := 0
		for _, run := range t.runs(name) {
			if !run.exiting.IsZero() {
				n++
			}
		}
		if n < times {
			return fmt.Errorf("%s has ended %d times, not yet %d", name, n, times)
		}
		return nil
	})
}

// restarted holds when a container's restart count is at least that.
func (s *scene) restarted(name string, times int) func() error {
	return func() error {
		s.Helper()
		if n := s.container(name).RestartCount; n < times {
			return fmt.Errorf("%s has restarted %d times, not yet %d", name, n, times)
		}
		return nil
	}
}

// told holds when there are at least so many events of a kind about a container.
func (s *scene) told(kind event.Kind, container string, times int) func() error {
	return func() error {
		s.Helper()
		if n := len(s.events(kind, container)); n < times {
			return fmt.Errorf("%d events %s of %q, not yet %d", n, kind, container, times)
		}
		return nil
	}
}

// waits holds when a container waits for that reason.
func (s *scene) waits(name string, reason lifecycle.Reason) func() error {
	return func() error {
		s.Helper()
		if c := s.container(name); c.State.Waiting == nil || c.State.Waiting.Reason != reason {
			return fmt.Errorf("%s does not wait for %s: %s", name, reason, text(c))
		}
		return nil
	}
}

// is holds when a condition of the pod has that status.
func (s *scene) is(kind lifecycle.ConditionType, status string) func() error {
	return func() error {
		s.Helper()
		if c := s.condition(kind); c.Status != status {
			return fmt.Errorf("%s is %q (%s), not %s", kind, c.Status, c.Reason, status)
		}
		return nil
	}
}

// counts fails unless the containers have exactly these restart counts.
func (s *scene) counts(want int, names ...string) {
	s.Helper()
	for _, name := range names {
		if got := s.container(name).RestartCount; got != want {
			s.Errorf("%s has restarted %d times, want %d", name, got, want)
		}
	}
}

// died fails unless a container has ended with that code and for that reason.
func (s *scene) died(name string, code int, reason lifecycle.Reason) {
	s.Helper()
	c := s.container(name)
	if d := c.State.Terminated; d == nil || d.ExitCode != code || d.Reason != reason {
		s.Errorf("%s has not ended with %d, %s: %s", name, code, reason, text(c))
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func isGone(err error) bool {
	answer, is := errors.AsType[*api.Error](err)
	return is && answer.Status == http.StatusNotFound
}

// String is what a person wants to know of a row that failed.
func (s *scene) String() string {
	var b strings.Builder
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Fprintf(&b, "the pod file:\n%s\nwhat happened:\n", s.text)
	type item struct {
		at   time.Time
		line string
	}
	var items []item
	t, err := readTale(filepath.Join(s.dir, "log"))
	for _, l := range t {
		items = append(items, item{l.at, "     " + l.name + " " + l.event})
	}
	for e, eventErr := range s.stage.Client().Events(ctx, &api.EventQuery{UID: s.uid}) {
		err = errors.Join(err, eventErr)
		items = append(items, item{e.Time, fmt.Sprintf("- %s %s: %s", e.Kind, e.Container, e.Message)})
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.at.Compare(b.at) })
	for _, i := range items[max(0, len(items)-200):] {
		fmt.Fprintf(&b, "%s %s\n", i.at.Format("04:05.000"), i.line)
	}
	p, podErr := s.stage.Client().Pod(ctx, s.name)
	fmt.Fprintf(&b, "status: %s\nerrors: %v\nthe end of the daemon's log:\n%s\n", text(p.Status), errors.Join(err, podErr), s.stage.EndOfLog())
	return b.String()
}
