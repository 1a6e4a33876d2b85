package crilog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FeedOptions are the options of a [Feed].
type FeedOptions struct {
	// Dir is the directory of the spool and of the record, on a tmpfs. It is created if it does not exist. Only the owner may write to it.
	Dir string
	// Path is the absolute path of the log.
	Path string
	Log  Options
	// Terminal is a container with a terminal, which has no standard error.
	Terminal bool
	// Observe, if not nil, is called by [Feed.Flush] with each chunk of output. It must not keep the chunk. After a kill, it may be
	// called again with what it was called with before.
	Observe func(s Stream, chunk []byte)
}

// Feed writes the log of a container. It survives the death of its process: [OpenFeed] in another process continues
// after a kill at any moment, and the log has each byte of the output once, in the same entries. At rest it has no descriptors, no
// goroutine and no buffers.
//
// The output of a container is moved to a spool by [Feed.Splice], which never waits for the disk of the log. It is safe for concurrent use
// with all other methods. [Feed.Flush] writes the log. The time of an entry is that of Flush.
//
// A log never blocks its container for errors. Lines that cannot be written (disk full, directory removed) are dropped and counted. An
// entry in the log reports them as soon as it can be written again.
type Feed struct {
	dir, path string
	terminal  bool
	observe   func(s Stream, chunk []byte)
	sink      Sink

	// work is held while the log is written. It is never taken by what must not wait for the disk.
	work sync.Mutex
	opt  Options
	w    *feedWriter // nil at rest

	mu     sync.Mutex // guards what follows; is never held during I/O on the disk of the log
	spools [2]spool
	stale  bool // the log may be incomplete although the spool is empty
	closed bool
}

// feedBuffers are the buffers of a Flush.
type feedBuffers struct{ in, entries []byte }

var feedPool = sync.Pool{New: func() any { return new(feedBuffers) }}

// feedWriter is the writer of a feed that is not at rest.
type feedWriter struct {
	*writer
	record  string // path of the record
	fd      int    // of the record; -1: not open
	outs    [2]batch
	damaged int64 // as in feedState
	saved   feedState
	cause   string    // of what is lost in saved
	during  bool      // the record has a write
	failed  error     // of the record: nothing is written until it is read again
	at      time.Time // of the entries that are being written
	again   again
	torn    tornWrite
}

// again is a write that a kill has prevented: the first bytes of a stream after its position. The same entries are written.
type again struct {
	stream Stream
	until  int64 // 0: there is none
	at     time.Time
}

// tornWrite is the write that a kill has cut. The open file has its first bytes.
type tornWrite struct{ written, length int64 }

// OpenFeed opens the log of a container, or continues it after the death of another process. It does not use the disk of the log. The
// first [Feed.Flush] does, which must follow. It is an error if the record in the directory has a version that is not supported. If the
// record is damaged, it is unknown which part of the spooled output is in the log. Then all of it is dropped, and an entry in the log
// reports that.
func OpenFeed(o FeedOptions) (*Feed, error) {
	if !filepath.IsAbs(o.Path) {
		return nil, fmt.Errorf("open log %q: path must be absolute", o.Path)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open log %q: %w", o.Path, err)
	}
	f := &Feed{dir: o.Dir, path: o.Path, opt: o.Log, terminal: o.Terminal, observe: o.Observe, stale: true}
	if err := f.load(); err != nil {
		return nil, fmt.Errorf("open log %q: %w", o.Path, err)
	}
	return f, nil
}

// CopyTo makes the log send a copy of its entries to a sink, which [Feed.Finish] closes. It must be called before the first [Feed.Flush].
// A kill may repeat entries of the last write.
func (f *Feed) CopyTo(s Sink) { f.sink = s }

// SetLimits changes the limits of the log. It waits for a [Feed.Flush].
func (f *Feed) SetLimits(o Options) error {
	f.work.Lock()
	defer f.work.Unlock()
	if err := f.flush(false); err != nil {
		return err
	}
	w, err := f.wake()
	if err != nil {
		return err
	}
	if err := f.reportDropped(w); err != nil { // by the limit that is replaced
		return err
	}
	f.forget() // the next Flush makes another writer
	f.opt = o
	return nil
}

// Splice moves output from a FIFO, which must be non-blocking, to the spool. It returns 0 if the FIFO is empty, [ErrSpoolFull] if the
// spool is full, and [io.EOF] if the FIFO is empty and it has no writer. It never blocks.
func (f *Feed) Splice(s Stream, fd, limit int) (n int, err error) {
	if f.terminal && s != Stdout {
		return 0, fmt.Errorf("spool %s of %q: a terminal has one stream", s, f.path)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, os.ErrClosed
	}
	spool := &f.spools[s.index()]
	if err := spool.open(f.spoolPath(s)); err != nil {
		return 0, err
	}
	return spool.splice(fd, limit)
}

