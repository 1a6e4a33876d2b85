//go:build e2e

package monitor

import (
	"testing"

	"github.com/containerd/errdefs"
	"golang.org/x/sys/unix"
)

// TestLife creates, starts, signals and deletes containers.
func TestLife(t *testing.T) {
	w := newWorld(t)
	r := w.bundle(testContainer{}, "echo out; echo err >&2; exit 7")
	created, err := w.client.Create(w.ctx, r)
	w.must(err)
	if created.Phase != Created || created.PID == 0 {
		w.Errorf("after create: %+v", created)
	}
	if _, err := w.client.Create(w.ctx, r); !errdefs.IsAlreadyExists(err) {
		w.Errorf("create again: %v", err)
	}
	started, err := w.client.Start(w.ctx, r.ID)
	w.must(err)
	if started.PID != created.PID {
		w.Errorf("after start: %+v", started)
	}
	if e := w.awaitExit(r.ID); e.Code != 7 || e.Unknown || e.OOMKilled {
		w.Errorf("exit: %+v", e)
	}
	if _, err := w.client.Start(w.ctx, r.ID); !errdefs.IsFailedPrecondition(err) {
		w.Errorf("start again: %v", err)
	}
	if got := w.delete(r.ID); got.Exit == nil || got.Exit.Code != 7 {
		w.Errorf("deleted: %+v", got)
	}
	if got := w.log(r.ID, "stdout"); len(got) != 1 || got[0] != "out" {
		w.Errorf("stdout: %q", got)
	}
	if got := w.log(r.ID, "stderr"); len(got) != 1 || got[0] != "err" {
		w.Errorf("stderr: %q", got)
	}
	if _, err := w.client.State(w.ctx, r.ID); !errdefs.IsNotFound(err) {
		w.Errorf("state after delete: %v", err)
	}

	c := w.run(testContainer{}, `trap "echo term; exit 3" TERM; echo ready; while :; do sleep 0.05; done`)
	w.eventually("it is ready", func() error { return w.lines(c.ID, 1) })
	if _, err := w.client.Delete(w.ctx, c.ID); !errdefs.IsFailedPrecondition(err) {
		w.Errorf("delete of a running container: %v", err)
	}
	if pids, err := w.client.PIDs(w.ctx, c.ID); err != nil || len(pids) == 0 || pids[0] != c.PID {
		w.Errorf("processes: %v, %v, want %d", pids, err, c.PID)
	}
	w.must(w.client.Signal(w.ctx, Signal{Container: c.ID, Signal: int(unix.SIGTERM)}))
	if e := w.awaitExit(c.ID); e.Code != 3 {
		w.Errorf("exit after SIGTERM: %+v", e)
	}
	if err := w.client.Signal(w.ctx, Signal{Container: c.ID, Signal: int(unix.SIGTERM)}); !errdefs.IsNotFound(err) {
		w.Errorf("signal after the exit: %v", err)
	}
	w.delete(c.ID)
	w.wantLog(c.ID, "ready", "term")

	killed := w.run(testContainer{}, "sleep 1000")
	w.must(w.client.Signal(w.ctx, Signal{Container: killed.ID, Signal: int(unix.SIGKILL), All: true}))
	if e := w.awaitExit(killed.ID); e.Code != 137 {
		w.Errorf("exit after SIGKILL: %+v", e)
	}
	w.delete(killed.ID)

	unstarted, err := w.client.Create(w.ctx, w.bundle(testContainer{}, "true"))
	w.must(err)
	w.delete(unstarted.ID)
	bad := w.bundle(testContainer{}, "true")
	bad.Rootfs[0].Source = "/nonexistent"
	if _, err := w.client.Create(w.ctx, bad); err == nil {
		w.Error("created a container without root file system")
	}
	missing := w.bundle(testContainer{}, "true")
	missing.Runtime.Binary = "no-such-runtime"
	if _, err := w.client.CreateAndStart(w.ctx, missing); err == nil {
		w.Error("created a container without OCI runtime")
	}
	w.removeBundles(bad, missing)
	w.wantNothing()
}
