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
// hangs never holds up the loop; and beside them, not behind them, its notes.
type writer struct {
	store Store
	notes Notes // nil: they are not kept
	uid   string

	mu                sync.Mutex
	next              *write // not begun yet
	noted             *Note  // not begun yet; nil: nothing new
	stateDue, noteDue chan struct{}
}

func newWriter(store Store, notes Notes, uid string) *writer {
	return &writer{store: store, notes: notes, uid: uid, stateDue: make(chan struct{}, 1), noteDue: make(chan struct{}, 1)}
}

// note hands over a note. That it could not be kept costs little: probes are asked again, and a stop signal may be sent twice.
func (w *writer) note(n Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = &n
	wake(w.noteDue)
}

// put hands over a state; one that waits to be written is replaced by it.
func (w *writer) put(e Envelope) *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = &write{done: make(chan struct{})}
	}
	w.next.envelope = e
	wake(w.stateDue)
	return w.next
}

func wake(sleeper chan<- struct{}) {
	select {
	case sleeper <- struct{}{}:
	default:
	}
}

// run writes until the context ends, and then what was handed over before. It reports the outcome of every write of a state.
func (w *writer) run(ctx context.Context, report func(error)) {
	var both sync.WaitGroup
	both.Go(func() { each(ctx, w.stateDue, func() { w.save(report) }) })
	both.Go(func() { each(ctx, w.noteDue, w.keep) })
	both.Wait()
}

// each calls do whenever it is woken, until the context ends, and then once more.
func each(ctx context.Context, woken <-chan struct{}, do func()) {
	for {
		select {
		case <-woken:
			do()
		case <-ctx.Done():
			do()
			return
		}
	}
}

func (w *writer) save(report func(error)) {
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

func (w *writer) keep() {
	w.mu.Lock()
	noted := w.noted
	w.noted = nil
	w.mu.Unlock()
	if noted != nil && w.notes != nil {
		_ = w.notes.Save(w.uid, *noted)
	}
}
