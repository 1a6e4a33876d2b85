// Package runtimetest is the contract test suite for implementations of supervisor.Runtime. The fake and the real runtime pass
// the same suite, so results with the fake hold on a real host.
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

// deadline bounds the wait for conditions that take under a second on an idle host.
const deadline = time.Minute

// Runtime is supervisor.Runtime. Packages at the edges do not import package supervisor.
type Runtime interface {
	PullImage(ctx context.Context, pod *spec.Pod, a lifecycle.PullImage, progress func(lifecycle.Progress)) (lifecycle.ImagePulled, error)
	FindImage(ctx context.Context, pod *spec.Pod, a lifecycle.FindImage) (lifecycle.ImagePulled, error)
	KeepImages(ctx context.Context, pod string, images []lifecycle.Image) error
	KeptImages(ctx context.Context) (pods []string, err error)
	StartSandbox(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartSandbox) (lifecycle.SandboxStarted, error)
	WaitSandbox(ctx context.Context, uid string, pod *spec.Pod, sandbox int) (eviction string, err error)
	RemoveSandbox(ctx context.Context, uid string, sandbox int) error
	CollectPod(ctx context.Context, uid string, pod *spec.Pod) error
	RemovePod(ctx context.Context, uid string, pod *spec.Pod) error
	Inventory(ctx context.Context) ([]lifecycle.Found, error)
	StartContainer(ctx context.Context, uid string, pod *spec.Pod, a lifecycle.StartContainer) (lifecycle.ContainerStarted, error)
	WaitContainer(ctx context.Context, uid string, ref lifecycle.Ref) (lifecycle.Exit, time.Time, error)
	StopContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
	KillContainer(ctx context.Context, uid string, ref lifecycle.Ref) error
	RemoveContainer(ctx context.Context, uid string, pod *spec.Pod, ref lifecycle.Ref) error
	Exec(ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int) (int, []byte, error)
}

// Harness is a runtime that contains only an image.
type Harness struct {
	Runtime Runtime
	// Image is present. It has the commands sh, sleep, echo and true.
	Image string
	// Archives are the image archives of the pods.
	Archives []string
	// Retag makes the name of Image refer to another image, as a new archive does.
	Retag func()
	// Collect deletes the images that nothing refers to.
	Collect func(ctx context.Context) error
	// LogDir is the directory to which the runtime writes logs.
	LogDir string
	// Reopen abandons the runtime, as a killed supervisor does, and returns a new one on the same engine.
	Reopen func() Runtime
}

// Run runs the suite. Each test has its own harness and leaves nothing in it. open registers checks and cleanup with t.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(*scenario)
	}{
		{"images", testImages},
		{"an image whose name has another meaning", testRetag},
		{"images that are kept", testKeepImages},
		{"a run from its start to its removal", testLife},
		{"an init container", testInit},
		{"stop", testStop},
		{"kill", testKill},
		{"signals to exited containers", testSignalsTooLate},
		{"a program that is not there", testStartError},
		{"refused", testRefused},
		{"a new run ends the old one", testStopBeforeStart},
		{"a run is not removed while it runs", testRemoveRunning},
		{"the same start twice at once", testStartTwice},
		{"a start that is given up", testCancelledStart},
		{"removal of older runs", testRemoveOlder},
		{"removal of a sandbox", testRemoveSandbox},
		{"removal of a pod", testRemovePod},
		{"collection of a pod", testCollectPod},
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
			w := &scenario{T: t, Harness: open(t), uid: "0c5e4b1e-0000-4000-8000-000000000001"}
			test.run(w)
			w.removePod()
		})
	}
}

// scenario is one running test.
type scenario struct {
	*testing.T
	Harness
	uid string
	pod *spec.Pod
	ips []string // of the newest sandbox
}

// shell sets the pod: an app container "c" that runs a script.
func (w *scenario) shell(script string) {
	w.pod = &spec.Pod{Name: "p", ImageArchives: w.Archives, Containers: []spec.Container{w.container("c", script)}}
}

func (w *scenario) container(name, script string) spec.Container {
	return spec.Container{
		Name: name, Image: w.Image, ImagePullPolicy: spec.PullIfNotPresent, Command: []string{"sh", "-c", script},
	}
}

func (w *scenario) ctx() context.Context {
	// The test's own context is cancelled when the cleanup removes the pod.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), deadline)
	w.Cleanup(cancel)
	return ctx
}

func (w *scenario) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantFailure fails unless err is a failure of this kind and reason that contains message.
func (w *scenario) wantFailure(err error, kind lifecycle.FailureKind, reason lifecycle.Reason, message string) {
	w.Helper()
	f, ok := errors.AsType[lifecycle.Failure](err)
	if !ok || f.Kind != kind || f.Reason != reason || !strings.Contains(f.Message, message) {
		w.Errorf("got error %#v, want a failure of kind %q and reason %q that contains %q", err, kind, reason, message)
	}
}

