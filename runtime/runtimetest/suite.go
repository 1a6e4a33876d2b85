package runtimetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

func testLife(w *scenario) {
	w.shell("echo one; echo two >&2; sleep 0.2; exit 3")
	w.sandbox(1)
	w.sandbox(1)
	first := w.start(start(1))
	if diff := cmp.Diff(first, w.start(start(1))); diff != "" {
		w.Errorf("the second start found another run (-first +second):\n%s", diff)
	}
	one, at, err := w.Runtime.WaitContainer(w.ctx(), w.uid, attempt(1))
	w.must(err)
	if one.Code != 3 || one.Reason != lifecycle.ReasonError {
		w.Errorf("exit: got %+v, want 3 Error", one)
	}
	again, atAgain, err := w.Runtime.WaitContainer(w.ctx(), w.uid, attempt(1))
	w.must(err)
	if again != one || !atAgain.Equal(at) {
		w.Errorf("the second wait returned %+v at %v, the first %+v at %v", again, atAgain, one, at)
	}
	if diff := cmp.Diff(first, w.start(start(1))); diff != "" {
		w.Errorf("a start of an exited run found another run (-first +last):\n%s", diff)
	}
	if log := w.log(0); !strings.Contains(log, " stdout F one\n") || !strings.Contains(log, " stderr F two\n") {
		w.Errorf("log:\n%s", log)
	}
	for range 2 {
		w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(1)))
	}
	if log := w.log(0); log != "" {
		w.Errorf("log after the removal:\n%s", log)
	}
	w.wantExit(attempt(1), 137, lifecycle.ReasonStatusUnknown)
	w.start(start(2))
	w.wantExit(attempt(2), 3, lifecycle.ReasonError)
}

func testInit(w *scenario) {
	w.shell("true")
	w.pod.InitContainers = []spec.Container{w.container("i", "exit 7")}
	w.sandbox(1)
	ref := lifecycle.Ref{Container: "i", Round: 1, Attempt: 1}
	w.start(lifecycle.StartContainer{Ref: ref, Sandbox: 1})
	w.wantExit(ref, 7, lifecycle.ReasonError)
	w.start(start(1))
	w.wantExit(attempt(1), 0, lifecycle.ReasonCompleted)
}

func testStop(w *scenario) {
	w.shell("trap 'exit 4' TERM; echo ready; sleep 1000 & wait")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	for range 2 {
		w.must(w.Runtime.StopContainer(w.ctx(), w.uid, w.pod, attempt(1)))
	}
	w.wantExit(attempt(1), 4, lifecycle.ReasonError)
}

func testKill(w *scenario) {
	w.shell("trap '' TERM; echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	w.must(w.Runtime.StopContainer(w.ctx(), w.uid, w.pod, attempt(1)))
	w.wantRunning(attempt(1))
	for range 2 {
		w.must(w.Runtime.KillContainer(w.ctx(), w.uid, attempt(1)))
	}
	w.wantExit(attempt(1), 137, lifecycle.ReasonError)
}

func testSignalsTooLate(w *scenario) {
	w.shell("exit 5")
	w.wantFailure(w.Runtime.StopContainer(w.ctx(), w.uid, w.pod, attempt(1)), lifecycle.FailureNotFound, "", "not found")
	w.wantFailure(w.Runtime.KillContainer(w.ctx(), w.uid, attempt(1)), lifecycle.FailureNotFound, "", "not found")
	w.sandbox(1)
	w.start(start(1))
	w.wantExit(attempt(1), 5, lifecycle.ReasonError)
	w.must(w.Runtime.StopContainer(w.ctx(), w.uid, w.pod, attempt(1)))
	w.must(w.Runtime.KillContainer(w.ctx(), w.uid, attempt(1)))
	w.wantExit(attempt(1), 5, lifecycle.ReasonError)
}

func testStartError(w *scenario) {
	w.shell("")
	w.pod.Containers[0].Command = []string{"/no/such/program"}
	w.sandbox(1)
	for range 2 {
		_, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, start(1))
		w.wantFailure(err, lifecycle.FailureRetry, lifecycle.ReasonStartError, "/no/such/program")
	}
	if runs := w.inventory()[0].Runs; len(runs) > 0 {
		w.Errorf("remaining after a failed start: %+v", runs)
	}
	w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(1)))
}

func testRefused(w *scenario) {
	w.shell("true")
	_, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, start(1))
	w.wantFailure(err, lifecycle.FailureNotCreated, lifecycle.ReasonCreateContainerError, "sandbox")
	w.sandbox(1)
	w.pod.Containers[0].Image = "localhost/podstead/none:1"
	_, err = w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, start(1))
	w.wantFailure(err, lifecycle.FailureNotCreated, lifecycle.ReasonCreateContainerError, "localhost/podstead/none:1")
	unknown := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "x", Round: 1, Attempt: 1}, Sandbox: 1}
	_, err = w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, unknown)
	w.wantFailure(err, lifecycle.FailureNotCreated, lifecycle.ReasonCreateContainerError, "x")
}

