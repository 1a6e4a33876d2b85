package crilog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"
)

// maxLine bounds what a reader keeps of one line, in bytes. A longer one comes in parts.
const maxLine = 1 << 20

// ReadOptions say what [Read] yields. The zero value is all that is there.
type ReadOptions struct {
	// Tail, if positive, is the number of lines at the log's end to begin with. A negative one is none.
	Tail int
	// Since leaves out what is older.
	Since time.Time
	// Until, if it is not nil, has the reader wait for more at the end of the log until Until is closed and all that
	// was written before is read: the end of a container's run.
	Until <-chan struct{}
}

// Read yields the lines of the log at path from its oldest file on, each with the time of its first part and without
// its newline; an entry that is Partial is a part of more than 1 MiB of a line. A line's Text is valid until the next
// one. What is not in CRI format is left out, and a log without a file is an empty one. Rotation loses and repeats
// nothing, unless files are rotated away faster than they are read. The last value may be an error: the file's, or ctx's.
func Read(ctx context.Context, path string, o ReadOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := reader{path: path, opt: o, parts: map[Stream]*Entry{}, yield: yield}
		defer r.close()
		if err := r.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
}

var (
	errStopped     = errors.New("stopped")      // whoever takes the lines wants no more
	errRotatedAway = errors.New("rotated away") // the current file is none of the log's any more
)

// reader reads one log.
type reader struct {
	path  string
	opt   ReadOptions
	yield func(Entry, error) bool

	files  []*os.File // to be read, the oldest first
	offset int64      // of buf in files[0]
	buf    []byte     // read, and not yet taken
	parts  map[Stream]*Entry
}

func (r *reader) run(ctx context.Context) error {
	// The watch comes before the first look, so that nothing falls between.
	w := r.watch()
	defer w.close()
	if err := r.openAll(); err != nil {
		return err
	}
	if err := r.skipToTail(); err != nil {
		return err
	}
	for {
		last := r.opt.Until == nil || closed(r.opt.Until)
		if err := r.readAll(ctx); err != nil {
			return err
		}
		if last {
			return r.flush()
		}
		if err := w.wait(ctx, r.opt.Until); err != nil {
			return err
		}
	}
}

// readAll reads to the end of the newest file.
func (r *reader) readAll(ctx context.Context) error {
	for {
		if len(r.files) == 0 {
			if err := r.openAll(); err != nil || len(r.files) == 0 {
				return err
			}
		}
		if err := r.readFile(ctx); err != nil {
			return err
		}
		if len(r.files) == 1 {
			next, err := r.successor()
			if errors.Is(err, errRotatedAway) {
				r.next()
				continue
			}
			if err != nil || next == nil {
				return err
			}
			// Between the end that we saw and the rotation more may have come.
			if err := r.readFile(ctx); err != nil {
				return errors.Join(err, next.Close())
			}
			r.files = append(r.files, next)
		}
		r.next()
	}
}

// next goes on to the next file.
func (r *reader) next() {
	_ = r.files[0].Close()
	r.files = slices.Delete(r.files, 0, 1)
	r.offset, r.buf = 0, r.buf[:0]
}

// readFile takes all whole lines up to the end of the current file.
func (r *reader) readFile(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(r.buf) == cap(r.buf) {
			r.buf = slices.Grow(r.buf, 64<<10)
		}
		n, err := r.files[0].ReadAt(r.buf[len(r.buf):cap(r.buf)], r.offset+int64(len(r.buf)))
		r.buf = r.buf[:len(r.buf)+n]
		if err := r.takeLines(); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			r.buf = r.buf[:0] // what has no end yet is read again: its writer may take it back, and write something else
			return r.checkTruncated()
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// checkTruncated goes back in a file that has become shorter than the lines that were taken from it.
func (r *reader) checkTruncated() error {
	st, err := r.files[0].Stat()
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	r.offset = min(r.offset, st.Size())
	return nil
}

// takeLines takes the whole lines out of the buffer.
func (r *reader) takeLines() error {
	rest := r.buf
	var err error
	for err == nil {
		line, after, ok := bytes.Cut(rest, []byte{'\n'})
		if !ok {
			break
		}
		err = r.take(line)
		rest = after
	}
	if len(rest) > maxLine {
		rest = nil // not written by us
	}
	r.offset += int64(len(r.buf) - len(rest))
	r.buf = r.buf[:copy(r.buf, rest)]
	return err
}

// take takes one line of a file.
func (r *reader) take(line []byte) error {
	e, err := Parse(line)
	if err != nil {
		return nil //nolint:nilerr // see Read
	}
	part := r.parts[e.Stream]
	if part == nil && !e.Partial {
		return r.send(e)
	}
	if part == nil {
		part = &Entry{Time: e.Time, Stream: e.Stream, Partial: true}
		r.parts[e.Stream] = part
	}
	part.Text = append(part.Text, e.Text...)
	if part.Partial = e.Partial; e.Partial && len(part.Text) < maxLine {
		return nil
	}
	delete(r.parts, e.Stream)
	return r.send(*part)
}

// flush sends what the log ends with: a line without its end.
func (r *reader) flush() error {
	for _, s := range []Stream{Stdout, Stderr} {
		if part := r.parts[s]; part != nil {
			if err := r.send(*part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) send(e Entry) error {
	if e.Time.Before(r.opt.Since) {
		return nil
	}
	if !r.yield(e, nil) {
		return errStopped
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