// Head returns the first bytes of a stream, at most limit. It must be called before the first [Feed.Flush], which removes them.
func (f *Feed) Head(s Stream, limit int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, os.ErrClosed
	}
	spool := &f.spools[s.index()]
	if err := spool.open(f.spoolPath(s)); err != nil {
		return nil, err
	}
	head := make([]byte, min(spool.size, int64(limit)))
	if err := readSpool(int(spool.fd), head, 0); err != nil {
		return nil, &fs.PathError{Op: "read", Path: f.spoolPath(s), Err: err}
	}
	return head, nil
}

// Pending reports whether [Feed.Flush] has something to do. The start of a line that is not complete is not.
func (f *Feed) Pending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stale || f.spools[0].unseen > 0 || f.spools[1].unseen > 0
}

// Flush writes the lines that are complete when it is called. It may wait for the disk of the log. An error is one of the spool or of the
// record. Then nothing is lost, and Flush can be repeated.
func (f *Feed) Flush() error {
	f.work.Lock()
	defer f.work.Unlock()
	return f.flush(false)
}

// Finish writes the log at the end of the output. As in containerd, a last line without a newline is partial. Afterwards the log is
// complete. It can be repeated, also by another process.
func (f *Feed) Finish() error {
	f.work.Lock()
	defer f.work.Unlock()
	if err := f.flush(true); err != nil {
		return err
	}
	w, err := f.wake()
	if err != nil {
		return err
	}
	if err := f.reportDropped(w); err != nil {
		return err
	}
	if f.sink != nil {
		w.closeSink()
		f.sink = nil
	}
	w.mu.Lock()
	w.reportLost()
	w.settle()
	w.mu.Unlock()
	if w.failed != nil {
		return f.fail(w.failed)
	}
	w.stopCompression()
	f.rest()
	return nil
}

// Close releases what the feed uses. It writes nothing: [OpenFeed] continues. It waits for a [Feed.Flush].
func (f *Feed) Close() error {
	f.work.Lock()
	defer f.work.Unlock()
	f.forget()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for i := range f.spools {
		f.spools[i].close()
	}
	return nil
}

func (f *Feed) spoolPath(s Stream) string { return filepath.Join(f.dir, string(s)+".spool") }

// flush writes what is spooled, at the end of the output also a line that is not complete. As for all methods below, the caller holds work.
func (f *Feed) flush(end bool) (err error) {
	w, err := f.wake()
	if err != nil {
		return err
	}
	buf := feedPool.Get().(*feedBuffers)
	defer feedPool.Put(buf)
	f.mu.Lock()
	goals := [2]int64{f.spools[0].size, f.spools[1].size}
	f.mu.Unlock()
	if w.again.until > 0 { // before anything else, since a reader of the log may have read a part of it
		if _, err := f.turn(w, w.again.stream, goals[w.again.stream.index()], end, buf); err != nil {
			return f.fail(err)
		}
	}
	for more := true; more; {
		more = false
		for _, s := range []Stream{Stdout, Stderr} {
			worked, err := f.turn(w, s, goals[s.index()], end, buf)
			if err != nil {
				return f.fail(err)
			}
			more = more || worked
		}
	}
	f.rest()
	return nil
}

// turn writes the entries of one chunk of a stream, which ends before a position. It reports false if there was none.
func (f *Feed) turn(w *feedWriter, s Stream, goal int64, end bool, buf *feedBuffers) (worked bool, err error) {
	out := &w.outs[s.index()]
	f.mu.Lock()
	if f.spools[s.index()].unread > 0 {
		err = f.spools[s.index()].open(f.spoolPath(s))
	}
	spool := f.spools[s.index()].until(goal)
	f.mu.Unlock()
	if err != nil || spool.unseen == 0 && (!end || spool.unread == 0) {
		return false, err
	}
	n := min(int(spool.unread), readSize)
	w.at = time.Now()
	if left := w.again.until - out.read; s == w.again.stream && left > 0 {
		n, w.at = min(n, int(left)), w.again.at
		w.again = again{}
	}
	if n > len(buf.in) {
		size := quietSize
		if n > size {
			size = readSize
		}
		buf.in = make([]byte, size)
	}
	from, in := out.read, buf.in[:n]
	if err := readSpool(int(spool.fd), in, from); err != nil {
		return false, &fs.PathError{Op: "read", Path: f.spoolPath(s), Err: err}
	}
	seen := from + int64(n)
	if before := spool.size - int64(spool.unseen); f.observe != nil && seen > before {
		f.observe(s, in[max(before-from, 0):])
	}
	out.entries = buf.entries[:0]
	w.append(out, in, end && n == int(spool.unread))
	w.flush(out)
	buf.entries, out.entries = out.entries[:0], nil
	w.settle() // also if all entries were dropped
	if w.failed != nil {
		return false, w.failed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spools[s.index()].setRead(out.read, seen)
	return true, f.spools[s.index()].punch(from)
}
