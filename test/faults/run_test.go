//go:build e2e || soak

package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// deadline is for operations that take seconds on an idle host.
const deadline = 2 * time.Minute

// fixture is a rig that checks for leftovers at the end of its test.
type fixture struct{ *rig.Fixture }

const busybox = "localhost/podstead/busybox:1"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{rig.NewFixture(t, deadline, "busybox")}
	f.CheckLeftovers(deadline/4, "daemon", "stop") // the tests have stopped their pods
	return f
}

// container returns a container that runs a script.
func container(name, script string) string {
	return fmt.Sprintf("\n[[containers]]\nname = %q\nimage = %q\ncommand = [\"sh\", \"-c\", %q]\n", name, busybox, script)
}

// get returns a pod from podstead get, which starts a daemon if none runs.
func (f *fixture) get(name string) api.Pod {
	f.Helper()
	var p api.Pod
	f.Check(json.Unmarshal([]byte(f.MustRun("get", name, "-o", "json")), &p))
	f.Saw(p.Metadata.UID)
	return p
}

// item is a line of the output of `podstead run -o json`.
type item struct {
	Type      string            `json:"type"`
	Seq       uint64            `json:"seq"`
	Pod       string            `json:"pod"`
	UID       string            `json:"uid"`
	Kind      api.EventKind     `json:"kind"`
	Container string            `json:"container"`
	Attempt   int               `json:"attempt"`
	Line      string            `json:"line"`
	Message   string            `json:"message"`
	Fields    map[string]string `json:"fields"`
	Time      time.Time         `json:"time"`
	Object    api.Pod           `json:"object"`
}

// run is a running `podstead run`.
type run struct {
	f   *fixture
	cmd *exec.Cmd

	mu     sync.Mutex
	items  []item
	stderr bytes.Buffer
	done   chan struct{} // closed when the command has exited
	err    error         // set before done is closed
}

// start starts podstead run and reads its output.
func (f *fixture) start(args ...string) *run {
	f.Helper()
	r := &run{f: f, cmd: f.Command(context.Background(), append([]string{"run", "-o", "json"}, args...)...), done: make(chan struct{})}
	r.cmd.Stderr = lockedWriter{&r.mu, &r.stderr}
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	f.Check(err)
	go func() {
		defer close(r.done)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			r.add(line)
		}
		r.err = r.cmd.Wait()
	}()
	f.Cleanup(func() { // before the rig is removed
		_ = r.cmd.Process.Kill()
		<-r.done
		if f.Failed() {
			f.Log(r)
		}
	})
	return r
}

func (r *run) add(line []byte) {
	var i item
	if err := json.Unmarshal(line, &i); err != nil {
		i = item{Type: "wrong", Line: fmt.Sprintf("%s: %v", line, err)}
	}
	if i.Type == "event" {
		r.f.Saw(i.UID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, i)
}

func (r *run) all() []item {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.items)
}

// lines returns the output of a container.
func (r *run) lines(container string) []string {
	var lines []string
	for _, i := range r.all() {
		if i.Type == "output" && i.Container == container {
			lines = append(lines, i.Line)
		}
	}
	return lines
}

// events returns the events of a kind.
func (r *run) events(kind api.EventKind) []item {
	var events []item
	for _, i := range r.all() {
		if i.Kind == kind {
			events = append(events, i)
		}
	}
	return events
}

// event waits for the first event of a kind.
func (r *run) event(kind api.EventKind) item {
	r.f.Helper()
	return r.nth(kind, 0)
}

// nth waits for the event of a kind that follows n others.
func (r *run) nth(kind api.EventKind, n int) item {
	r.f.Helper()
	r.until(fmt.Sprintf("event %s after %d others", kind, n), func() bool { return len(r.events(kind)) > n })
	return r.events(kind)[n]
}

// line waits until a container has written n lines, and returns the last.
func (r *run) line(container string, n int) string {
	r.f.Helper()
	r.until(fmt.Sprintf("%d lines of %s", n, container), func() bool { return len(r.lines(container)) >= n })
	return r.lines(container)[n-1]
}

// until waits for a condition while the command runs.
func (r *run) until(what string, holds func() bool) {
	r.f.Helper()
	r.f.Await(func() error {
		if holds() || r.exited() {
			return nil
		}
		return errors.New("waiting for " + what)
	})
	if !holds() {
		r.f.Fatalf("podstead run exited before %s: %v", what, r.err)
	}
}

// exited reports whether the command has exited.
func (r *run) exited() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// exitCode waits for the exit of the command and returns its exit code.
func (r *run) exitCode() int {
	r.f.Helper()
	select {
	case <-r.done:
	case <-r.f.Ctx().Done():
		r.f.Fatal("podstead run does not exit")
	}
	return r.cmd.ProcessState.ExitCode()
}

// interrupt sends SIGINT, like Ctrl-C.
func (r *run) interrupt() {
	r.f.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		r.f.Fatal(err)
	}
}

func (r *run) errors() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stderr.String()
}

// String returns the timeline of the run.
func (r *run) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "podstead %v\n%s", r.cmd.Args[1:], r.errors())
	for _, i := range r.all() {
		fmt.Fprintf(&b, "%s %s %s/%s.%d %s%s %s\n", i.Time.Format("05.000"), i.Type, i.Pod, i.Container, i.Attempt, i.Line, i.Message,
			i.Object.Status.Phase)
	}
	return b.String()
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
