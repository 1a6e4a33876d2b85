package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/server"
	"github.com/podstead/podstead/runtime/fakeruntime"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/state"
	"github.com/podstead/podstead/test/fakefiles"
)

// testHost is a host whose daemon runs in this process, with an engine and a pods directory in memory.
type testHost struct {
	dir, socket, hostRoot string
	stdin                 string
	files                 *fakefiles.Set
	pods                  *supervisor.Supervisor
	engine                *fakeruntime.Runtime
	restarts              restarts
	options               server.Options
	flags                 []string // before each command line
	closeServer           func()
}

func newTestHost(t *testing.T, v api.Version) *testHost {
	t.Helper()
	return newHostOf(t, v, fakeruntime.Options{})
}

// newHostOf is newTestHost with an engine that has options.
func newHostOf(t *testing.T, v api.Version, o fakeruntime.Options) *testHost {
	t.Helper()
	h := newHostWith(t, v, o)
	t.Setenv("PODSTEAD_SOCKET", h.socket)
	t.Setenv("PODSTEAD_CONFIG", h.write(t, "podstead.toml", ""))
	return h
}

// newParallelHost is newHostOf for a test that waits, which it makes parallel. Commands get the socket by a flag: the environment is that
// of all tests.
func newParallelHost(t *testing.T, v api.Version, o fakeruntime.Options) *testHost {
	t.Helper()
	t.Parallel()
	h := newHostWith(t, v, o)
	h.flags = []string{"--socket", h.socket, "--config", h.write(t, "podstead.toml", "")}
	return h
}

func newHostWith(t *testing.T, v api.Version, o fakeruntime.Options) *testHost {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // the path of a socket in it must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &testHost{dir: dir, socket: filepath.Join(dir, "s")}
	store, err := state.NewDir(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	clock, err := supervisor.SystemClock()
	if err != nil {
		t.Fatal(err)
	}
	o.LogDir = filepath.Join(dir, "logs")
	h.engine = fakeruntime.New(o)
	h.pods = supervisor.New(t.Context(), supervisor.Options{Runtime: h.engine, Store: store, Clock: clock, MinReady: new(time.Duration)})
	if err := h.pods.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.files = fakefiles.New("/etc/podstead/pods.d", h.pods)
	v.Instance = "one"
	h.options = server.Options{
		Supervisor: h.pods, Sessions: h.engine, Attacher: h.engine, Files: h.files, Restarter: &h.restarts, LogDir: o.LogDir, Version: v,
	}
	h.serve(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, p := range h.pods.Pods() {
			if err := h.pods.Stop(ctx, p.Pod.Name, supervisor.StopOptions{Grace: new(time.Duration), Delete: true}); err != nil &&
				!errors.Is(err, supervisor.ErrNotFound) {
				t.Error(err)
			}
		}
		h.closeServer()
		if err := h.pods.Leave(ctx); err != nil {
			t.Error(err)
		}
	})
	return h
}

// argumentsOf returns the arguments of a command line, in which $DIR is the directory of the host.
func (h *testHost) argumentsOf(line string) []string {
	return slices.Concat(h.flags, strings.Fields(strings.ReplaceAll(line, "$DIR", h.dir)))
}

// serve starts a server on the socket.
func (h *testHost) serve(t *testing.T) {
	t.Helper()
	srv := server.New(t.Context(), h.options)
	l, err := server.Listen(t.Context(), h.socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	h.closeServer = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, err := range []error{srv.Close(ctx), <-served} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// write writes a file and returns its path.
func (h *testHost) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// output is the result of a command.
type output struct {
	code           int
	stdout, stderr string
}

// run executes a command line, in which $DIR is the directory of the host.
func (h *testHost) run(t *testing.T, line string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{in: strings.NewReader(h.stdin), out: &stdout, err: &stderr, hostRoot: h.hostRoot}
	code := a.run(t.Context(), h.argumentsOf(line))
	plain := func(b *bytes.Buffer) string { return strings.ReplaceAll(b.String(), h.dir, "$DIR") }
	return output{code, plain(&stdout), plain(&stderr)}
}

// want executes a command line that must succeed, and compares its output.
func (h *testHost) want(t *testing.T, line, stdout string) output {
	t.Helper()
	got := h.run(t, line)
	if got.code != 0 || got.stdout != stdout {
		t.Errorf("podstead %s: exit code %d, stdout:\n%swant:\n%sstderr:\n%s", line, got.code, got.stdout, stdout, got.stderr)
	}
	return got
}

// fails executes a command line that must fail with an exit code and a message.
func (h *testHost) fails(t *testing.T, line string, code int, message string) output {
	t.Helper()
	got := h.run(t, line)
	if got.code != code || !strings.Contains(got.stderr, message) {
		t.Errorf("podstead %s: exit code %d, want %d; stderr:\n%swant %q", line, got.code, code, got.stderr, message)
	}
	return got
}

// await executes a command line until its standard output matches a pattern.
func (h *testHost) await(t *testing.T, line, pattern string) {
	t.Helper()
	tick, timeout := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		got := h.run(t, line)
		if regexp.MustCompile(pattern).MatchString(got.stdout) {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("podstead %s does not print %s: stdout:\n%sstderr:\n%s", line, pattern, got.stdout, got.stderr)
		}
	}
}

// script returns a pod file with a container that runs a script.
func script(more, script string) string {
	return fmt.Sprintf("%s\n[[containers]]\nname = \"app\"\nimage = \"busybox\"\ncommand = [\"sh\", \"-c\", %q]\n", more, script)
}

// runs is the script of a container that runs until its pod stops.
const runs = "trap 'exit 0' TERM; sleep 1000 & wait"

// restarts records calls of Start and Restart.
type restarts struct {
	mu    sync.Mutex
	calls []string
}

func (r *restarts) Start(_ context.Context, name, _, _ string) error { return r.add("start " + name) }

func (r *restarts) Restart(_ context.Context, name, _, container, _ string) error {
	return r.add(strings.TrimSpace("restart " + name + " " + container))
}

func (r *restarts) add(call string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return nil
}

// all returns the calls, sorted.
func (r *restarts) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := slices.Clone(r.calls)
	r.calls = nil
	slices.Sort(calls)
	return calls
}
