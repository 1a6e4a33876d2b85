package foreground_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/foreground"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// patience is far above what anything takes here, on a machine that is busy with other things.
const patience = time.Minute

// machine is where daemons live, one at a time: the engine and the state outlive each.
type machine struct {
	dir, socket string
	fake        *fakeruntime.Runtime
	t           *testing.T

	mu  sync.Mutex
	end func() // of the daemon that runs
}

func newMachine(t *testing.T, o fakeruntime.Options) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o.LogDir = filepath.Join(dir, "logs")
	m := &machine{dir: dir, socket: filepath.Join(dir, "s"), fake: fakeruntime.New(o), t: t}
	if err := m.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.lose)
	return m
}

// connect starts a daemon if there is none. It outlives the call.
func (m *machine) connect(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	store, err := state.NewDir(filepath.Join(m.dir, "pods"))
	if err != nil {
		return err
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		return err
	}
	s := supervisor.New(ctx, supervisor.Options{Runtime: m.fake, Store: store, Clock: clock})
	if err := s.Recover(ctx); err != nil {
		return err
	}
	server := api.NewServer(ctx, api.Options{
		Supervisor: s, LogDir: filepath.Join(m.dir, "logs"), Version: api.Version{Instance: fmt.Sprint(time.Now().UnixNano())},
	})
	l, err := api.Listen(ctx, m.socket)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	m.end = func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := errors.Join(server.Close(ctx), <-served, s.Leave(ctx)); err != nil {
			m.t.Errorf("end a daemon: %v", err)
		}
	}
	return nil
}

// lose ends the daemon.
func (m *machine) lose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end != nil {
		m.end()
		m.end = nil
	}
}

// shown keeps what a run shows.
type shown struct {
	mu     sync.Mutex
	lines  []string
	events []api.Event
	ended  []api.Pod
	notes  []string
	more   chan struct{} // has a value after each word
}

func newShown() *shown { return &shown{more: make(chan struct{}, 1)} }

func (s *shown) add(keep func()) {
	s.mu.Lock()
	keep()
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *shown) Pods([]api.Pod) {}
func (s *shown) Line(pod string, l api.Line) {
	s.add(func() { s.lines = append(s.lines, pod+"/"+l.Container+" "+l.Line) })
}
func (s *shown) Event(e api.Event)   { s.add(func() { s.events = append(s.events, e) }) }
func (s *shown) Ended(p api.Pod)     { s.add(func() { s.ended = append(s.ended, p) }) }
func (s *shown) Note(message string) { s.add(func() { s.notes = append(s.notes, message) }) }

// await waits until cond is met.
func (s *shown) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		met := cond()
		s.mu.Unlock()
		if met {
			return
		}
		select {
		case <-s.more:
		case <-limit:
			t.Fatalf("%s: never came; lines %q, notes %q, events %+v", what, s.lines, s.notes, s.events)
		}
	}
}

func (s *shown) hasEvent(kind supervisor.Kind) func() bool {
	return func() bool { return slices.ContainsFunc(s.events, func(e api.Event) bool { return e.Kind == kind }) }
}

// begin runs the files on the machine and returns where its end is told.
func (m *machine) begin(o foreground.Options, files ...api.CreateRequest) <-chan error {
	client := api.NewClient(m.socket, "podstead run")
	m.t.Cleanup(client.Close)
	o.Connect, o.Session = m.connect, "session"
	if o.Daemon == nil {
		o.Daemon = client
	}
	result := make(chan error, 1)
	go func() { result <- foreground.Run(m.t.Context(), o, files) }()
	return result
}

func await(t *testing.T, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(patience):
		t.Fatal("the run does not end")
		return nil
	}
}

