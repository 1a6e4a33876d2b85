package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
)

// writingRunc is a task service that starts commands whose output no daemon has opened for reading.
type writingRunc struct {
	api.TTRPCTaskService
	state api.StateResponse
}

func (w *writingRunc) State(_ context.Context, r *api.StateRequest) (*api.StateResponse, error) {
	if r.ID != "a" || r.ExecID != "probe" {
		return nil, errors.New("unknown process")
	}
	return &w.state, nil
}

func (w *writingRunc) Start(context.Context, *api.StartRequest) (*api.StartResponse, error) {
	return &api.StartResponse{Pid: 7}, errors.Join(opens(w.state.Stdout), opens(w.state.Stderr))
}

// opens reports whether a pipe has a reader.
func opens(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func TestExecStartsWithoutReaderOfOutput(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr := filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")
	for _, path := range []string{stdout, stderr} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tasks, _, _ := newTest(t)
	tasks.TTRPCTaskService = &writingRunc{state: api.StateResponse{Stdout: stdout, Stderr: stderr}}
	if _, err := tasks.Start(t.Context(), &api.StartRequest{ID: "a", ExecID: "probe"}); err != nil {
		t.Errorf("no reader during the start: %v", err)
	}
	if err := opens(stdout); !errors.Is(err, unix.ENXIO) {
		t.Errorf("the pipe is still open after the start: %v", err)
	}
	// A file that cannot be opened or is no pipe does not fail the start.
	if err := errors.Join(os.Remove(stdout), os.Remove(stderr), os.WriteFile(stderr, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := tasks.Start(t.Context(), &api.StartRequest{ID: "a", ExecID: "probe"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start without a pipe: %v", err)
	}
}
