package follow

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
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
	"github.com/podstead/podstead/supervisor/state"
)

// testTimeout is far longer than anything takes here, even on a loaded host.
const testTimeout = time.Minute

// host runs one daemon at a time. The engine and the state of pods outlive each daemon.
type host struct {
	dir, socket string
	fake        *fakeruntime.Runtime
	t           *testing.T

	mu         sync.Mutex
	stopDaemon func() // nil: no daemon is running
}

func newHost(t *testing.T, o fakeruntime.Options) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o.LogDir = filepath.Join(dir, "logs")
	h := &host{dir: dir, socket: filepath.Join(dir, "s"), fake: fakeruntime.New(o), t: t}
	if err := h.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	return h
}

// connect starts a daemon if none is running. The daemon outlives ctx.
func (h *host) connect(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopDaemon != nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	store, err := state.NewDir(filepath.Join(h.dir, "pods"))
	if err != nil {
		return err
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		return err
	}
	s := supervisor.New(ctx, supervisor.Options{Runtime: h.fake, Store: store, Clock: clock})
	if err := s.Recover(ctx); err != nil {
		return err
	}
	srv := server.New(ctx, server.Options{
		Supervisor: s, LogDir: filepath.Join(h.dir, "logs"), Version: api.Version{Instance: fmt.Sprint(time.Now().UnixNano())},
	})
	l, err := server.Listen(ctx, h.socket)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	h.stopDaemon = func() {
		ctx, cancel := context.WithTimeout(ctx, testTimeout)
		defer cancel()
		if err := errors.Join(srv.Close(ctx), <-served, s.Leave(ctx)); err != nil {
			h.t.Errorf("stop daemon: %v", err)
		}
	}
	return nil
}

// stop stops the daemon.
func (h *host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopDaemon != nil {
		h.stopDaemon()
		h.stopDaemon = nil
	}
}

// recorder is a printer that records its calls.
type recorder struct {
	mu         sync.Mutex
	lines      []string
	events     []api.Event
	terminated []api.Pod
	notices    []string
	hints      []string
	changed    chan struct{} // receives a value after each call
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{}, 1)} }

func (s *recorder) add(record func()) {
	s.mu.Lock()
	record()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *recorder) Pods([]api.Pod) {}

func (s *recorder) Line(pod string, l api.Line) {
	s.add(func() { s.lines = append(s.lines, pod+"/"+l.Container+" "+l.Line) })
}

func (s *recorder) Event(e api.Event) { s.add(func() { s.events = append(s.events, e) }) }

func (s *recorder) Terminated(p api.Pod) {
	s.add(func() { s.terminated = append(s.terminated, p) })
}

func (s *recorder) Notice(message string) {
	s.add(func() { s.notices = append(s.notices, message) })
}

func (s *recorder) Hint(message string) {
	s.add(func() { s.hints = append(s.hints, message) })
}

// await waits until cond is met.
func (s *recorder) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	timeout := time.After(testTimeout)
	for {
		s.mu.Lock()
		met := cond()
		s.mu.Unlock()
		if met {
			return
		}
		select {
		case <-s.changed:
		case <-timeout:
			t.Fatalf("no %s within %v; lines %q, notices %q, events %+v", what, testTimeout, s.lines, s.notices, s.events)
		}
	}
}

func (s *recorder) hasEvent(kind api.EventKind) func() bool {
	return func() bool { return slices.ContainsFunc(s.events, func(e api.Event) bool { return e.Kind == kind }) }
}

// start starts a run of the files. The channel gets its result.
func (h *host) start(o Options, files ...api.CreateRequest) <-chan error {
	c := client.New(h.socket, "podstead run")
	h.t.Cleanup(c.Close)
	o.Session = "session"
	if o.Connect == nil {
		o.Connect = h.connect
	}
	if o.Daemon == nil {
		o.Daemon = c
	}
	result := make(chan error, 1)
	go func() { result <- Run(h.t.Context(), o, files) }()
	return result
}

func await(t *testing.T, result <-chan error) error {
	t.Helper()
	select {
	case err := <-result:
		return err
	case <-time.After(testTimeout):
		t.Fatal("the run does not return")
		return nil
	}
}

