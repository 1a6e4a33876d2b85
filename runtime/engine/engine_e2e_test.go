//go:build e2e

package engine

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
)

func TestSandboxLifecycle(t *testing.T) {
	w := newEnv(t)
	e := w.start()
	defer w.stop(e)
	ctx := ctxOf(t)
	if _, err := e.LoadSandbox(ctx, "pod"); !errdefs.IsNotFound(err) {
		t.Errorf("before: %v", err)
	}
	s, err := e.StartSandbox(ctx, "pod", SandboxOptions{Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		c := w.run(s, id, "exit 0")
		w.exited(c)
		w.delete(c)
	}
	again, err := e.StartSandbox(ctx, "pod", SandboxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if again.Pid() != s.Pid() || again.Labels()["a"] != "b" || !again.CreatedAt().Equal(s.CreatedAt()) {
		t.Errorf("second start: got %+v, want the first, %+v", again, s)
	}
	waited := make(chan error, 1)
	go func() { waited <- s.Wait(ctx) }()
	w.remove(e, "pod")
	if err := <-waited; err != nil {
		t.Errorf("wait: %v", err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Errorf("wait for a removed sandbox: %v", err)
	}
	if n := w.sandboxRecords(e); n != 0 {
		t.Errorf("got %d sandbox records, want none", n)
	}
	w.remove(e, "pod") // removing it again succeeds
}

func TestFailedStartReportsCauseAndLeavesNoContainer(t *testing.T) {
	w := newEnv(t)
	e := w.start()
	defer w.stop(e)
	s := w.sandbox(e, "pod")
	defer w.remove(e, "pod")
	_, err := w.runContainer(ctxOf(t), s, "bad", "", oci.WithProcessArgs("/no/such/command"))
	if err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("got %v", err)
	}
	w.delete(w.run(s, "good", "sleep 1000"))
}

func TestDiskFullDoesNotStopContainer(t *testing.T) {
	w := newEnv(t)
	logs := filepath.Join(w.dir, "log")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", logs, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(logs, 0); err != nil {
			t.Error(err)
		}
	}()
	e := w.start()
	defer w.stop(e)
	s := w.sandbox(e, "pod")
	defer w.remove(e, "pod")
	// More than the pipes hold in addition to the log: when all lines are written, some of them did not fit into the log.
	c := w.run(s, "a", `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done
		: >/tmp/written; while [ ! -e /tmp/go ]; do usleep 10000; done; echo the end`)
	w.eventually("output", func() (string, bool) {
		_, err := os.Stat(filepath.Join(w.rootfs, "tmp/written"))
		return fmt.Sprint(err), err == nil
	})
	if err := unix.Mount("", logs, "", unix.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.rootfs, "tmp/go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.exited(c); got != 0 {
		t.Errorf("exit: got %d", got)
	}
	w.delete(c)
	lines := w.lines("a")
	if last := string(lines[len(lines)-1].Text); last != "the end" {
		t.Errorf("last line: %q", last)
	}
	notice := slices.ContainsFunc(lines, func(l crilog.Entry) bool {
		return strings.Contains(string(l.Text), "could not be written and are lost: no space left on device")
	})
	if !notice {
		t.Errorf("no notice about lost output in %d lines", len(lines))
	}
}

func TestCloseKeepsContainersRunning(t *testing.T) {
	w := newEnv(t)
	e := w.start()
	s := w.sandbox(e, "pod")
	c := w.run(s, "a", "while :; do sleep 0.1; done")
	w.stop(e)
	w.eventually("end of our goroutines", func() (string, bool) {
		buf := make([]byte, 1<<20)
		text := string(buf[:runtime.Stack(buf, true)])
		for stack := range strings.SplitSeq(text, "\n\n") {
			request := strings.Contains(stack, "engine.(*monitoredTasks).") // of the test, which waits for the container
			if strings.Contains(stack, "podstead/runtime/engine.") && !strings.Contains(stack, "testing.tRunner") && !request {
				return stack, false
			}
		}
		return "", true
	})
	e2 := w.start()
	defer w.stop(e2)
	s2, err := e2.LoadSandbox(ctxOf(t), "pod")
	if err != nil {
		t.Fatal(err)
	}
	c2 := w.load(e2, "a")
	if s2.Pid() != s.Pid() || c2.Pid() != c.Pid() {
		t.Errorf("processes: got %d and %d, want %d and %d", s2.Pid(), c2.Pid(), s.Pid(), c.Pid())
	}
	if len(e2.MissedExits()) != 0 {
		t.Errorf("missed exits: %v", e2.MissedExits())
	}
	w.delete(c2)
	w.remove(e2, "pod")
}

func TestNoOutputAndPrivateSockets(t *testing.T) {
	w := newEnv(t)
	var log strings.Builder
	o := w.options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	e, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop(e)
	w.sandbox(e, "pod")
	defer w.remove(e, "pod")
	if strings.Contains(log.String(), "level=ERROR") || strings.Contains(log.String(), "level=INFO") {
		t.Errorf("log: %s", log.String())
	}
	sockets := 0
	err = filepath.WalkDir(o.State, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type() != os.ModeSocket {
			return err
		}
		sockets++
		if st, err := d.Info(); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
		return nil
	})
	if err != nil || sockets != 3 {
		t.Errorf("sockets: got %d, want the engine's, and the two of the monitor: for the engine and for attach; %v", sockets, err)
	}
	for _, dir := range []string{o.Root, o.State, MonitorDir(o.State)} {
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, st.Mode(), err)
		}
	}
}
