package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podstead/podstead/internal/daemon/bundleundo"
)

// interrupted writes the record of a bundle that has created the pod web, and returns its lock.
func (h *host) interrupted(t *testing.T) *bundleundo.Lock {
	t.Helper()
	h.write(t, "web")
	path := filepath.Join(h.config.Pods.Dir, "web.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.config.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := bundleundo.Acquire(h.config.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	r := &bundleundo.Record{Pods: []bundleundo.Pod{{Name: "web", File: path, Digest: bundleundo.Digest(text)}}}
	if err := l.Begin(r); err != nil {
		t.Fatal(err)
	}
	return l
}

// awaitUndone waits until there is no record.
func (h *host) awaitUndone(t *testing.T) {
	t.Helper()
	tick, timeout := time.NewTicker(20*time.Millisecond), time.After(testTimeout)
	defer tick.Stop()
	for {
		if _, err := os.Lstat(bundleundo.Path(h.config.StateDir)); errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("the bundle was not undone")
		}
	}
}

// TestInterruptedBundle: while a client holds the lock, its pods run. When it is killed, they are deleted, also if the pod was the only
// one and the daemon has restarted meanwhile.
func TestInterruptedBundle(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			l := h.interrupted(t)
			result := h.run(t.Context(), t, false, "1ms")
			h.awaitPods(t, "web")
			if restart {
				h.stopDaemon(t, result)
			}
			if err := l.Close(); err != nil { // as the kernel does
				t.Fatal(err)
			}
			if restart {
				result = h.run(t.Context(), t, false, "1ms")
			}
			h.awaitPods(t)
			h.awaitUndone(t)
			if _, err := os.Lstat(filepath.Join(h.config.Pods.Dir, "web.toml")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the pod file remains: %v", err)
			}
			h.stopDaemon(t, result)
		})
	}
}

// TestInterruptedBundleLater: a daemon that was idle notices a record.
func TestInterruptedBundleLater(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write(t, "db")
	result := h.run(t.Context(), t, false, "1ms")
	h.awaitPods(t, "db")
	l := h.interrupted(t)
	h.awaitPods(t, "db", "web")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h.awaitUndone(t)
	h.awaitPods(t, "db")
	h.stopDaemon(t, result)
}

// TestInterruptedBundleAtStart: a daemon restores the files before it reads them, so that a pod that was new never runs.
func TestInterruptedBundleAtStart(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := h.interrupted(t).Close(); err != nil {
		t.Fatal(err)
	}
	h.write(t, "db")
	result := h.run(t.Context(), t, false, "1ms")
	h.awaitUndone(t)
	h.awaitPods(t, "db")
	h.stopDaemon(t, result)
}

// stopDaemon stops the daemon. Containers keep running.
func (h *host) stopDaemon(t *testing.T, result <-chan error) {
	t.Helper()
	if err := h.client.StopDaemon(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, result)
}
