package shim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/emptypb"
)

// fakeExec is a task service whose commands open their output for writing when they start.
type fakeExec struct {
	api.TTRPCTaskService
	err     error
	paths   map[string][]string
	written []*os.File
}

func (f *fakeExec) Exec(_ context.Context, r *api.ExecProcessRequest) (*emptypb.Empty, error) {
	f.paths[r.ExecID] = []string{r.Stdout, r.Stderr}
	return &emptypb.Empty{}, f.err
}

func (f *fakeExec) Start(ctx context.Context, r *api.StartRequest) (*api.StartResponse, error) {
	opened := make(chan error, 1)
	go func() {
		for _, path := range f.paths[r.ExecID] {
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				opened <- err
				return
			}
			f.written = append(f.written, w)
		}
		opened <- nil
	}()
	select {
	case err := <-opened:
		return &api.StartResponse{}, err
	case <-time.After(30 * time.Second):
		return nil, errors.New("it waits for somebody who reads its output")
	}
}

func (*fakeExec) Delete(context.Context, *api.DeleteRequest) (*api.DeleteResponse, error) {
	return &api.DeleteResponse{}, nil
}

// TestCommandWithoutDaemon: a command starts although the daemon, which was to read its output, is gone; and who reads it is at
// the end when the command is.
func TestCommandWithoutDaemon(t *testing.T) {
	svc, runc, _ := newTest(t)
	inner := &fakeExec{TTRPCTaskService: runc, paths: map[string][]string{}}
	svc.TTRPCTaskService = inner
	dir := t.TempDir()
	request := &api.ExecProcessRequest{ID: "a", ExecID: "probe", Stdout: filepath.Join(dir, "out"), Stderr: filepath.Join(dir, "err")}
	for _, path := range []string{request.Stdout, request.Stderr} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := svc.Exec(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Start(t.Context(), &api.StartRequest{ID: "a", ExecID: "probe"}); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(request.Stdout, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, w := range inner.written {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := unix.Read(int(r.Fd()), make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("read %d, %v, want the end: nobody may write any more", n, err)
	}
	if n := len(svc.outputs); n != 0 {
		t.Errorf("the output of %d commands is remembered", n)
	}
}

// TestCommandsForgotten: what is remembered of a command that never starts goes with its container.
func TestCommandsForgotten(t *testing.T) {
	svc, runc, _ := newTest(t)
	inner := &fakeExec{TTRPCTaskService: runc, paths: map[string][]string{}}
	svc.TTRPCTaskService = inner
	svc.containers["a"] = &container{bundle: t.TempDir(), created: closed()}
	for _, id := range []string{"a", "b"} {
		if _, err := svc.Exec(t.Context(), &api.ExecProcessRequest{ID: id, ExecID: "probe"}); err != nil {
			t.Fatal(err)
		}
	}
	inner.err = errors.New("no")
	if _, err := svc.Exec(t.Context(), &api.ExecProcessRequest{ID: "b", ExecID: "failed"}); err == nil {
		t.Fatal("no error")
	}
	if _, err := svc.Delete(t.Context(), &api.DeleteRequest{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, kept := svc.outputs[command{"b", "probe"}]; !kept || len(svc.outputs) != 1 {
		t.Errorf("remembered are %v, want those of b", svc.outputs)
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
