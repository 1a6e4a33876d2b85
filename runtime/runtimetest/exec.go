package runtimetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/podstead/podstead/supervisor/lifecycle"
)

// exec runs a script in the first run of "c".
func (w *scenario) exec(timeout time.Duration, max int, script string) (int, string, error) {
	code, output, err := w.Runtime.Exec(w.ctx(), w.uid, attempt(1), []string{"sh", "-c", script}, timeout, max)
	return code, string(output), err
}

func testExec(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	for _, test := range []struct {
		script string
		max    int
		code   int
		output string
	}{
		{"true", 100, 0, ""},
		{"echo two >&2; echo one; exit 3", 100, 3, "one\ntwo\n"},
		{"echo two >&2; echo one", 6, 0, "one\ntw"},
		{"echo one", 0, 0, ""},
		{"sleep 0.2; echo late", 100, 0, "late\n"},
	} {
		for _, timeout := range []time.Duration{0, deadline} {
			code, output, err := w.exec(timeout, test.max, test.script)
			if code != test.code || output != test.output || err != nil {
				w.Errorf("%q exited with %d, %q, %v, want %d, %q", test.script, code, output, err, test.code, test.output)
			}
		}
	}
	w.wantRunning(attempt(1))
	if log := w.log(0); strings.Contains(log, "one") {
		w.Errorf("the container's log has the output of a command:\n%s", log)
	}
}

func testExecTimeout(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	if _, _, err := w.exec(100*time.Millisecond, 100, "sleep 1000"); !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	w.wantRunning(attempt(1))
}

func testCancelledExec(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	w.start(start(1))
	w.ready(0)
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithCancel(w.ctx())
		go func() {
			<-time.After(after)
			cancel()
		}()
		_, _, err := w.Runtime.Exec(ctx, w.uid, attempt(1), []string{"sleep", "1000"}, 0, 100)
		if !errors.Is(err, context.Canceled) {
			w.Errorf("cancelled after %v: got %v", after, err)
		}
	}
	w.wantRunning(attempt(1))
}

func testExecError(w *scenario) {
	w.shell("exit 1")
	_, _, err := w.exec(deadline, 100, "true")
	w.wantFailure(err, lifecycle.FailureNotFound, "", "container c")
	w.sandbox(1)
	w.start(start(1))
	w.exit(attempt(1))
	_, _, err = w.exec(deadline, 100, "true")
	w.wantFailure(err, lifecycle.FailureNotFound, "", "container c")

	w.pod.Containers[0] = w.container("c", "echo ready; sleep 1000")
	w.start(start(2))
	w.ready(1)
	_, _, err = w.Runtime.Exec(w.ctx(), w.uid, attempt(2), []string{"/no/such/program"}, deadline, 100)
	w.wantFailure(err, lifecycle.FailureRetry, "", "/no/such/program")
}

func testExecEnd(w *scenario) {
	w.shell("echo ready; sleep 1000")
	w.sandbox(1)
	// If the kill comes first, the command cannot be run. On a host under load it takes a while to start.
	var err error
	for i, head := range []time.Duration{300 * time.Millisecond, time.Second, 4 * time.Second, 15 * time.Second} {
		run := attempt(i + 1)
		w.start(start(i + 1))
		w.ready(i)
		ctx, killed := w.ctx(), make(chan error, 1)
		go func() {
			<-time.After(head)
			killed <- w.Runtime.KillContainer(ctx, w.uid, run)
		}()
		var code int
		code, _, err = w.Runtime.Exec(w.ctx(), w.uid, run, []string{"sh", "-c", "sleep 1000"}, 0, 100)
		w.must(<-killed)
		w.wantExit(run, 137, lifecycle.ReasonError)
		if err == nil {
			if code != 137 {
				w.Errorf("got %d, want 137", code)
			}
			return
		}
	}
	w.Errorf("the command did not start: %v", err)
}
