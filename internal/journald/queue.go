package journald

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	// sendTimeout is the time after which an attempt to send is repeated.
	sendTimeout = 200 * time.Millisecond
	// retryPause is the time between two attempts to connect.
	retryPause = 200 * time.Millisecond
	// noticeInterval is the shortest time between two notices.
	noticeInterval = 10 * time.Second
	// DefaultLimit is the default of [Options.Limit].
	DefaultLimit = 1 << 20
)

// Options are the options of a [Queue]. Notice is required.
type Options struct {
	// Socket is that of journald (default [Socket]).
	Socket string
	// Limit bounds the entries that wait, in bytes.
	Limit int
	// Notice returns the entry that reports dropped entries.
	Notice func(dropped int64) []byte
}

// Queue sends entries in the background and in order, so that the caller never waits. While journald does not accept entries, they wait.
// Entries for which there is no room are dropped and counted. A notice reports them, at most every 10 seconds. It is safe for concurrent
// use.
type Queue struct {
	o       Options
	due     chan struct{} // holds a token while entries may be pending
	closing chan struct{}
	ended   chan struct{}
	stop    chan struct{} // closed at the end of the time to send the rest

	mu      sync.Mutex
	pending batch
	size    int         // of all entries that were not sent yet
	dropped int64       // since the last notice
	full    bool        // closed: entries are dropped
	notice  *time.Timer // until the next notice; nil: all dropped entries were reported
}

// batch are entries.
type batch struct {
	text []byte
	list []item
}

// item is an entry: fields that many entries share, and its own, which end there in the text of the batch.
type item struct {
	shared []byte
	end    int
}

// itemSize is the memory that an item uses, in bytes.
const itemSize = 32

// NewQueue starts a queue. The caller calls [Queue.Close].
func NewQueue(o Options) *Queue {
	o.Socket = cmp.Or(o.Socket, Socket)
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	q := &Queue{o: o, due: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}), stop: make(chan struct{})}
	go q.run()
	return q
}

// Add adds an entry, or drops it. It does not keep the entry, but the shared fields at its beginning, which must not change.
func (q *Queue) Add(shared, entry []byte) {
	q.mu.Lock()
	if size := len(entry) + itemSize; q.full || q.size+size > q.o.Limit {
		q.dropped++
	} else {
		q.size += size
		q.pending.text = append(q.pending.text, entry...)
		q.pending.list = append(q.pending.list, item{shared, len(q.pending.text)})
	}
	q.mu.Unlock()
	select {
	case q.due <- struct{}{}:
	default:
	}
}

// Close sends what waits, for at most the timeout. It returns how many entries were dropped and not reported. It is called once.
func (q *Queue) Close(timeout time.Duration) (dropped int64) {
	close(q.closing)
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-q.ended:
	case <-t.C:
		close(q.stop)
		<-q.ended
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// run sends until the queue is closed.
func (q *Queue) run() {
	defer close(q.ended)
	c := &conn{path: q.o.Socket}
	defer c.close()
	for end := false; !end; {
		select {
		case <-q.due:
		case <-q.noticeDue():
			q.report(c)
			q.mu.Lock()
			q.notice = nil
			q.mu.Unlock()
		case <-q.closing:
			end = true
		}
		q.drain(c)
	}
	q.mu.Lock()
	q.full = true
	q.mu.Unlock()
	q.drain(c)
	q.report(c)
}

// noticeDue returns a channel that receives a value when a notice is due. While no entries were dropped, there is no timer.
func (q *Queue) noticeDue() <-chan time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.notice == nil {
		if q.dropped == 0 {
			return nil
		}
		q.notice = time.NewTimer(noticeInterval)
	}
	return q.notice.C
}

// drain sends all pending entries.
func (q *Queue) drain(c *conn) {
	var buf []byte
	for {
		q.mu.Lock()
		b := q.pending
		q.pending = batch{}
		q.mu.Unlock()
		if len(b.list) == 0 {
			return
		}
		from := 0
		for _, i := range b.list {
			entry := b.text[from:i.end]
			from = i.end
			buf = append(append(buf[:0], i.shared...), entry...)
			sent := q.send(c, buf)
			q.mu.Lock()
			q.size -= len(entry) + itemSize
			if !sent {
				q.dropped++
			}
			q.mu.Unlock()
		}
	}
}

// report sends a notice of the dropped entries, if there are any.
func (q *Queue) report(c *conn) {
	q.mu.Lock()
	dropped := q.dropped
	q.mu.Unlock()
	if dropped == 0 || !q.send(c, q.o.Notice(dropped)) {
		return
	}
	q.mu.Lock()
	q.dropped -= dropped
	q.mu.Unlock()
}

// send sends an entry. It retries until journald accepts the entry, or until the end of the time after [Queue.Close].
func (q *Queue) send(c *conn, entry []byte) bool {
	for {
		select {
		case <-q.stop:
			return false
		default:
		}
		err := c.send(entry, time.Now().Add(sendTimeout))
		switch {
		case err == nil:
			return true
		case errors.Is(err, ErrTooLarge):
			return false
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		}
		select {
		case <-time.After(retryPause):
		case <-q.stop:
			return false
		}
	}
}
