package shim

import (
	"path/filepath"
	"testing"

	api "github.com/containerd/containerd/api/runtime/task/v3"

	"github.com/podstead/podstead/internal/crilog"
)

// TestWaitCompletesLog checks that a wait for a container that has exited ends when its output is in the log, and that its deletion closes
// the log once more without harm.
func TestWaitCompletesLog(t *testing.T) {
	svc, runc, _ := newTest(t)
	runc.output = "some line\n"
	path := filepath.Join(t.TempDir(), "app/0.log")
	svc.mustCreate(t, &api.CreateTaskRequest{ID: "a", Bundle: t.TempDir(), Stdout: Output{Log: path}.URI().String()})
	runc.exitAll(t)
	if _, err := svc.Wait(t.Context(), &api.WaitRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for e, err := range crilog.Read(t.Context(), path, crilog.ReadOptions{}) {
		if err != nil || string(e.Text) != "some line" {
			t.Fatalf("got %q, %v", e.Text, err)
		}
		lines++
	}
	if lines != 3 {
		t.Errorf("%d lines, want 3", lines)
	}
	if _, err := svc.Delete(t.Context(), &api.DeleteRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
}
