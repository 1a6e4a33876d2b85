package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Defaults of [Options].
const (
	DefaultMaxBytes = 10 << 20
	DefaultKeep     = 5
)

const (
	// readSize is the size of one read from a spool, which has two of the longest parts of a line.
	readSize = 32 << 10

	// quietSize is the size of the first reads. Most containers write little.
	quietSize = 2 << 10

	// flushSize bounds the output buffer, since many short lines grow by their time stamps.
	flushSize = 64 << 10
)

// Options limit the size of a log. The zero value has the defaults of Kubernetes.
type Options struct {
	// MaxBytes is the size at which a file is rotated. The default is [DefaultMaxBytes].
	MaxBytes int64
	// Keep is the number of files of a log, including the current one. The default is [DefaultKeep].
	Keep int
	// Rate, if not zero, bounds what is written. Lines above it are dropped and counted, an entry in the log reports them.
	Rate Rate
	// Compress compresses rotated files with gzip, in the background. They keep their names.
	Compress bool
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	return o
}

// writer writes the files of a log, for a [Feed]. Both streams of the container share it.
type writer struct {
	path string
	opt  Options
	now  func() time.Time

	limit *rateLimiter // nil: no limit
	sink  Sink         // nil: none

	mu   sync.Mutex
	file *os.File // nil if it could not be opened
	size int64
	progress

	ledger ledger // nil: none

	compression *compression // nil unless files are being compressed
}

// ledger keeps account of the writes of a log, so that another process can continue after a kill. It is called with the lock held.
type ledger interface {
	// intend is called before bytes are appended to the file. If they are, progress is next. After an error, they are not. It returns how
	// many of them are in the file already, after its size.
	intend(next progress, b []byte) (written int, err error)
	// settle is called when progress says what became of them.
	settle()
}

// progress is what a writer must know of what it has written.
type progress struct {
	total   Count // the log up to now, with files that were removed
	counted bool  // total has what an earlier writer has written
	lost    loss
	unended [2]bool // for each stream: its last entry is a part of a line
}

// loss counts what was dropped since the last successful write.
type loss struct {
	lines, bytes int
	since        time.Time
	cause        error
}

// newWriter returns the writer of the log at an absolute path. It opens the file at the first write, and appends to an existing log.
func newWriter(path string, o Options) *writer {
	w := &writer{path: path, opt: o.withDefaults(), now: time.Now}
	w.limit = newLimiter(o.Rate, w.reportDropped)
	return w
}

// Sink receives a copy of the entries of a log, after the rate limit, also of those that cannot be written. It is safe for concurrent use.
type Sink interface {
	// Entry receives an entry. Partial means that more of its line follows. It must not block, nor keep the text.
	Entry(at time.Time, s Stream, partial bool, text []byte)
	// Close returns the number of entries that the sink has lost and not reported.
	Close() (lost int64)
}

// batch are complete entries of one stream that are to be written.
type batch struct {
	stream  Stream
	entries []byte
	partial bool // the last entry is partial
	lines   int64
	counter lineCounter
	dropped bool  // the rest of the line is dropped
	read    int64 // bytes of the stream that are in entries, were in them before, or were dropped
}

// append appends the entries of the data in in to out, except for an incomplete line at its end, which has at most maxPart bytes.
func (w *writer) append(out *batch, in []byte, end bool) {
	var buf [len(timeFormat)]byte
	now := w.now()
	stamp := now.UTC().AppendFormat(buf[:0], timeFormat)
	for rest := in; len(rest) > 0; {
		i := bytes.IndexByte(rest[:min(len(rest), maxPart+1)], '\n')
		switch {
		case i >= 0:
			w.add(out, now, stamp, fullLine, rest[:i])
			rest = rest[i+1:]
		case len(rest) > maxPart:
			w.add(out, now, stamp, linePart, rest[:maxPart])
			rest = rest[maxPart:]
		case end:
			w.add(out, now, stamp, lastPart, rest)
			rest = nil
		default:
			return
		}
		if len(out.entries) >= flushSize {
			w.flush(out)
		}
	}
}

// ending is how the text of an entry ends.
type ending int

const (
	fullLine ending = iota // with a newline
	linePart               // within a line
	lastPart               // at the end of the output, without a newline
)

// add adds an entry, unless the rate limit drops it. If it drops a later part of a line, the line ends before it.
func (w *writer) add(out *batch, now time.Time, stamp []byte, end ending, text []byte) {
	if out.read += int64(len(text)); end == fullLine {
		out.read++
	}
	if w.limit != nil {
		begun := out.counter.parts > 0
		switch {
		case out.dropped:
			out.dropped = end == linePart
			return
		case !w.limit.Allow(now, len(text)+1, begun):
			out.dropped = end == linePart
			if !begun {
				return
			}
			end, text = fullLine, nil
		}
	}
	out.partial = end != fullLine
	out.entries = appendEntry(out.entries, stamp, out.stream, out.partial, text)
	out.lines += out.counter.entry(out.partial)
	if w.sink != nil {
		w.sink.Entry(now, out.stream, end == linePart, text)
	}
}

func (w *writer) closeSink() {
	if w.sink == nil {
		return
	}
	if lost := w.sink.Close(); lost > 0 {
		w.report(fmt.Sprintf("podstead: %d lines of the log are not in the journal, journald did not accept them in time", lost))
	}
	w.sink = nil
}

// reportLost is the last attempt to report dropped lines. The caller holds the lock.
func (w *writer) reportLost() {
	if w.lost.lines > 0 {
		_ = w.write(&batch{})
	}
}