func (h *host) pods() []api.Pod {
	h.t.Helper()
	c := client.New(h.socket, "podstead get")
	defer c.Close()
	list, err := c.Pods(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return list.Items
}

func file(name, script string) api.CreateRequest {
	text := fmt.Sprintf("restartPolicy = \"Never\"\nimageArchives = [\"i\"]\n[[containers]]\nname = \"c\"\nimage = \"i\"\n"+
		"command = [\"sh\", \"-c\", %q]\n", script)
	return api.CreateRequest{File: "/pods/" + name + ".toml", Text: text}
}

func TestRunPrintsAndDeletesPods(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	err := await(t, h.start(Options{Printer: s}, file("a", "echo one; exit 0"), file("b", "exit 3")))
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), `pod "b" failed`) {
		t.Errorf("error %v, want %q", err, `pod "b" failed`)
	}
	if diff := cmp.Diff([]string{"a/c one"}, s.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if len(s.terminated) != 2 || !s.hasEvent(api.EventPodFailed)() || !s.hasEvent(api.EventPodSucceeded)() {
		t.Errorf("%d pods terminated, events %+v", len(s.terminated), s.events)
	}
	if pods := h.pods(); len(pods) > 0 {
		t.Errorf("%d pods still exist", len(pods))
	}
}

func TestRunWithKeep(t *testing.T) {
	t.Parallel()
	h := newHost(t, fakeruntime.Options{})
	if err := await(t, h.start(Options{Printer: newRecorder(), Keep: true}, file("a", "exit 0"))); err != nil {
		t.Error(err)
	}
	if pods := h.pods(); len(pods) != 1 || pods[0].Status.Phase != api.PhaseSucceeded {
		t.Errorf("pods %+v, want one that succeeded", pods)
	}
}

// TestRunPrintsEachLineOnce stops the daemon several times while a container writes.
func TestRunPrintsEachLineOnce(t *testing.T) {
	t.Parallel()
	const lines = 400
	program := fakeruntime.Program{Runs: lines * 10 * time.Millisecond}
	var want []string
	for i := range lines {
		program.Output = append(program.Output, fakeruntime.Line{
			After: time.Duration(i) * 10 * time.Millisecond, Stderr: i%3 == 0, Text: fmt.Sprint(i),
		})
		want = append(want, fmt.Sprintf("a/c %d", i))
	}
	h := newHost(t, fakeruntime.Options{
		Program: func(*spec.Pod, lifecycle.StartContainer) (fakeruntime.Program, bool) { return program, true },
	})
	s := newRecorder()
	result := h.start(Options{Printer: s}, file("a", "true"))
	for i := range 4 {
		s.await(t, "lines", func() bool { return len(s.lines) > i*80 })
		h.stop()
	}
	if err := await(t, result); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if len(s.notices) == 0 || !strings.Contains(s.notices[0], "connection to the daemon lost") {
		t.Errorf("notices %q, want that the connection was lost", s.notices)
	}
}

func TestSecondStopKillsPods(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	stops := make(chan struct{})
	result := h.start(Options{Printer: s, Stops: stops}, file("a", "trap '' TERM; sleep 1000"))
	s.await(t, "the start", s.hasEvent(api.EventContainerStarted))
	stops <- struct{}{}
	s.await(t, "the graceful stop", s.hasEvent(api.EventContainerStopping))
	select {
	case err := <-result:
		t.Fatalf("the run returned after one stop, although the container ignores SIGTERM: %v", err)
	case stops <- struct{}{}:
	}
	if err := await(t, result); !errors.Is(err, ErrStopped) {
		t.Errorf("error %v", err)
	}
	if !s.hasEvent(api.EventContainerKilled)() {
		t.Errorf("no container was killed: %+v", s.events)
	}
}

func TestThirdStopInterruptsRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
		if c.Method == "StopContainer" || c.Method == "KillContainer" {
			<-ctx.Done() // an engine that hangs
		}
		return ctx.Err()
	}})
	s := newRecorder()
	stops := make(chan struct{})
	result := h.start(Options{Printer: s, Stops: stops}, file("a", "sleep 1000"))
	s.await(t, "the start", s.hasEvent(api.EventContainerStarted))
	for range 3 {
		stops <- struct{}{}
	}
	if err := await(t, result); !errors.Is(err, errInterrupted) {
		t.Errorf("error %v, want %v", err, errInterrupted)
	}
}

func TestRunTimeout(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	result := h.start(Options{Printer: s, Timeout: 100 * time.Millisecond}, file("a", "trap 'exit 0' TERM; sleep 1000"))
	if err := await(t, result); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v, want %v", err, ErrTimeout)
	}
	if pods := h.pods(); len(pods) > 0 {
		t.Errorf("%d pods still exist", len(pods))
	}
}

// TestRunTimeoutWhilePulling checks the timeout while a registry does not respond, and while a pull backs off.
func TestRunTimeoutWhilePulling(t *testing.T) {
	t.Parallel()
	for name, pull := range map[string]func(context.Context) error{
		"hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"fails": func(context.Context) error {
			return lifecycle.Failure{Reason: lifecycle.ReasonErrImagePull, Message: "not found"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newHost(t, fakeruntime.Options{Before: func(ctx context.Context, c fakeruntime.Call) error {
				if c.Method == "PullImage" {
					return pull(ctx)
				}
				return nil
			}}), newRecorder()
			result := h.start(Options{Printer: s, Timeout: 100 * time.Millisecond}, file("a", "sleep 1000"))
			if err := await(t, result); !errors.Is(err, ErrTimeout) {
				t.Errorf("error %v, want %v", err, ErrTimeout)
			}
			if pods := h.pods(); len(pods) > 0 {
				t.Errorf("%d pods still exist", len(pods))
			}
		})
	}
}

