package exit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/podstead/podstead/runtime/engine"
)

// reportTimeout bounds how long an exit is not reported because it is being recorded. On a disk that hangs, the status of the pod would
// otherwise show a container as running that has exited.
const reportTimeout = 2 * time.Second

// recording is an exit on its way to the record of its container.
type recording struct {
	exit    Exit
	message message
	written chan struct{} // closed when the exit was recorded, or this failed
	done    chan struct{} // closed when the task was deleted too, or this failed
}

// recorded is the recording of an exit that is recorded.
func recorded(e Exit, m message) *recording {
	done := make(chan struct{})
	close(done)
	return &recording{exit: e, message: m, written: done, done: done}
}

// reportable is closed when the exit can be reported: when it was recorded, if the log was complete and no process was left at the exit,
// else when the task was deleted.
func (r *recording) reportable() <-chan struct{} {
	if r.message.prompt {
		return r.written
	}
	return r.done
}

// within waits until the exit can be reported, and reports whether that was so in this time.
func (r *recording) within(limit time.Duration) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case <-r.reportable():
		return true
	case <-timeout.C:
		return false
	}
}

// recordings are the exits that are being recorded, at most one per container. The zero value has none.
type recordings struct {
	mu      sync.Mutex
	running map[string]*recording // by container ID
}

// of returns the recording of a container; nil: there is none.
func (r *recordings) of(id string) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[id]
}

// start calls write in the background, which calls its argument when the exit is recorded. If the exit of the container is being recorded
// already, it returns that recording instead.
func (r *recordings) start(id string, e Exit, m message, write func(written func())) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running := r.running[id]; running != nil {
		return running
	}
	if r.running == nil {
		r.running = map[string]*recording{}
	}
	started := &recording{exit: e, message: m, written: make(chan struct{}), done: make(chan struct{})}
	r.running[id] = started
	go func() {
		written := sync.OnceFunc(func() { close(started.written) })
		write(written)
		written()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, id)
		close(started.done)
	}()
	return started
}

// Settle waits until no exit of the container is being recorded. Until then its task must not be deleted by others: only the shim has the
// exit.
func (r *Recorder) Settle(ctx context.Context, id string) error {
	running := r.recordings.of(id)
	if running == nil {
		return nil
	}
	select {
	case <-running.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("record exit: %w", context.Cause(ctx))
	}
}

// record stores an exit and deletes the task, in this order: a daemon that is killed in between finds the exit. An exit is valid even if
// this fails, for example on a full disk. Until the task is deleted, the shim reports the exit again.
func (r *Recorder) record(ctx context.Context, id string, e Exit, written func()) {
	err := r.writeAndDelete(ctx, id, e, written)
	if err != nil && !errdefs.IsNotFound(err) {
		r.log.WarnContext(ctx, "cannot record the exit of a container", slog.String("container", id), slog.Any("error", err))
	}
}

func (r *Recorder) writeAndDelete(ctx context.Context, id string, e Exit, written func()) error {
	writing, stopWriting := engine.Detached(ctx, engine.RecordExitTimeout)
	defer stopWriting()
	c, err := r.client.LoadContainer(writing, id)
	if err != nil {
		return err
	}
	if err := Write(writing, c, e); err != nil {
		return err
	}
	written()
	// The write may have taken longer than its timeout: the engine's database waits for the disk.
	deleting, stopDeleting := engine.Detached(ctx, engine.RecordExitTimeout)
	defer stopDeleting()
	return DeleteTask(deleting, c)
}