func (m *machine) pods() []api.Pod {
	m.t.Helper()
	client := api.NewClient(m.socket, "podstead get")
	defer client.Close()
	list, err := client.Pods(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return list.Items
}

func file(name, script string) api.CreateRequest {
	text := fmt.Sprintf("restartPolicy = \"Never\"\nimageArchives = [\"i\"]\n[[containers]]\nname = \"c\"\nimage = \"i\"\n"+
		"command = [\"sh\", \"-c\", %q]\n", script)
	return api.CreateRequest{File: "/pods/" + name + ".toml", Text: text}
}

func TestRunShowsPodsToTheirEndAndTakesThemAway(t *testing.T) {
	m, s := newMachine(t, fakeruntime.Options{}), newShown()
	err := await(t, m.begin(foreground.Options{Show: s}, file("a", "echo one; exit 0"), file("b", "exit 3")))
	if !errors.Is(err, foreground.ErrFailed) || !strings.Contains(err.Error(), `pod "b" failed`) {
		t.Errorf("error %v, want that b failed", err)
	}
	if diff := cmp.Diff([]string{"a/c one"}, s.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if len(s.ended) != 2 || !s.hasEvent(supervisor.PodFailed)() || !s.hasEvent(supervisor.PodSucceeded)() {
		t.Errorf("%d pods ended, events %+v", len(s.ended), s.events)
	}
	if left := m.pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

func TestRunKeepsWhatItIsToKeep(t *testing.T) {
	m := newMachine(t, fakeruntime.Options{})
	if err := await(t, m.begin(foreground.Options{Show: newShown(), Keep: true}, file("a", "exit 0"))); err != nil {
		t.Error(err)
	}
	if left := m.pods(); len(left) != 1 || left[0].Status.Phase != lifecycle.PhaseSucceeded {
		t.Errorf("left are %+v", left)
	}
}

// TestRunLosesAndRepeatsNoLine takes the daemon away again and again while a container writes.
func TestRunLosesAndRepeatsNoLine(t *testing.T) {
	const lines = 400
	program := fakeruntime.Program{Runs: lines * 10 * time.Millisecond}
	var want []string
	for i := range lines {
		program.Output = append(program.Output, fakeruntime.Line{
			After: time.Duration(i) * 10 * time.Millisecond, Stderr: i%3 == 0, Text: fmt.Sprint(i),
		})
		want = append(want, fmt.Sprintf("a/c %d", i))
	}
	m := newMachine(t, fakeruntime.Options{
		Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) { return program, true },
	})
	s := newShown()
	result := m.begin(foreground.Options{Show: s}, file("a", "true"))
	for i := range 4 {
		s.await(t, "lines", func() bool { return len(s.lines) > i*80 })
		m.lose()
	}
	if err := await(t, result); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if len(s.notes) == 0 || !strings.Contains(s.notes[0], "the daemon was lost") {
		t.Errorf("notes %q do not tell of the loss", s.notes)
	}
}

func TestRunEndsGracefullyAndThenByForce(t *testing.T) {
	m, s := newMachine(t, fakeruntime.Options{}), newShown()
	stops := make(chan struct{})
	result := m.begin(foreground.Options{Show: s, Stops: stops}, file("a", "trap '' TERM; sleep 1000"))
	s.await(t, "the start", s.hasEvent(supervisor.ContainerStarted))
	stops <- struct{}{}
	s.await(t, "the graceful stop", s.hasEvent(supervisor.ContainerStopping))
	select {
	case err := <-result:
		t.Fatalf("the run has ended by one wish, although its container ignores that: %v", err)
	case stops <- struct{}{}:
	}
	if err := await(t, result); !errors.Is(err, foreground.ErrFailed) {
		t.Errorf("error %v", err)
	}
	if !s.hasEvent(supervisor.ContainerKilled)() {
		t.Errorf("nothing was killed: %+v", s.events)
	}
}

func TestRunGivesUpAtTheThirdWish(t *testing.T) {
	m := newMachine(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
		if c.Method == "StopContainer" || c.Method == "KillContainer" {
			<-ctx.Done() // an engine that hangs
		}
		return ctx.Err()
	}})
	s := newShown()
	stops := make(chan struct{})
	result := m.begin(foreground.Options{Show: s, Stops: stops}, file("a", "sleep 1000"))
	s.await(t, "the start", s.hasEvent(supervisor.ContainerStarted))
	for range 3 {
		stops <- struct{}{}
	}
	if err := await(t, result); !errors.Is(err, foreground.ErrGivenUp) {
		t.Errorf("error %v, want %v", err, foreground.ErrGivenUp)
	}
}

