//go:build e2e

package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// TestListAfterKill kills the monitor while commands are being started in a container, by OCI runtimes that hang. The next monitor lists
// the container, with the command that was started before, and answers requests for it.
func TestListAfterKill(t *testing.T) {
	w := newWorld(t)
	hang := filepath.Join(w.base, "hang")
	r := w.bundle(testContainer{}, "sleep 1000")
	r.Runtime.Binary = w.wrapRuntime("exec", fmt.Sprintf("if [ -e %s ]; then kill -STOP $$; fi", hang))
	c, err := w.client.CreateAndStart(w.ctx, r)
	w.must(err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	w.must(err)
	defer null.Close()
	streams := &[3]*os.File{null, null, null}
	started, err := w.client.Exec(w.ctx, Exec{Container: c.ID, ID: "started", Process: w.processJSON("sleep 1000", "")}, streams)
	w.must(err)
	short, err := w.client.Exec(w.ctx, Exec{Container: c.ID, ID: "short", Process: w.processJSON("exit 3", "")}, streams)
	w.must(err)
	w.eventually("a command exits", func() error {
		s, err := w.client.State(w.ctx, c.ID)
		for _, p := range s.Processes {
			if p.ID == "short" && p.Exit == nil {
				return errors.New("it runs")
			}
		}
		return err
	})

	w.must(os.WriteFile(hang, nil, 0o600))
	failed := make(chan error, 2)
	go func() {
		x := Exec{Container: c.ID, ID: "hangs", Process: w.processJSON("sleep 1000", "")}
		_, err := (&worker{w: w}).connected().Exec(w.ctx, x, streams)
		failed <- err
	}()
	go func() {
		mark := "m-1-hangs"
		run := Run{Container: c.ID, Mark: mark, Process: w.processJSON("sleep 1000", mark), Timeout: patience}
		_, err := (&worker{w: w}).connected().Run(w.ctx, run)
		failed <- err
	}()
	var stopped []int
	w.eventually("two OCI runtimes are stopped", func() error {
		stopped = nil
		for dir, runs := range interruptedRuns(w.dir()) {
			for _, run := range runs {
				if isStopped(run.pid, true) == nil && strings.Contains(dir, c.ID) {
					stopped = append(stopped, run.pid)
				}
			}
		}
		if len(stopped) != 2 {
			return fmt.Errorf("processes %v", stopped)
		}
		return nil
	})
	_, monitor := w.pids()
	w.kill(monitor)
	w.connect()
	list, _, _, err := w.client.Subscribe(w.ctx)
	w.must(err)
	if len(list) != 1 || list[0].ID != c.ID || list[0].Phase != Running || list[0].PID != c.PID {
		t.Fatalf("list: %+v", list)
	}
	found := map[int]bool{}
	for _, p := range list[0].Processes {
		found[p.PID] = p.Exit != nil
	}
	if len(found) != 2 || found[started.PID] || !found[short.PID] {
		t.Errorf("commands: %+v", list[0].Processes)
	}
	w.must(w.client.Signal(w.ctx, Signal{Container: c.ID, Exec: "started", Signal: int(unix.SIGKILL)}))
	e := w.event(func(e Event) bool { return e.Kind == EventExited && e.Exec == "started" })
	if e.Exit.Code != 137 || e.Exit.Unknown {
		t.Errorf("exit of a command: %+v", *e.Exit)
	}

	// Requests for a command that was being started are answered when that is settled.
	deleted := make(chan error, 1)
	go func() {
		_, err := (&worker{w: w}).connected().DeleteExec(w.ctx, c.ID, "hangs")
		deleted <- err
	}()
	w.must(os.Remove(hang))
	for _, pid := range stopped {
		select {
		case err := <-deleted:
			t.Errorf("a command that is being started is deleted: %v", err)
		default:
		}
		w.kill(pid)
	}
	if err := <-deleted; !errdefs.IsNotFound(err) {
		t.Errorf("delete a command that was not started: %v", err)
	}
	for range 2 {
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("command of the monitor before: %v", err)
		}
	}
	w.must(w.probe(c.ID, patience))
	for _, id := range []string{"started", "short"} {
		_, err := w.client.DeleteExec(w.ctx, c.ID, id)
		w.must(err)
	}
	w.onlyFirst(c)
	w.killAndDelete(c.ID)
	w.wantNothing()
}
