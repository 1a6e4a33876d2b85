package crilog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Defaults of [Options].
const (
	DefaultMaxBytes = 10 << 20
	DefaultKeep     = 5
)

const (
	// readSize is what one read takes from a container's pipe: half of what the pipe holds, so that the container can
	// fill the other half meanwhile.
	readSize = 32 << 10

	// flushSize bounds what many short lines, each with its time, can grow to before they are written.
	flushSize = 64 << 10
)

// Options are the limits of a log. The zero value has the defaults of Kubernetes.
type Options struct {
	// MaxBytes is the size at which a file is rotated; 0 is [DefaultMaxBytes].
	MaxBytes int64
	// Keep is the number of files of a log, the one being written included; 0 is [DefaultKeep].
	Keep int
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

// Writer is a container's log, open for writing. Both streams of the container share it. It is safe for concurrent use.
//
// A log never holds its container up: what cannot be written (the disk is full, the folder is gone) is dropped and
// counted, and a line in the log says so as soon as it can be written again.
type Writer struct {
	path string
	opt  Options
	now  func() time.Time

	mu   sync.Mutex
	file *os.File // nil when it could not be opened
	size int64
	lost loss
}

// loss counts what was dropped since the log was last writable.
type loss struct {
	lines, bytes int
	since        time.Time
	cause        error
}

// Open opens the log at path, an absolute one, and makes its folder. It appends to a log that is there. A file that
// cannot be opened now is tried again with each write, so the only error is a path that is not absolute.
func Open(path string, o Options) (*Writer, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("open log %q: path is not absolute", path)
	}
	w := &Writer{path: path, opt: o.withDefaults(), now: time.Now}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The first write reports what is wrong, in the log itself.
	_ = w.open()
	return w, nil
}

// Copy copies what a container writes to r into the log until r ends, one entry a line. It never stops for a log that
// cannot be written; the error is r's, and nil at its end.
func (w *Writer) Copy(r io.Reader, s Stream) error {
	in := make([]byte, readSize)
	var out []byte
	held := 0 // bytes at the start of in that belong to an unfinished line
	for {
		n, err := r.Read(in[held:])
		held += n
		out, held = w.append(out[:0], s, in[:held], err != nil)
		w.flush(out)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// append appends to out the entries of what is in in, and moves an unfinished line to in's start. That line's length
// is at most maxPart, so half of a reader's buffer is always free.
func (w *Writer) append(out []byte, s Stream, in []byte, end bool) (_ []byte, held int) {
	var buf [len(timeFormat)]byte
	stamp := w.now().UTC().AppendFormat(buf[:0], timeFormat)
	rest := in
	for len(rest) > 0 {
		i := bytes.IndexByte(rest[:min(len(rest), maxPart+1)], '\n')
		switch {
		case i >= 0:
			out = appendEntry(out, stamp, s, false, rest[:i])
			rest = rest[i+1:]
		case len(rest) > maxPart:
			out = appendEntry(out, stamp, s, true, rest[:maxPart])
			rest = rest[maxPart:]
		case end:
			out = appendEntry(out, stamp, s, false, rest)
			rest = nil
		default:
			return out, copy(in, rest)
		}
		if len(out) >= flushSize {
			w.flush(out)
			out = out[:0]
		}
	}
	return out, 0
}

// Close closes the file, after a last attempt to tell of what was lost. What is written afterwards opens it again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost.lines > 0 {
		_ = w.write(nil)
	}
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// flush writes whole entries, rotating before if they do not fit. It drops and counts them if it cannot.
func (w *Writer) flush(b []byte) {
	if len(b) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.write(b)
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
		w.lost.cause = e.Err // the log's readers need not know where it lies
	}
}

func (w *Writer) write(b []byte) error {
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
	if w.lost.lines > 0 {
		b = append(w.lost.notice(w.now()), b...)
	}
	n, err := w.file.Write(b)
	if err != nil {
		// No half entries. Where this fails too, opening the file ends the line.
		if n > 0 {
			_ = w.file.Truncate(w.size)
		}
		_ = w.file.Close()
		w.file = nil
		return err
	}
	w.size += int64(n)
	w.lost = loss{}
	return nil
}

// notice is the entry that tells what is missing before it.
func (l loss) notice(now time.Time) []byte {
	text := fmt.Sprintf("podstead: %d lines (%d bytes) of the log since %s could not be written and are lost: %v",
		l.lines, l.bytes, l.since.UTC().Format(timeFormat), l.cause)
	return appendEntry(nil, []byte(now.UTC().Format(timeFormat)), Stderr, false, []byte(text))
}

func (w *Writer) open() error {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(w.path), 0o750); err == nil {
			f, err = os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
		}
	}
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

// endLine ends a line that a loss of power or a failed truncation has left unfinished, and returns the file's size.
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

// rotate moves path to path.1, path.1 to path.2 and so on, from the oldest to the youngest: followers rely on a file
// having moved on before the next one takes its name.
func (w *Writer) rotate() error {
	if err := w.file.Close(); err != nil {
		w.file = nil
		return err
	}
	w.file = nil
	if w.opt.Keep == 1 {
		if err := os.Remove(w.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return w.open()
	}
	for i := w.opt.Keep - 2; i >= 0; i-- {
		err := os.Rename(rotated(w.path, i), rotated(w.path, i+1))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return w.open()
}

// rotated is the name of the log's i-th file; 0 is the one being written.
func rotated(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}
