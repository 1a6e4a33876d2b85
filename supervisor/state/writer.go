package state

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// writeTimeout is the time after which a write is reported as hanging.
const writeTimeout = 2 * time.Second

// gatherTime is how long a state that nothing waits for is pending, so that changes that follow each other are one write. After a power
// failure in that time the pod has its state from before, as if the power had failed earlier. A daemon that is killed finds the rest out
// from the engine and the checkpoint.
const gatherTime = 100 * time.Millisecond

// ErrTimeout reports that a write takes longer than expected. It continues.
var ErrTimeout = fmt.Errorf("no answer from the disk within %v", writeTimeout)

// Write is a state on its way to the disk.
type Write struct {
	pod    Pod
	done   chan struct{} // closed when this state or a newer one was written, or writing failed
	hurry  sync.Once
	urgent chan struct{} // closed when something waits
}

// Wait starts the write, if it is only scheduled. It returns when the write has finished, successfully or not, and after the timeout or the
// end of ctx at the latest. It returns at once for nil: there is nothing to wait for.
func (w *Write) Wait(ctx context.Context, timeout time.Duration) {
	if w == nil {
		return
	}
	w.start()
	select {
	case <-w.done:
	case <-time.After(timeout):
	case <-ctx.Done():
	}
}

// start starts the write if it is only scheduled.
func (w *Write) start() { w.hurry.Do(func() { close(w.urgent) }) }

// Writer saves the state and the checkpoints of one pod in the background, so that a slow or hanging disk never blocks the pod's loop.
// It saves one state at a time, and only the newest. Checkpoints are saved concurrently with states. Put and Checkpoint are safe for
// concurrent use. A writer that has nothing to save needs no goroutine but that of Run.
type Writer struct {
	store       Store
	checkpoints Checkpoints // nil: checkpoints are discarded
	uid         string

	mu            sync.Mutex
	report        func(error)     // of Run; nil: Run does not run
	ended         <-chan struct{} // of Run
	saving        sync.WaitGroup  // the goroutines below
	pending       *Write          // not started yet
	checkpoint    *Checkpoint     // not started yet; nil: nothing new
	savingStates  bool            // a goroutine saves states
	checkpointing bool            // a goroutine saves checkpoints
}

// NewWriter returns a writer for the pod with the UID. Checkpoints may be nil.
func NewWriter(store Store, checkpoints Checkpoints, uid string) *Writer {
	return &Writer{store: store, checkpoints: checkpoints, uid: uid}
}

// Checkpoint schedules a checkpoint. It does not report errors: without the checkpoint probes start again, and a stop signal may be
// sent twice.
func (w *Writer) Checkpoint(c Checkpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkpoint = &c
	w.wake()
}

// Put schedules a state. It replaces a state that is still pending. It is written at once if something waits for it, and soon in any case.
func (w *Writer) Put(p Pod) *Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending == nil {
		w.pending = &Write{done: make(chan struct{}), urgent: make(chan struct{})}
	}
	w.pending.pod = p
	w.wake()
	return w.pending
}

// Drop drops a state that is still pending and that nothing waits for, because the pod is removed.
func (w *Writer) Drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending == nil {
		return
	}
	select {
	case <-w.pending.urgent:
	default:
		close(w.pending.done)
		w.pending = nil
	}
}

// wake starts the goroutines that are needed and do not run. The caller holds the lock.
func (w *Writer) wake() {
	if w.report == nil {
		return
	}
	report, ended := w.report, w.ended
	if w.pending != nil && !w.savingStates {
		w.savingStates = true
		w.saving.Go(func() {
			for pending := w.nextState(ended); pending != nil; pending = w.nextState(ended) {
				w.save(pending, report)
			}
		})
	}
	if w.checkpoint != nil && !w.checkpointing {
		w.checkpointing = true
		w.saving.Go(func() {
			for pending := w.nextCheckpoint(); pending != nil; pending = w.nextCheckpoint() {
				w.saveCheckpoint(*pending)
			}
		})
	}
}

// nextState takes the state to save next, when it is urgent or has gathered changes, and at once when ended is closed. If there is none, it
// returns nil, and the goroutine that saves states must end.
func (w *Writer) nextState(ended <-chan struct{}) *Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if next := w.pending; next != nil {
		w.mu.Unlock()
		gathered := time.NewTimer(gatherTime)
		select {
		case <-next.urgent:
		case <-gathered.C:
		case <-next.done: // dropped
		case <-ended:
		}
		gathered.Stop()
		w.mu.Lock()
	}
	pending := w.pending
	w.pending, w.savingStates = nil, pending != nil
	return pending
}

// nextCheckpoint is nextState for checkpoints.
func (w *Writer) nextCheckpoint() *Checkpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	pending := w.checkpoint
	w.checkpoint, w.checkpointing = nil, pending != nil
	return pending
}

// Run saves until ctx ends, and then what is still pending. It calls report with the result of every write of a state, in order. During a
// write that hangs it calls report with [ErrTimeout].
func (w *Writer) Run(ctx context.Context, report func(error)) {
	w.mu.Lock()
	w.report, w.ended = report, ctx.Done()
	w.wake()
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.report = nil
	w.mu.Unlock()
	w.saving.Wait()
}

func (w *Writer) save(pending *Write, report func(error)) {
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

func (w *Writer) saveCheckpoint(c Checkpoint) {
	if w.checkpoints != nil {
		_ = w.checkpoints.Save(w.uid, c)
	}
}
