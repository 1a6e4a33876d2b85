package shim

import (
	"context"
	"os"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/emptypb"
)

// command names a command in a container: an exec.
type command struct{ container, exec string }

// Exec prepares a command, and remembers where its output goes until it is started.
func (t *tasks) Exec(ctx context.Context, r *api.ExecProcessRequest) (*emptypb.Empty, error) {
	resp, err := t.TTRPCTaskService.Exec(ctx, r)
	if err == nil {
		t.mu.Lock()
		t.outputs[command{r.ID, r.ExecID}] = []string{r.Stdout, r.Stderr}
		t.mu.Unlock()
	}
	return resp, err
}

// hold opens the output of a command that is about to start, and returns what closes it when it has.
//
// The daemon reads from those FIFOs, and may be killed while the command starts. Nobody would read from them then, and to
// open one for writing would wait for somebody who does: for 30 s, in which containerd's side of the shim does not even list
// the container's processes, so that the next daemon could not begin.
func (t *tasks) hold(c command) (release func()) {
	t.mu.Lock()
	paths := t.outputs[c]
	delete(t.outputs, c)
	t.mu.Unlock()
	var held []*os.File
	for _, path := range paths {
		// Open for both, a FIFO waits for nobody. One that cannot be opened, the start tells of.
		if f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); path != "" && err == nil {
			held = append(held, f)
		}
	}
	return func() {
		for _, f := range held {
			_ = f.Close()
		}
	}
}
