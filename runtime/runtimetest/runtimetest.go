// Package runtimetest is what every runtime of the supervisor must do, as tests. The fake and the real one run the same
// suite, so that what is proved with the fake holds on a real machine.
package runtimetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// deadline is for what comes within a second on an idle machine.
const deadline = time.Minute

// Runtime is supervisor.Runtime, whose package the edges do not import.
type Runtime interface {
	PullImage(ctx context.Context, pod *spec.Pod, container string, progress func(done, total int64)) (bool, error)
	FindImage(ctx context.Context, pod *spec.Pod, container string) (bool, error)
	StartSandbox(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox) (lifecycle.SandboxStarted, error)
	WaitSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (overuse string, err error)
	RemoveSandbox(ctx context.Context, uid string, sandbox int) error
	RemovePod(ctx context.Context, uid string, pod *spec.Pod) error
	Inventory(ctx context.Context) ([]lifecycle.Found, error)
	StartContainer(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (lifecycle.ContainerStarted, error)
	WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (lifecycle.Exit, time.Time, error)
	StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
	KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error
	RemoveContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
	Exec(ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int) (int, []byte, error)
}

// Harness is a runtime that holds nothing but an image.
type Harness struct {
	Runtime Runtime
	// Image is there. Its commands are those of a small system: sh, sleep, echo, true.
	Image string
	// LogDir is where the runtime writes logs.
	LogDir string
	// Reopen gives up the runtime, as a supervisor that is killed does, and returns another one on the same engine.
	Reopen func() Runtime
}

// Run runs the suite. Each test gets a harness of its own, and leaves nothing in it; open registers with t what is to
// be checked and closed at its end.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(*world)
	}{
		{"images", testImages},
		{"a run from its start to its removal", testLife},
		{"an init container", testInit},
		{"stop", testStop},
		{"kill", testKill},
		{"signals to what is over", testSignalsTooLate},
		{"a program that is not there", testStartError},
		{"refused", testRefused},
		{"a new run ends the old one", testStopBeforeStart},
		{"a run is not removed while it runs", testRemoveRunning},
		{"the same start twice at once", testStartTwice},
		{"a start that is given up", testCancelledStart},
		{"removal of older runs", testRemoveOlder},
		{"removal of a sandbox", testRemoveSandbox},
		{"removal of a pod", testRemovePod},
		{"the next sandbox", testNextSandbox},
		{"inventory", testInventory},
		{"a restart of the supervisor", testReopen},
		{"a wait that is given up", testCancelledWait},
		{"pods do not meet", testTwoPods},
		{"a command in a container", testExec},
		{"a command that takes too long", testExecTimeout},
		{"a command that is given up", testCancelledExec},
		{"a command that cannot be run", testExecError},
		{"a command whose container ends", testExecEnd},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := &world{T: t, Harness: open(t), uid: "0c5e4b1e-0000-4000-8000-000000000001"}
			test.run(w)
			w.removePod()
		})
	}
}

// world is one test on its way.
type world struct {
	*testing.T
	Harness
	uid string
	pod *spec.Pod
	ips []string // the newest sandbox's
}

// shell makes the pod: an app container "c" that runs a script.
func (w *world) shell(script string) {
	w.pod = &spec.Pod{Name: "p", Containers: []spec.Container{w.container("c", script)}}
}

func (w *world) container(name, script string) spec.Container {
	return spec.Container{
		Name: name, Image: w.Image, ImagePullPolicy: spec.PullIfNotPresent, Command: []string{"sh", "-c", script},
	}
}