func TestRunEndsWhenItsTimeIsOver(t *testing.T) {
	m, s := newMachine(t, fakeruntime.Options{}), newShown()
	result := m.begin(foreground.Options{Show: s, Timeout: 100 * time.Millisecond}, file("a", "trap 'exit 0' TERM; sleep 1000"))
	if err := await(t, result); !errors.Is(err, foreground.ErrTimeout) {
		t.Errorf("error %v, want %v", err, foreground.ErrTimeout)
	}
	if left := m.pods(); len(left) > 0 {
		t.Errorf("%d pods are left", len(left))
	}
}

// slow is a daemon whose word of what happens comes later than all else.
type slow struct{ *api.Client }

func (s slow) Events(ctx context.Context, q *api.EventQuery) iter.Seq2[api.Event, error] {
	if q.Follow {
		return func(func(api.Event, error) bool) { <-ctx.Done() }
	}
	return s.Client.Events(ctx, q)
}

// TestRunShowsWhatBecameOfAPodThatIsGone has somebody else take the pod away.
func TestRunShowsWhatBecameOfAPodThatIsGone(t *testing.T) {
	m, s := newMachine(t, fakeruntime.Options{}), newShown()
	client := api.NewClient(m.socket, "podstead delete")
	defer client.Close()
	result := m.begin(foreground.Options{Show: s, Daemon: slow{client}}, file("a", "trap 'exit 0' TERM; echo up; sleep 1000"))
	s.await(t, "the start", func() bool { return len(s.lines) > 0 })
	if err := client.Stop(t.Context(), "a", api.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	if err := await(t, result); err != nil && !errors.Is(err, foreground.ErrFailed) {
		t.Errorf("error %v", err)
	}
	for _, kind := range []supervisor.Kind{supervisor.PodStopping, supervisor.ContainerSucceeded} {
		if !s.hasEvent(kind)() {
			t.Errorf("%s is not shown: %+v", kind, s.events)
		}
	}
}

func TestRunEndsTheOthersIfOneCannotBeMade(t *testing.T) {
	m := newMachine(t, fakeruntime.Options{})
	first := newShown()
	kept := m.begin(foreground.Options{Show: first}, file("taken", "trap 'exit 0' TERM; sleep 1000"))
	first.await(t, "the first pod", first.hasEvent(supervisor.ContainerStarted))

	client := api.NewClient(m.socket, "podstead run")
	defer client.Close()
	err := foreground.Run(t.Context(), foreground.Options{Daemon: client, Connect: m.connect, Show: newShown(), Session: "other"},
		[]api.CreateRequest{file("free", "trap 'exit 0' TERM; sleep 1000"), file("taken", "exit 0")})
	e, answered := errors.AsType[*api.Error](err)
	if !answered || e.Status != http.StatusConflict || !strings.Contains(err.Error(), "/pods/taken.toml") {
		t.Errorf("error %v, want that the name of taken.toml is taken", err)
	}
	if left := m.pods(); len(left) != 1 || left[0].Metadata.Name != "taken" {
		t.Errorf("left are %+v", left)
	}

	// The other run ends when somebody takes its pod away: it sees that the pod ended, or that it is gone.
	if err := client.Stop(t.Context(), "taken", api.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	if err := await(t, kept); err != nil && !errors.Is(err, foreground.ErrFailed) {
		t.Errorf("error %v", err)
	}
}
