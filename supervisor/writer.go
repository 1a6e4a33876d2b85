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
// hangs never holds up the loop. So it does with what holds until the next boot, which lies in memory and waits for no disk.
type writer struct {
	store    Store
	verdicts Verdicts // nil: they are not kept
	uid      string

	mu           sync.Mutex
	next         *write  // not begun yet
	noted        *Spoken // not begun yet; nil: nothing new
	states, says chan struct{}
}

func newWriter(store Store, verdicts Verdicts, uid string) *writer {
	return &writer{store: store, verdicts: verdicts, uid: uid, states: make(chan struct{}, 1), says: make(chan struct{}, 1)}
}

// note hands over what holds until the next boot. That it could not be kept costs little: probes are asked again, and a stop signal
// may be sent twice.
func (w *writer) note(said Spoken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = &said
	wake(w.says)
}

func wake(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// put hands over a state; one that waits to be written is replaced by it.
func (w *writer) put(e Envelope) *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil {
		w.next = &write{done: make(chan struct{})}
	}
	w.next.envelope = e
	wake(w.states)
	return w.next
}

// run writes until the context ends, and then what was handed over before. It reports the outcome of every write of a state.
func (w *writer) run(ctx context.Context, report func(error)) {
	var noting sync.WaitGroup
	defer noting.Wait()
	noting.Go(func() { onEach(ctx, w.says, w.keep) })
	onEach(ctx, w.states, func() { w.flush(report) })
}

// onEach works at each kick until the context ends, and once more then.
func onEach(ctx context.Context, kicks <-chan struct{}, work func()) {
	for {
		select {
		case <-kicks:
			work()
		case <-ctx.Done():
			work()
			return
		}
	}
}

// keep writes what holds until the next boot, if there is anything new.
func (w *writer) keep() {
	w.mu.Lock()
	noted := w.noted
	w.noted = nil
	w.mu.Unlock()
	if noted != nil && w.verdicts != nil {
		_ = w.verdicts.Save(w.uid, *noted)
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