// slowEvents is a client that delivers no events while it follows.
type slowEvents struct{ *client.Client }

func (s slowEvents) Events(ctx context.Context, q *client.EventQuery) iter.Seq2[api.Event, error] {
	if q.Follow {
		return func(func(api.Event, error) bool) { <-ctx.Done() }
	}
	return s.Client.Events(ctx, q)
}

func TestRunPrintsEventsOfDeletedPod(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	c := client.New(h.socket, "podstead delete")
	defer c.Close()
	result := h.start(Options{Printer: s, Daemon: slowEvents{c}}, file("a", "trap 'exit 0' TERM; echo up; sleep 1000"))
	s.await(t, "the start", func() bool { return len(s.lines) > 0 })
	if err := c.Stop(t.Context(), "a", client.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	if err := await(t, result); err != nil {
		t.Errorf("error %v, want nil: the pod has succeeded", err)
	}
	for _, kind := range []api.EventKind{api.EventPodStopping, api.EventContainerSucceeded, api.EventPodSucceeded} {
		if !s.hasEvent(kind)() {
			t.Errorf("no event %s: %+v", kind, s.events)
		}
	}
}

func TestRunStopsOtherPodsIfOneCannotBeCreated(t *testing.T) {
	t.Parallel()
	h := newHost(t, fakeruntime.Options{})
	first := newRecorder()
	kept := h.start(Options{Printer: first}, file("taken", "trap 'exit 0' TERM; sleep 1000"))
	first.await(t, "the first pod", first.hasEvent(api.EventContainerStarted))

	c := client.New(h.socket, "podstead run")
	defer c.Close()
	err := Run(t.Context(), Options{Daemon: c, Connect: h.connect, Printer: newRecorder(), Session: "other"},
		[]api.CreateRequest{file("free", "trap 'exit 0' TERM; sleep 1000"), file("taken", "exit 0")})
	e, ok := errors.AsType[*api.Error](err)
	if !ok || e.Status != http.StatusConflict || !strings.Contains(err.Error(), "/pods/taken.toml") {
		t.Errorf("error %v, want a conflict for taken.toml", err)
	}
	if pods := h.pods(); len(pods) != 1 || pods[0].Metadata.Name != "taken" {
		t.Errorf("pods %+v, want taken only", pods)
	}

	// The other run returns when its pod is deleted.
	if err := c.Stop(t.Context(), "taken", client.StopOptions{Delete: true}); err != nil {
		t.Fatal(err)
	}
	if err := await(t, kept); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestStopOfFailingPodIsNoFailure(t *testing.T) {
	t.Parallel()
	h, s := newHost(t, fakeruntime.Options{}), newRecorder()
	stops := make(chan struct{})
	result := h.start(Options{Printer: s, Stops: stops}, file("a", "trap 'exit 7' TERM; sleep 1000"))
	s.await(t, "the start", s.hasEvent(api.EventContainerStarted))
	stops <- struct{}{}
	if err := await(t, result); !errors.Is(err, ErrStopped) || errors.Is(err, ErrFailed) {
		t.Errorf("error %v, want %v", err, ErrStopped)
	}
}

// TestDone: the end of what the run is for stops the pods once. It is no stop by the user, and does not follow one.
func TestDone(t *testing.T) {
	t.Parallel()
	for name, user := range map[string]bool{"alone": false, "after a stop": true} {
		t.Run(name, func(t *testing.T) {
			h, s := newHost(t, fakeruntime.Options{}), newRecorder()
			stops, done := make(chan struct{}), make(chan struct{})
			result := h.start(Options{Printer: s, Stops: stops, Done: done}, file("a", "trap '' TERM; sleep 1000"))
			s.await(t, "the start", s.hasEvent(api.EventContainerStarted))
			if user {
				stops <- struct{}{}
				s.await(t, "the graceful stop", s.hasEvent(api.EventContainerStopping))
			}
			close(done)
			s.await(t, "the graceful stop", s.hasEvent(api.EventContainerStopping))
			if !user {
				stops <- struct{}{} // the first one
			}
			select {
			case err := <-result:
				t.Fatalf("the run returned, although the container ignores SIGTERM: %v", err)
			case stops <- struct{}{}:
			}
			if err := await(t, result); !errors.Is(err, ErrStopped) {
				t.Errorf("error %v", err)
			}
		})
	}
}
