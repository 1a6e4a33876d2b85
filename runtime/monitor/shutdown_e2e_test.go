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
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// slowExec returns an OCI runtime that stops (SIGSTOP) before each command in a container.
func (w *world) slowExec() string {
	w.Helper()
	real, err := exec.LookPath(w.binary)
	w.must(err)
	slow := filepath.Join(w.base, "slow")
	w.must(os.WriteFile(slow, fmt.Appendf(nil, `#!/bin/sh
case "$*" in *" exec "*) kill -STOP $$ ;; esac
exec %s "$@"
`, real), 0o755))
	return slow
}

// stoppedRun waits for an OCI runtime of a container that is stopped, and returns it.
func (w *world) stoppedRun(id string) (pid int) {
	w.Helper()
	w.eventually("the OCI runtime is stopped", func() error {
		for dir, runs := range interruptedRuns(w.dir()) {
			for _, run := range runs {
				if isStopped(run.pid, true) == nil && strings.Contains(dir, id) {
					pid = run.pid
					return nil
				}
			}
		}
		return errors.New("no such process")
	})
	return pid
}

// TestShutdownWithProbe: a probe that is still being started when its container is deleted delays the shutdown, and does not prevent it.
func TestShutdownWithProbe(t *testing.T) {
	w := newWorld(t)
	r := w.bundle(testContainer{}, "sleep 1000")
	r.Runtime.Binary = w.slowExec()
	_, err := w.client.CreateAndStart(w.ctx, r)
	w.must(err)
	failed := make(chan error, 1)
	other := (&worker{w: w}).connected()
	defer other.Close()
	go func() {
		_, err := other.Run(w.ctx, Run{Container: r.ID, Mark: "m-1-p", Process: w.processJSON("true", "m-1-p"), Timeout: patience})
		failed <- err
	}()
	stopped := w.stoppedRun(r.ID)
	w.killAndDelete(r.ID)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-time.After(100 * time.Millisecond)
		_ = unix.Kill(stopped, unix.SIGCONT)
	}()
	for {
		begun := time.Now()
		err := w.client.Shutdown(w.ctx)
		if err == nil {
			break
		}
		if took := time.Since(begun); !errdefs.IsFailedPrecondition(err) || took < shutdownTimeout {
			t.Fatalf("shutdown: %v after %v", err, took)
		}
	}
	<-ended
	if err := <-failed; err == nil {
		t.Error("the probe of a deleted container succeeded")
	}
	w.eventually("they stop", func() error {
		if left := w.roles(); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
}
