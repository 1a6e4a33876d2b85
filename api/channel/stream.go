package channel

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// Reader reads a channel. Its error is [io.EOF] after the peer has closed the channel or ended the session with a status.
type Reader struct {
	conn *Conn
	id   ID

	mu       sync.Mutex
	cond     *sync.Cond
	buffer   bytes.Buffer
	room     int // that the peer was permitted to send
	consumed int // since the last permission
	closed   bool
	err      error // after the data in the buffer; nil: EOF
}

func newReader(c *Conn, id ID) *Reader {
	r := &Reader{conn: c, id: id, room: Window}
	r.cond = sync.NewCond(&r.mu)
	return r
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	for r.buffer.Len() == 0 && !r.closed {
		r.cond.Wait()
	}
	if r.buffer.Len() == 0 {
		defer r.mu.Unlock()
		if r.err != nil {
			return 0, r.err
		}
		return 0, io.EOF
	}
	n, _ := r.buffer.Read(p)
	r.consumed += n
	var permitted int
	if r.consumed >= Window/2 && !r.closed {
		permitted, r.consumed = r.consumed, 0
		r.room += permitted
	}
	r.cond.Broadcast()
	r.mu.Unlock()
	if permitted > 0 && r.conn.flow {
		_ = r.conn.permit(r.id, permitted) // the next Read returns the error
	}
	return n, nil
}

// put adds received data. Without flow control, it waits while the buffer is full.
func (r *Reader) put(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	if r.conn.flow {
		if r.room -= len(b); r.room < 0 {
			return protocolError(fmt.Sprintf("channel %d received more data than permitted", r.id))
		}
	}
	for r.buffer.Len() >= Window && !r.closed {
		r.conn.full.Store(true)
		r.cond.Wait()
		r.conn.hear()
		r.conn.full.Store(false)
	}
	if !r.closed {
		r.buffer.Write(b)
		r.cond.Broadcast()
	}
	return nil
}

// finish closes the channel, at the first call.
func (r *Reader) finish(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed, r.err = true, err
	r.cond.Broadcast()
}

// Writer writes a channel.
type Writer struct {
	conn *Conn
	id   ID

	writing sync.Mutex
	message []byte

	mu     sync.Mutex
	cond   *sync.Cond
	room   int64
	closed bool
}

func newWriter(c *Conn, id ID) *Writer {
	w := &Writer{conn: c, id: id, room: Window}
	w.cond = sync.NewCond(&w.mu)
	return w
}

// Write implements io.Writer. It waits until the peer has room for the data, without a timeout as long as the peer responds.
func (w *Writer) Write(p []byte) (n int, err error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	for n < len(p) {
		size, err := w.reserve(min(len(p)-n, chunk))
		if err != nil {
			return n, err
		}
		w.message = append(append(w.message[:0], byte(w.id)), p[n:n+size]...)
		if err := w.conn.send(w.message); err != nil {
			return n, err
		}
		n += size
	}
	return n, nil
}

// reserve waits for permission to send, and returns for how many bytes.
func (w *Writer) reserve(size int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		select {
		case <-w.conn.done:
			return 0, w.conn.endError()
		default:
		}
		switch {
		case w.closed:
			return 0, io.ErrClosedPipe
		case !w.conn.flow:
			return size, nil
		case w.room > 0:
			size = int(min(int64(size), w.room))
			w.room -= int64(size)
			return size, nil
		}
		w.cond.Wait()
	}
}

// grant adds a permission of the peer.
func (w *Writer) grant(n int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.room += n; w.room > Window {
		return protocolError(fmt.Sprintf("channel %d permits more data than its receiver keeps", w.id))
	}
	w.cond.Broadcast()
	return nil
}

func (w *Writer) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cond.Broadcast()
}

// Close closes the channel: the peer reads EOF after the data that was written. The other direction stays open.
func (w *Writer) Close() error {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.cond.Broadcast()
	w.mu.Unlock()
	if closed {
		return nil
	}
	return w.conn.send([]byte{byte(closeID), byte(w.id)})
}
