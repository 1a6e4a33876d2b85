package tui

import (
	"os"
	"sync"
	"time"
)

const (
	// lateTime is the duration of a write after which the terminal is late, and the screen does not change until it has taken it.
	lateTime = 50 * time.Millisecond
	// restoreTime bounds the wait for a terminal that is late, before it is left, such as one of an ssh connection that hangs.
	restoreTime = 2 * time.Second
)

// terminal is the terminal as output. Write does not wait for it, so that the program handles keys and signals while the terminal takes
// nothing. What it has not taken yet stays small, since [model.View] does not change while it is late. The nil terminal is never late.
type terminal struct {
	*os.File

	taken func() // called when the terminal is no longer late

	mu      sync.Mutex
	pending []byte
	writing chan struct{} // closed when nothing is pending; nil: no write is in progress
	begun   time.Time     // when the write in progress began
	waiting bool          // taken is due
	err     error
}

// Write implements [io.Writer]. It returns errors of earlier writes.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, t.err
	}
	t.pending = append(t.pending, p...)
	if t.writing == nil {
		t.writing = make(chan struct{})
		go t.write()
	}
	return len(p), nil
}

// write writes until nothing is pending.
func (t *terminal) write() {
	t.mu.Lock()
	for len(t.pending) > 0 && t.err == nil {
		p := t.pending
		t.pending, t.begun = nil, time.Now()
		t.mu.Unlock()
		_, err := t.File.Write(p)
		t.mu.Lock()
		t.err = err
	}
	close(t.writing)
	waiting := t.waiting
	t.writing, t.waiting = nil, false
	t.mu.Unlock()
	if waiting {
		t.taken()
	}
}

// late reports whether the terminal does not take a write. Then taken will be called.
func (t *terminal) late() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writing == nil || time.Since(t.begun) < lateTime {
		return false
	}
	t.waiting = true
	return true
}

// wait waits until the terminal has taken everything, and reports whether it has in time.
func (t *terminal) wait() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	writing := t.writing
	t.mu.Unlock()
	if writing == nil {
		return true
	}
	timer := time.NewTimer(restoreTime)
	defer timer.Stop()
	select {
	case <-writing:
		return true
	case <-timer.C:
		return false
	}
}