func testStopBeforeStart(w *scenario) {
	w.shell("trap '' TERM; echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	w.start(start(2))
	w.wantExit(attempt(1), 137, lifecycle.ReasonError)
	w.wantRunning(attempt(2))
}

func testRemoveRunning(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	if err := w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(1)); err == nil {
		w.Error("a running container was removed")
	}
	w.wantRunning(attempt(1))
}

func testStartTwice(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	var got [2]lifecycle.ContainerStarted
	var errs [2]error
	var group sync.WaitGroup
	for i := range got {
		ctx := w.ctx()
		group.Go(func() { got[i], errs[i] = w.Runtime.StartContainer(ctx, w.uid, w.pod, start(1)) })
	}
	group.Wait()
	w.must(errs[0])
	w.must(errs[1])
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		w.Errorf("concurrent starts of one run (-one +other):\n%s", diff)
	}
	w.ready(0)
	if runs := w.inventory()[0].Runs; len(runs) != 1 {
		w.Errorf("runs: %+v, want one", runs)
	}
	if n := strings.Count(w.log(0), "ready"); n != 1 {
		w.Errorf("the process started %d times", n)
	}
}

// testCancelledStart cancels a start at many of its steps. The next start still results in one process.
func testCancelledStart(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	for n := 1; n <= 12; n++ {
		ctx, cancel := context.WithTimeout(w.ctx(), time.Duration(n-1)*5*time.Millisecond)
		_, err := w.Runtime.StartContainer(ctx, w.uid, w.pod, start(n))
		cancel()
		if runs := w.inventory()[0].Runs; err != nil && len(runs) > 0 {
			w.Errorf("after a start that returned %v: runs %+v, want none", err, runs)
		}
		w.start(start(n))
		w.ready(n - 1)
		if lines := strings.Count(w.log(n-1), "ready"); lines != 1 {
			w.Errorf("after a start that returned %v, the log has %d lines", err, lines)
		}
		if runs := w.inventory()[0].Runs; len(runs) != 1 {
			w.Errorf("after a start that returned %v: runs %+v", err, runs)
		}
		w.must(w.Runtime.KillContainer(w.ctx(), w.uid, attempt(n)))
		w.wantExit(attempt(n), 137, lifecycle.ReasonError)
		w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(n)))
	}
}

// testRemoveOlder tests that a removal removes the leftovers of an earlier one, and no later run.
func testRemoveOlder(w *scenario) {
	w.shell("echo there")
	w.pod.InitContainers = []spec.Container{w.container("i", "true")}
	w.sandbox(1)
	other := lifecycle.Ref{Container: "i", Round: 1, Attempt: 1}
	w.start(lifecycle.StartContainer{Ref: other, Sandbox: 1})
	w.wantExit(other, 0, lifecycle.ReasonCompleted)
	for n := 1; n <= 3; n++ {
		w.start(start(n))
		w.wantExit(attempt(n), 0, lifecycle.ReasonCompleted)
	}
	w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(2)))
	var left []lifecycle.Ref
	for _, run := range w.inventory()[0].Runs {
		left = append(left, run.Ref)
	}
	if len(left) != 2 || !slices.Contains(left, other) || !slices.Contains(left, attempt(3)) {
		w.Errorf("remaining after the removal: %v", left)
	}
	if w.log(0)+w.log(1) != "" || w.log(2) == "" {
		w.Errorf("the logs are %q, %q and %q", w.log(0), w.log(1), w.log(2))
	}
}

