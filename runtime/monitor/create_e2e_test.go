//go:build e2e

package monitor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/crilog"
)

// wrapRuntime writes an OCI runtime that runs a script before the real one is executed for an action, and returns its path.
func (w *world) wrapRuntime(action, script string) string {
	w.Helper()
	real, err := exec.LookPath(w.binary)
	w.must(err)
	w.next++
	path := filepath.Join(w.base, fmt.Sprintf("wrapped-%d", w.next))
	text := fmt.Appendf(nil, "#!/bin/sh\ncase \"$*\" in *\" %s \"*)\n%s\n;; esac\nexec %s \"$@\"\n", action, script, real)
	w.must(os.WriteFile(path, text, 0o755))
	return path
}

// TestRuntimeErrors has OCI runtimes that cannot create a container. What they write to standard error, which may contain secrets, is in
// the error and not in the log.
func TestRuntimeErrors(t *testing.T) {
	w := newWorld(t)
	// failed is a runtime that writes a text. Then it waits, so that a monitor that writes the log does so before the container is removed.
	failed := func(write string) error {
		r := w.bundle(testContainer{}, "true")
		wait := fmt.Sprintf("i=0; while [ ! -e %s ] && [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done", w.logPath(r.ID))
		r.Runtime.Binary = w.wrapRuntime("create", write+"\n"+wait+"\nexit 3")
		_, err := w.client.Create(w.ctx, r)
		if class, ok := errors.AsType[*Error](err); !ok || class.Class != ClassRuntime {
			t.Errorf("create with a runtime that fails: %v", err)
		}
		if lines := w.log(r.ID, ""); len(lines) > 0 {
			t.Errorf("the log of a container that was not created has %.200q", lines)
		}
		w.removeBundles(r)
		return err
	}
	if err := failed("echo broken >&2"); err == nil || !strings.Contains(err.Error(), "OCI runtime create failed: broken") {
		t.Errorf("error of a runtime without a log: %v", err)
	}
	// More than a FIFO has room for. A part may be cut in a secret, which is not found and replaced in errors then.
	err := failed("head -c 300000 /dev/zero | tr '\\0' x >&2")
	if err == nil || strings.Contains(err.Error(), "xxx") || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("error of a runtime that writes much: %v", err)
	}
	r := w.bundle(testContainer{}, "true")
	path := filepath.Join(r.Bundle, "config.json")
	text, err := os.ReadFile(path)
	w.must(err)
	w.must(os.WriteFile(path, []byte(strings.Replace(string(text), "/bin/sh", "/bin/missing", 1)), 0o600))
	if _, err := w.client.Create(w.ctx, r); err == nil || !strings.Contains(err.Error(), "/bin/missing") {
		t.Errorf("error of a missing program: %v", err)
	}
	if lines := w.log(r.ID, ""); len(lines) > 0 {
		t.Errorf("the log of a container that was not created has %q", lines)
	}
	w.removeBundles(r)
	w.wantNothing()
}

// TestRuntimeWarnings kills the monitor while an OCI runtime creates a container, after it has written to standard error: the container
// is created, and its log has the text once, before its own output.
func TestRuntimeWarnings(t *testing.T) {
	w := newWorld(t)
	wrote, goOn := filepath.Join(w.base, "wrote"), filepath.Join(w.base, "go-on")
	r := w.bundle(testContainer{}, "echo line")
	r.Runtime.Binary = w.wrapRuntime("create", fmt.Sprintf("echo warning >&2; : > %s; while [ ! -e %s ]; do sleep 0.05; done", wrote, goOn))
	created := make(chan error, 1)
	go func() {
		k := &worker{w: w}
		_, err := k.connected().Create(w.ctx, r)
		created <- err
	}()
	w.eventually("the OCI runtime has written", func() error {
		_, err := os.Stat(wrote)
		return err
	})
	for range 2 {
		_, monitor := w.pids()
		w.kill(monitor)
		w.connect()
	}
	if err := <-created; !errors.Is(err, ErrClosed) {
		t.Errorf("create: %v", err)
	}
	w.must(os.WriteFile(goOn, nil, 0o600))
	w.eventually("the container is created", func() error {
		c, err := w.client.State(w.ctx, r.ID)
		if err == nil && c.Phase != Created {
			err = fmt.Errorf("it is %s", c.Phase)
		}
		return err
	})
	_, err := w.client.Start(w.ctx, r.ID)
	w.must(err)
	w.awaitExit(r.ID)
	w.delete(r.ID)
	w.wantLog(r.ID, "warning", "line")
	if got := w.log(r.ID, crilog.Stderr); len(got) != 1 {
		t.Errorf("standard error: %q", got)
	}
	w.wantNothing()
}
