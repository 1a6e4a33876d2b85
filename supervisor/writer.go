package supervisor

import (
	"context"
	"sync"
)

// write is a state of a pod on its way to the disk. When done is closed, this state or a newer one is there, or err
// says why not.
type write struct {
	envelope Envelope
	done     chan struct{}
	err      error
}

// writer hands the states of one pod to the store, one at a time and the newest only, so that a disk that is slow or
// hangs never holds up the loop.
type writer struct {
	store Store

	mu   sync.Mutex
	next *write // not begun yet
	kick chan struct{}
}

func newWriter(store Store) *writer {
	return &writer{store: store, kick: make(chan struct{}, 1)}
}

// put hands over a state; one that waits to be written is replaced by it.
func (w *writer) put(e Envelope) *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = &write{done: make(chan struct{})}
	}
	w.next.envelope = e
	select {
	case w.kick <- struct{}{}:
	default:
	}
	return w.next
}

// run writes until the context ends, and then what was handed over before. It reports the outcome of every write.
func (w *writer) run(ctx context.Context, report func(error)) {
	for {
		select {
		case <-w.kick:
			w.flush(report)
		case <-ctx.Done():
			w.flush(report)
			return
		}
	}
}

func (w *writer) flush(report func(error)) {
	w.mu.Lock()
	todo := w.next
	w.next = nil
	w.mu.Unlock()
	if todo == nil {
		return
	}
	todo.err = w.store.Save(todo.envelope)
	close(todo.done)
	report(todo.err)
}