func testRemoveSandbox(w *scenario) {
	w.shell("trap '' TERM; echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	lost := make(chan error, 1)
	ctx := w.ctx()
	go func() { lost <- w.waitSandbox(ctx, 1) }()
	for range 2 {
		w.must(w.Runtime.RemoveSandbox(w.ctx(), w.uid, 1))
	}
	if err := <-lost; err != nil {
		w.Errorf("wait for the sandbox: %v", err)
	}
	w.must(w.waitSandbox(w.ctx(), 1))
	w.must(w.waitSandbox(w.ctx(), 99))
	w.wantExit(attempt(1), 137, lifecycle.ReasonError)
	found := w.inventory()
	if len(found) != 1 || found[0].Ready || len(found[0].Runs) != 1 {
		w.Errorf("inventory: %+v, want a pod with one dead run", found)
	}
	w.must(w.Runtime.RemoveContainer(w.ctx(), w.uid, w.pod, attempt(1)))
}

func testRemovePod(w *scenario) {
	w.shell("trap '' TERM; echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	w.removePod()
	w.removePod()
	w.wantExit(attempt(1), 137, lifecycle.ReasonStatusUnknown)
}

// testCollectPod checks that the newest log is kept, and that the pod can be started again.
func testCollectPod(w *scenario) {
	w.shell("echo ready")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	w.wantExit(attempt(1), 0, lifecycle.ReasonCompleted)
	w.must(w.Runtime.RemoveSandbox(w.ctx(), w.uid, 1))
	for range 2 {
		w.must(w.Runtime.CollectPod(w.ctx(), w.uid, w.pod))
		w.ready(0)
		if found := w.inventory(); len(found) > 0 {
			w.Errorf("inventory: %+v, want nothing", found)
		}
	}
	w.sandbox(2)
	again := start(2)
	again.Sandbox, again.Restarts = 2, 1
	w.start(again)
	w.ready(1)
	w.wantExit(again.Ref, 0, lifecycle.ReasonCompleted)
}

func testNextSandbox(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.must(w.Runtime.RemoveSandbox(w.ctx(), w.uid, 1))
	w.sandbox(2)
	second := lifecycle.StartContainer{Ref: lifecycle.Ref{Container: "c", Round: 2, Attempt: 2}, Sandbox: 2, Restarts: 1}
	w.start(second)
	// A late retry of the removal does not affect the next sandbox.
	w.must(w.Runtime.RemoveSandbox(w.ctx(), w.uid, 1))
	w.wantRunning(second.Ref)
	_, err := w.Runtime.StartContainer(w.ctx(), w.uid, w.pod, start(3))
	w.wantFailure(err, lifecycle.FailureNotCreated, lifecycle.ReasonCreateContainerError, "sandbox") // the first sandbox
}

func testInventory(w *scenario) {
	w.shell("echo ready; sleep 1000")
	if found := w.inventory(); len(found) > 0 {
		w.Fatalf("inventory of an empty runtime: %+v", found)
	}
	w.sandbox(1)
	one := w.start(start(1))
	w.must(w.Runtime.KillContainer(w.ctx(), w.uid, attempt(1)))
	w.exit(attempt(1))
	two := w.start(start(2))
	run := func(a lifecycle.StartContainer, e lifecycle.ContainerStarted) lifecycle.Run {
		a.ImageID = e.ImageID
		return lifecycle.Run{StartContainer: a, ID: e.ID, Image: e.Image, Architecture: e.Architecture}
	}
	want := []lifecycle.Found{{
		UID: w.uid, Pod: w.pod, Sandbox: 1, Ready: true, IPs: w.ips, Runs: []lifecycle.Run{run(start(1), one), run(start(2), two)},
	}}
	if diff := cmp.Diff(want, w.inventory()); diff != "" {
		w.Errorf("inventory (-want +got):\n%s", diff)
	}
}

func testReopen(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.pod.Containers = append(w.pod.Containers, w.container("d", "sleep 0.5; exit 6"), w.container("e", "exit 8"))
	w.sandbox(1)
	first := w.start(start(1))
	d := lifecycle.Ref{Container: "d", Round: 1, Attempt: 1}
	w.start(lifecycle.StartContainer{Ref: d, Sandbox: 1})
	e := lifecycle.Ref{Container: "e", Round: 1, Attempt: 1}
	w.start(lifecycle.StartContainer{Ref: e, Sandbox: 1})
	w.wantExit(e, 8, lifecycle.ReasonError)
	before := w.inventory()
	w.Runtime = w.Reopen()
	if diff := cmp.Diff(before, w.inventory()); diff != "" {
		w.Errorf("inventory after the restart (-before +after):\n%s", diff)
	}
	w.sandbox(1)
	if diff := cmp.Diff(first, w.start(start(1))); diff != "" {
		w.Errorf("the run after the restart (-before +after):\n%s", diff)
	}
	w.wantExit(d, 6, lifecycle.ReasonError)
	w.wantExit(e, 8, lifecycle.ReasonError)
	w.wantRunning(attempt(1))
	if n := strings.Count(w.log(0), "ready"); n != 1 {
		w.Errorf("the process started %d times", n)
	}
	w.must(w.Runtime.KillContainer(w.ctx(), w.uid, attempt(1)))
	w.wantExit(attempt(1), 137, lifecycle.ReasonError)
}

func testCancelledWait(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	ctx, cancel := context.WithCancel(w.ctx())
	ended := make(chan error, 2)
	go func() { _, _, err := w.Runtime.WaitContainer(ctx, w.uid, attempt(1)); ended <- err }()
	go func() { ended <- w.waitSandbox(ctx, 1) }()
	<-time.After(50 * time.Millisecond) // long enough for both to wait, usually
	cancel()
	for range 2 {
		if err := <-ended; err == nil {
			w.Error("a cancelled wait returned an exit")
		}
	}
	w.wantRunning(attempt(1))
}

func testTwoPods(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	other := &scenario{T: w.T, Harness: w.Harness, uid: "0c5e4b1e-0000-4000-8000-000000000002"}
	other.shell("exit 9")
	other.sandbox(1)
	other.start(start(1))
	other.wantExit(attempt(1), 9, lifecycle.ReasonError)
	other.must(other.Runtime.RemovePod(other.ctx(), other.uid, other.pod))
	w.wantRunning(attempt(1))
	if found := w.inventory(); len(found) != 1 || found[0].UID != w.uid || !found[0].Ready {
		w.Errorf("inventory after the removal of another pod: %+v", found)
	}
}

// waitSandbox waits for the exit of a sandbox whose pod is not evicted.
func (w *scenario) waitSandbox(ctx context.Context, sandbox int) error {
	eviction, err := w.Runtime.WaitSandbox(ctx, w.uid, w.pod, sandbox)
	if eviction != "" {
		return errors.New(eviction)
	}
	return err
}