func attempt(n int) lifecycle.Ref { return lifecycle.Ref{Container: "c", Round: 1, Attempt: n} }

func start(n int) lifecycle.StartContainer {
	return lifecycle.StartContainer{Ref: attempt(n), Sandbox: 1, Restarts: n - 1}
}

func (w *scenario) sandbox(n int) {
	w.Helper()
	got, err := w.Runtime.StartSandbox(w.ctx(), w.uid, w.pod, lifecycle.StartSandbox{Sandbox: n, Round: n})
	w.must(err)
	if got.Sandbox != n {
		w.Fatalf("started sandbox %d, want %d", got.Sandbox, n)
	}
	w.ips = got.IPs
}

// pull pulls the image of a container that may have run with an image before.
func (w *scenario) pull(name string, previous lifecycle.Image) lifecycle.ImagePulled {
	w.Helper()
	a := lifecycle.PullImage{Container: name, For: 7, Image: previous, Imported: true}
	got, err := w.Runtime.PullImage(w.ctx(), w.pod, a, func(lifecycle.Progress) {})
	w.must(err)
	if got.Container != name || got.For != 7 || got.Image.ID == "" || got.Took != 0 || !got.At.IsZero() {
		w.Errorf("pulled %+v, want an image of %s for attempt 7, and no instant", got, name)
	}
	return got
}

// start pulls and starts one run in an existing sandbox.
func (w *scenario) start(a lifecycle.StartContainer) lifecycle.ContainerStarted {
	w.Helper()
	w.pull(a.Container, lifecycle.Image{})
	got, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, a)
	w.must(err)
	if got.Ref != a.Ref || got.ID == "" || got.Image == "" || got.ImageID == "" || !got.At.IsZero() {
		w.Errorf("started %+v, want %+v with ID, image and image ID, and no instant", got, a.Ref)
	}
	return got
}

// exit waits for the exit of a run.
func (w *scenario) exit(ref lifecycle.Ref) lifecycle.Exit {
	w.Helper()
	e, at, err := w.Runtime.WaitContainer(w.ctx(), w.uid, ref)
	w.must(err)
	if since := time.Since(at); since < -time.Second || since > deadline {
		w.Errorf("run %+v exited %v ago", ref, since)
	}
	return e
}

func (w *scenario) wantExit(ref lifecycle.Ref, code int, reason lifecycle.Reason) {
	w.Helper()
	if got := w.exit(ref); got.Code != code || got.Reason != reason {
		w.Errorf("exit of %+v: got %+v, want %d %s", ref, got, code, reason)
	}
}

// wantRunning fails if the run exits within a short time.
func (w *scenario) wantRunning(ref lifecycle.Ref) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx(), 300*time.Millisecond)
	defer cancel()
	if e, _, err := w.Runtime.WaitContainer(ctx, w.uid, ref); err == nil {
		w.Fatalf("run %+v has exited: %+v", ref, e)
	}
}

// ready waits until a run has written its first line, after which its traps are set.
func (w *scenario) ready(restarts int) {
	w.Helper()
	end := time.Now().Add(deadline)
	for w.log(restarts) == "" {
		if time.Now().After(end) {
			w.Fatal("the container wrote nothing")
		}
		<-time.After(10 * time.Millisecond)
		_, _ = w.Runtime.Inventory(w.ctx()) // a fake may advance only when it is called
		ctx, cancel := context.WithTimeout(w.ctx(), time.Millisecond)
		_, _, _ = w.Runtime.WaitContainer(ctx, w.uid, attempt(restarts+1))
		cancel()
	}
}

func (w *scenario) logPath(restarts int) string {
	return filepath.Join(w.LogDir, w.pod.Name+"_"+w.uid, "c", strconv.Itoa(restarts)+".log")
}

// log returns the log of a run of "c", empty if there is none.
func (w *scenario) log(restarts int) string {
	w.Helper()
	text, err := os.ReadFile(w.logPath(restarts))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(text)
}

func (w *scenario) inventory() []lifecycle.Found {
	w.Helper()
	found, err := w.Runtime.Inventory(w.ctx())
	w.must(err)
	return found
}

func (w *scenario) removePod() {
	w.Helper()
	if w.pod == nil {
		return
	}
	w.must(w.Runtime.RemovePod(w.ctx(), w.uid, w.pod))
	if found := w.inventory(); len(found) > 0 {
		w.Errorf("remaining after the removal of the pod: %+v", found)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(w.logPath(0)))); !errors.Is(err, os.ErrNotExist) {
		w.Errorf("logs after the removal of the pod: %v", err)
	}
}
