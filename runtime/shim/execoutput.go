package shim

import (
	"context"
	"io/fs"
	"os"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
)

// holdOutput keeps the output FIFOs of an exec open until release is called, so that its start finds a reader even if the daemon,
// which is the reader, is killed at that moment. Otherwise containerd's service waits half a minute for a reader while it holds
// the container's lock. Every request for the container's processes waits too, and the next daemon cannot start.
//
// A FIFO that cannot be opened is ignored here. The start reports the error.
func (t *tasks) holdOutput(ctx context.Context, r *api.StartRequest) (release func()) {
	var held []*os.File
	release = func() {
		for _, f := range held {
			_ = f.Close() // opened to hold it, never written
		}
	}
	state, err := t.State(ctx, &api.StateRequest{ID: r.ID, ExecID: r.ExecID})
	if err != nil {
		return release
	}
	for _, path := range []string{state.Stdout, state.Stderr} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Type() != fs.ModeNamedPipe {
			continue
		}
		// Opening for reading or writing alone would block or fail without a peer.
		if f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
			held = append(held, f)
		}
	}
	return release
}
