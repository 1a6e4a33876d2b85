package state

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// writeTimeout is the time after which a write is reported as hanging.
const writeTimeout = 2 * time.Second

// ErrTimeout reports that a write takes longer than expected. It continues.
var ErrTimeout = fmt.Errorf("no answer from the disk within %v", writeTimeout)

// Write is a state on its way to the disk.
type Write struct {
	pod  Pod
	done chan struct{} // closed when this state or a newer one was written, or writing failed
}

// Wait returns when the write has finished, successfully or not, and after the timeout or the end of ctx at the latest. It returns at
// once for nil: there is nothing to wait for.
func (w *Write) Wait(ctx context.Context, timeout time.Duration) {
	if w == nil {
		return
	}
	select {
	case <-w.done:
	case <-time.After(timeout):
	case <-ctx.Done():
	}
}

// Writer saves the state and the checkpoints of one pod in the background, so that a slow or hanging disk never blocks the pod's loop.
// It saves one state at a time, and only the newest. Checkpoints are saved concurrently with states. Put and Checkpoint are safe for
// concurrent use.
type Writer struct {
	store       Store
	checkpoints Checkpoints // nil: checkpoints are discarded
	uid         string

	mu                       sync.Mutex
	pending                  *Write      // not started yet
	checkpoint               *Checkpoint // not started yet; nil: nothing new
	stateDue, checkpointsDue chan struct{}
}

// NewWriter returns a writer for the pod with the UID. Checkpoints may be nil.
func NewWriter(store Store, checkpoints Checkpoints, uid string) *Writer {
	return &Writer{
		store: store, checkpoints: checkpoints, uid: uid,
		stateDue: make(chan struct{}, 1), checkpointsDue: make(chan struct{}, 1),
	}
}

// Checkpoint schedules a checkpoint. It does not report errors: without the checkpoint probes start again, and a stop signal may be
// sent twice.
func (w *Writer) Checkpoint(c Checkpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkpoint = &c
	wake(w.checkpointsDue)
}

// Put schedules a state. It replaces a state that is still pending.
func (w *Writer) Put(p Pod) *Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending == nil {
		w.pending = &Write{done: make(chan struct{})}
	}
	w.pending.pod = p
	wake(w.stateDue)
	return w.pending
}

func wake(due chan<- struct{}) {
	select {
	case due <- struct{}{}:
	default:
	}
}

// Run saves until ctx ends, and then what is still pending. It calls report with the result of every write of a state, in order. During a
// write that hangs it calls report with [ErrTimeout].
func (w *Writer) Run(ctx context.Context, report func(error)) {
	var both sync.WaitGroup
	both.Go(func() { each(ctx, w.stateDue, func() { w.save(report) }) })
	both.Go(func() { each(ctx, w.checkpointsDue, w.saveCheckpoint) })
	both.Wait()
}

// each calls do whenever it is due, and once more when ctx has ended.
func each(ctx context.Context, due <-chan struct{}, do func()) {
	for {
		select {
		case <-due:
			do()
		case <-ctx.Done():
			do()
			return
		}
	}
}

func (w *Writer) save(report func(error)) {
	w.mu.Lock()
	pending := w.pending
	w.pending = nil
	w.mu.Unlock()
	if pending == nil {
		return
	}
	written := make(chan error, 1)
	go func() {
		written <- w.store.Save(pending.pod)
		close(pending.done)
	}()
	timeout := time.NewTimer(writeTimeout)
	defer timeout.Stop()
	select {
	case err := <-written:
		report(err)
	case <-timeout.C:
		report(ErrTimeout)
		report(<-written)
	}
}

func (w *Writer) saveCheckpoint() {
	w.mu.Lock()
	pending := w.checkpoint
	w.checkpoint = nil
	w.mu.Unlock()
	if pending != nil && w.checkpoints != nil {
		_ = w.checkpoints.Save(w.uid, *pending)
	}
}