func (w *world) ctx() context.Context {
	// The end of the test removes the pod, when the test's own context is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), deadline)
	w.Cleanup(cancel)
	return ctx
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantFailure fails unless the error is a failure of this kind and reason, whose message says this.
func (w *world) wantFailure(err error, kind lifecycle.FailureKind, reason lifecycle.Reason, message string) {
	w.Helper()
	f, ok := errors.AsType[lifecycle.Failure](err)
	if !ok || f.Kind != kind || f.Reason != reason || !strings.Contains(f.Message, message) {
		w.Errorf("got error %#v, want a failure of kind %q and reason %q that says %q", err, kind, reason, message)
	}
}

func attempt(n int) lifecycle.Ref { return lifecycle.Ref{Container: "c", Round: 1, Attempt: n} }

func start(n int) lifecycle.StartContainer {
	return lifecycle.StartContainer{Ref: attempt(n), Sandbox: 1, Restarts: n - 1}
}

func (w *world) sandbox(n int) {
	w.Helper()
	got, err := w.Runtime.StartSandbox(w.ctx(), w.uid, w.pod, lifecycle.StartSandbox{Sandbox: n, Round: n})
	w.must(err)
	if got.Sandbox != n {
		w.Fatalf("started sandbox %d, want %d", got.Sandbox, n)
	}
	w.ips = got.IPs
}

// start pulls and starts one run, in a sandbox that is there.
func (w *world) start(a lifecycle.StartContainer) lifecycle.ContainerStarted {
	w.Helper()
	_, err := w.Runtime.PullImage(w.ctx(), w.pod, a.Container, func(_, _ int64) {})
	w.must(err)
	got, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, a)
	w.must(err)
	if got.Ref != a.Ref || got.ID == "" || got.Image == "" || got.ImageID == "" || !got.At.IsZero() {
		w.Errorf("started %+v, want %+v with ID, image and image ID, and no instant", got, a.Ref)
	}
	return got
}

// exit waits for the end of a run.
func (w *world) exit(ref lifecycle.Ref) lifecycle.Exit {
	w.Helper()
	e, at, err := w.Runtime.WaitContainer(w.ctx(), w.uid, ref)
	w.must(err)
	if since := time.Since(at); since < -time.Second || since > deadline {
		w.Errorf("run %+v ended %v ago", ref, since)
	}
	return e
}

func (w *world) wantExit(ref lifecycle.Ref, code int, reason lifecycle.Reason) {
	w.Helper()
	if got := w.exit(ref); got.Code != code || got.Reason != reason {
		w.Errorf("exit of %+v: got %+v, want %d %s", ref, got, code, reason)
	}
}

// wantRunning fails if the run ends within a moment.
func (w *world) wantRunning(ref lifecycle.Ref) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx(), 300*time.Millisecond)
	defer cancel()
	if e, _, err := w.Runtime.WaitContainer(ctx, w.uid, ref); err == nil {
		w.Fatalf("run %+v has ended: %+v", ref, e)
	}
}

// ready waits until a run has written its first line: its traps are set then.
func (w *world) ready(restarts int) {
	w.Helper()
	end := time.Now().Add(deadline)
	for w.log(restarts) == "" {
		if time.Now().After(end) {
			w.Fatal("the container wrote nothing")
		}
		<-time.After(10 * time.Millisecond)
		_, _ = w.Runtime.Inventory(w.ctx()) // a fake may do its work only when it is asked for something
		ctx, cancel := context.WithTimeout(w.ctx(), time.Millisecond)
		_, _, _ = w.Runtime.WaitContainer(ctx, w.uid, attempt(restarts+1))
		cancel()
	}
}

func (w *world) logPath(restarts int) string {
	return filepath.Join(w.LogDir, w.pod.Name+"_"+w.uid, "c", strconv.Itoa(restarts)+".log")
}

// log is what is in the log of a run of "c"; nothing if there is none.
func (w *world) log(restarts int) string {
	w.Helper()
	text, err := os.ReadFile(w.logPath(restarts))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(text)
}

func (w *world) inventory() []lifecycle.Found {
	w.Helper()
	found, err := w.Runtime.Inventory(w.ctx())
	w.must(err)
	return found
}

func (w *world) removePod() {
	w.Helper()
	if w.pod == nil {
		return
	}
	w.must(w.Runtime.RemovePod(w.ctx(), w.uid, w.pod))
	if found := w.inventory(); len(found) > 0 {
		w.Errorf("left after the removal of the pod: %+v", found)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(w.logPath(0)))); !errors.Is(err, os.ErrNotExist) {
		w.Errorf("logs after the removal of the pod: %v", err)
	}
}
