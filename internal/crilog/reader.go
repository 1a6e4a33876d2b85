package crilog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// maxLine bounds the memory for one line, in bytes. A longer line is returned in parts.
const maxLine = 1 << 20

// ReadOptions select what [Read] returns. The zero value selects all lines.
type ReadOptions struct {
	// Tail, if positive, is the number of lines at the end of the log to start with. If negative, existing lines are skipped.
	Tail int
	// Until, if not nil, makes Read wait for more lines at the end of the log until Until is closed and everything written before
	// is read. Close it when the container has exited.
	Until <-chan struct{}
	// Complete leaves out incomplete lines at the end of the log, such as those that are still being written.
	Complete bool
}

// Read yields the lines of the log at path, starting with its oldest file, each with the time of its first part and without its newline.
// Unless it waits for more lines, it ends with those that existed when it began. A Partial entry is a part of a line of more than 1 MiB, or
// a line at the end of the log that has no newline. The Text is valid until the next iteration. Lines that are not in CRI format are
// skipped. A missing file is an empty log. Rotation causes no lost or repeated lines. Where files were removed before they were read, an
// entry with Skipped tells how much they had. The last value may be an error of a file or of ctx.
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
	errStopped     = errors.New("stopped")      // the consumer stopped the iteration
	errRotatedAway = errors.New("rotated away") // the current file was removed from the log
)

// reader reads one log.
type reader struct {
	path  string
	opt   ReadOptions
	yield func(Entry, error) bool

	files  []*file // files to read, the oldest first
	offset int64   // offset of buf in files[0]
	buf    []byte  // read but not yet consumed
	parts  map[Stream]*Entry
	place  place

	// last is the file that ends what is read, and end its size in bytes at the beginning: a container can write faster than the reader
	// reads. Nil: the reader waits for more lines.
	last *file
	end  int64 // negative: all of it
}

func (r *reader) run(ctx context.Context) error {
	// The watch starts before the first read, so that no change is missed.
	w := r.watch()
	defer w.close()
	if err := r.openAll(); err != nil {
		return err
	}
	if err := r.skipToTail(); err != nil {
		return err
	}
	if r.opt.Until == nil {
		if len(r.files) == 0 {
			return nil
		}
		r.last = r.files[len(r.files)-1]
		var err error
		if r.end, err = r.last.size(); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
	for {
		last := r.opt.Until == nil || closed(r.opt.Until)
		if err := r.readAll(ctx); err != nil {
			return err
		}
		if last && r.opt.Complete {
			return nil
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
		if r.files[0] == r.last {
			return nil
		}
		if len(r.files) == 1 {
			next, err := r.successor()
			if errors.Is(err, errRotatedAway) {
				r.next()
				r.place.lost = true
				continue
			}
			if err != nil || next == nil {
				return err
			}
			// Lines may have been written between EOF and the rotation.
			if err := r.readFile(ctx); err != nil {
				return errors.Join(err, next.Close())
			}
			text, err := newFile(next)
			if err != nil {
				return fmt.Errorf("read log: %w", errors.Join(err, next.Close()))
			}
			r.files = append(r.files, text)
		}
		r.next()
	}
}

// next continues with the next file.
func (r *reader) next() {
	_ = r.files[0].Close()
	r.files = slices.Delete(r.files, 0, 1)
	r.offset, r.buf = 0, r.buf[:0]
}

// readFile consumes all complete lines up to the end of the current file.
func (r *reader) readFile(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(r.buf) == cap(r.buf) {
			r.buf = slices.Grow(r.buf, 64<<10)
		}
		n, err := r.readAt(r.buf[len(r.buf):cap(r.buf)], r.offset+int64(len(r.buf)))
		r.buf = r.buf[:len(r.buf)+n]
		if err := r.takeLines(); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			r.buf = r.buf[:0] // an incomplete line is read again, because the writer may truncate and rewrite it
			return r.checkTruncated()
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// readAt reads the current file, the last one up to the end.
func (r *reader) readAt(b []byte, offset int64) (int, error) {
	if r.files[0] == r.last && r.end >= 0 {
		if offset >= r.end {
			return 0, io.EOF
		}
		b = b[:min(int64(len(b)), r.end-offset)]
	}
	return r.files[0].ReadAt(b, offset)
}

// checkTruncated rewinds a file that is shorter than what was consumed.
func (r *reader) checkTruncated() error {
	size, err := r.files[0].size()
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if size >= 0 {
		r.offset = min(r.offset, size)
	}
	return nil
}

// takeLines consumes the complete lines in the buffer.
func (r *reader) takeLines() error {
	rest := r.buf
	var err error
	for err == nil {
		line, after, ok := bytes.Cut(rest, []byte{'\n'})
		if !ok {
			break
		}
		err = r.take(line, r.offset == 0 && len(rest) == len(r.buf))
		rest = after
	}
	if len(rest) > maxLine {
		rest = nil // not written by this package
	}
	r.offset += int64(len(r.buf) - len(rest))
	r.buf = r.buf[:copy(r.buf, rest)]
	return err
}

// take consumes one line of a file, which may be its first.
func (r *reader) take(line []byte, first bool) error {
	e, err := Parse(line)
	if first {
		if err := r.begin(line, e); err != nil {
			return err
		}
	}
	r.place.read.Bytes += int64(len(line)) + 1
	if err != nil {
		return nil // see Read
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

// flush returns an incomplete line at the end of the log, or where lines are skipped.
func (r *reader) flush() error {
	for _, s := range []Stream{Stdout, Stderr} {
		part := r.parts[s]
		delete(r.parts, s)
		if part != nil {
			if err := r.send(*part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) send(e Entry) error {
	r.place.read.Lines++
	if r.place.read.Lines <= r.place.sent {
		return nil // sent before, from another copy of the file
	}
	r.place.sent = r.place.read.Lines
	e.Number, e.Numbered = r.place.read.Lines, r.place.numbered
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
