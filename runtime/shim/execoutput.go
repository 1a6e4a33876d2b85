package shim

import (
	"context"
	"io/fs"
	"os"

	api "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
)

// holdOutput keeps the pipes of a command's output open until release is called, so that its start finds a reader even if the
// daemon, which is to read them, is killed at that moment. containerd's service would wait half a minute for another reader, and
// whoever asks for the container's processes or for the end of any of them would wait with it: the next daemon cannot start meanwhile.
//
// What cannot be opened is left to the start, which says what it lacks.
func (t *tasks) holdOutput(ctx context.Context, r *api.StartRequest) (release func()) {
	var held []*os.File
	release = func() {
		for _, f := range held {
			_ = f.Close() // nothing was written to it here
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
		// Both directions: with one, this would wait itself, or fail.
		if f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
			held = append(held, f)
		}
	}
	return release
}