func (w *writer) closeFile() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// flush writes complete entries, and empties the batch. It rotates first if they do not fit, and drops and counts them on an error.
func (w *writer) flush(out *batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushLocked(out)
}

func (w *writer) flushLocked(out *batch) {
	b := out.entries
	defer func() { out.entries, out.lines = b[:0], 0 }()
	if len(b) == 0 {
		return
	}
	if w.ledger != nil {
		defer w.ledger.settle()
	}
	err := w.write(out)
	if err == nil {
		return
	}
	if w.lost.lines == 0 {
		w.lost.since = w.now()
	}
	w.lost.lines += bytes.Count(b, []byte{'\n'})
	w.lost.bytes += len(b)
	w.lost.cause = err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		w.lost.cause = e.Err // without the path, which readers of the log need not see
	}
}

// write writes the entries of a batch, after the report of lines that were lost before.
func (w *writer) write(out *batch) error {
	b, lines := out.entries, out.lines
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	if w.size > 0 && w.size+int64(len(b)) > w.opt.MaxBytes {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	next := w.progress
	if w.lost.lines > 0 {
		notice, n := w.own(w.lost.notice())
		b = append(notice, b...)
		lines += n
		next.lost, next.unended[Stderr.index()] = loss{}, false
	}
	if w.size == 0 && w.total.Bytes > 0 {
		b = tagged(b, w.total)
	}
	next.total.Bytes += int64(len(b))
	next.total.Lines += lines
	if len(out.entries) > 0 {
		next.unended[out.stream.index()] = out.partial
	}
	written := 0
	if w.ledger != nil {
		var err error
		if written, err = w.ledger.intend(next, b); err != nil {
			return err
		}
	}
	n, err := w.file.Write(b[written:])
	n += written
	if err != nil {
		// Remove a partial entry. If this fails too, the next open terminates the line.
		if n > 0 {
			_ = w.file.Truncate(w.size)
		}
		_ = w.file.Close()
		w.file = nil
		return err
	}
	w.size += int64(n)
	w.progress = next
	return nil
}

// notice returns the text that reports dropped lines.
func (l loss) notice() string {
	return fmt.Sprintf("podstead: %d lines (%d bytes) of the log since %s could not be written and are lost: %v",
		l.lines, l.bytes, l.since.UTC().Format(timeFormat), l.cause)
}

// own returns a line of podstead, which is on the stream of errors, and the number of lines that its entries complete. It ends a line of
// the container that is not complete, so that the two are not joined.
func (w *writer) own(text string) (entries []byte, lines int64) {
	stamp := []byte(w.now().UTC().Format(timeFormat))
	if w.unended[Stderr.index()] {
		entries, lines = appendEntry(nil, stamp, Stderr, false, nil), 1
	}
	return appendEntry(entries, stamp, Stderr, false, []byte(text)), lines + 1
}

func (w *writer) open() error {
	dir, err := openDirectory(filepath.Dir(w.path), true)
	if err != nil {
		return err
	}
	defer dir.close()
	return w.openIn(dir)
}

func (w *writer) openIn(dir *directory) error {
	if !w.counted {
		if err := w.countExisting(dir, filepath.Base(w.path)); err != nil {
			return err
		}
		w.counted = true
	}
	f, err := dir.open(filepath.Base(w.path), os.O_CREATE|os.O_APPEND|os.O_RDWR)
	if err != nil {
		return err
	}
	size, err := endLine(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	w.file, w.size = f, size
	return nil
}

// endLine terminates a line that a power failure or failed truncation left incomplete, and returns the file's size.
func endLine(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := st.Size()
	if size == 0 {
		return 0, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return 0, err
	}
	if last[0] == '\n' {
		return size, nil
	}
	n, err := f.Write([]byte{'\n'})
	return size + int64(n), err
}

// rotate moves path to path.1, path.1 to path.2 and so on, starting with the oldest. Followers rely on a file having moved before
// the next one takes its name. If a name is free, older files keep theirs: a rotation that was killed is finished, not repeated.
func (w *writer) rotate() error {
	if err := w.file.Close(); err != nil {
		w.file = nil
		return err
	}
	w.file = nil
	dir, err := openDirectory(filepath.Dir(w.path), true)
	if err != nil {
		return err
	}
	defer dir.close()
	name := filepath.Base(w.path)
	if w.opt.Keep == 1 {
		if err := unix.Unlinkat(dir.fd, name, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "remove", Path: w.path, Err: err}
		}
		return w.openIn(dir)
	}
	oldest := 1
	for ; oldest < w.opt.Keep-1; oldest++ {
		if free, err := dir.free(rotated(name, oldest)); err != nil {
			return err
		} else if free {
			break
		}
	}
	for i := oldest - 1; i >= 0; i-- {
		err := unix.Renameat(dir.fd, rotated(name, i), dir.fd, rotated(name, i+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "rename", Path: rotated(w.path, i), Err: err}
		}
	}
	if w.opt.Compress {
		w.compress()
	}
	return w.openIn(dir)
}

// rotated returns the name of the log's i-th file. 0 is the current one.
func rotated(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// reportDropped writes the notice of lines that the rate limit has dropped.
func (w *writer) reportDropped(lines int64, during time.Duration) {
	text := fmt.Sprintf("podstead: %d lines dropped in %v (rate limit %v)", lines, during.Round(time.Second), w.opt.Rate)
	if w.sink != nil {
		w.sink.Entry(w.now(), Stderr, false, []byte(text))
	}
	w.report(text)
}

// report writes a line of podstead.
func (w *writer) report(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := batch{stream: Stderr}
	out.entries, out.lines = w.own(text)
	w.flushLocked(&out)
}
