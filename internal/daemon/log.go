package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxBufferedLog is how much of the log waits for a disk that hangs, in bytes.
	maxBufferedLog = 1 << 20
	// flushTimeout bounds the wait for the rest of the log when the daemon exits.
	flushTimeout = 2 * time.Second
)

// NewLog returns a log that is written to w in the background, because the log may be a file on a disk that hangs, and no pod must wait for
// it. Lines for which there is no room are dropped and counted. Call flush before the process exits: it writes what is left, for at most
// [flushTimeout].
func NewLog(w io.Writer) (log *slog.Logger, flush func()) {
	b := &logBuffer{out: w, due: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{})}
	go b.run()
	return slog.New(slog.NewTextHandler(b, nil)), b.flush
}

// logBuffer is a writer that never blocks.
type logBuffer struct {
	out     io.Writer
	due     chan struct{} // holds a token while lines may be pending
	closing chan struct{}
	closed  chan struct{} // closed when everything is written after closing
	once    sync.Once

	mu      sync.Mutex
	pending []byte
	dropped int // lines since the last write
}

// Write implements [io.Writer]. It is called with one line.
func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending)+len(line) > maxBufferedLog {
		b.dropped++
	} else {
		b.pending = append(b.pending, line...)
	}
	select {
	case b.due <- struct{}{}:
	default:
	}
	return len(line), nil
}

// run writes until the buffer is closed.
func (b *logBuffer) run() {
	defer close(b.closed)
	for {
		select {
		case <-b.due:
			b.writePending()
		case <-b.closing:
			b.writePending()
			return
		}
	}
}

func (b *logBuffer) writePending() {
	b.mu.Lock()
	text, dropped := b.pending, b.dropped
	b.pending, b.dropped = nil, 0
	b.mu.Unlock()
	if dropped > 0 {
		text = fmt.Appendf(text, "time=%s level=WARN msg=\"log lines were dropped, the log could not be written in time\" lines=%d\n",
			time.Now().Format(time.RFC3339Nano), dropped)
	}
	if len(text) > 0 {
		_, _ = b.out.Write(text) // there is no other place to report an error of the log
	}
}

func (b *logBuffer) flush() {
	b.once.Do(func() { close(b.closing) })
	select {
	case <-b.closed:
	case <-time.After(flushTimeout):
	}
}
