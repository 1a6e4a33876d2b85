package crilog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// openAll opens the files of the log from the newest to the oldest, in the direction in which rotation moves them. A file that
// moves meanwhile is found twice, never missed.
func (r *reader) openAll() error {
	rotatedFiles, err := filepath.Glob(globQuote(r.path) + ".[0-9]*")
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	// One more for a rotation in progress.
	for i := range len(rotatedFiles) + 2 {
		f, err := os.Open(rotated(r.path, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		same := slices.ContainsFunc(r.files, func(o *os.File) bool { return sameFile(f, o) })
		if same {
			_ = f.Close()
			continue
		}
		r.files = append(r.files, f)
	}
	slices.Reverse(r.files)
	r.offset = 0
	return nil
}

// successor opens the file that follows the current one, or returns nil if the current one is the newest.
func (r *reader) successor() (*os.File, error) {
	cur, err := r.files[0].Stat()
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	for i := 0; ; i++ {
		st, err := os.Stat(rotated(r.path, i))
		if errors.Is(err, fs.ErrNotExist) {
			if i == 0 {
				continue // rotation in progress
			}
			return nil, errRotatedAway
		}
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		if !os.SameFile(cur, st) {
			continue
		}
		if i == 0 {
			return nil, nil
		}
		next, err := os.Open(rotated(r.path, i-1))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // not created yet, retried after the next notification
		}
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		// Rotation starts with the oldest file. If the current file has not moved, its successor has not moved either.
		if st, err := os.Stat(rotated(r.path, i)); err == nil && os.SameFile(cur, st) {
			return next, nil
		}
		_ = next.Close()
		i = -1
	}
}

func (r *reader) close() {
	for _, f := range r.files {
		_ = f.Close()
	}
}

func sameFile(a, b *os.File) bool {
	sa, errA := a.Stat()
	sb, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(sa, sb)
}

// globQuote escapes the characters that Glob would interpret.
func globQuote(path string) string {
	var b []byte
	for _, c := range []byte(path) {
		if bytes.IndexByte([]byte(`*?[\`), c) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(b)
}

// skipToTail skips what precedes the requested last lines.
func (r *reader) skipToTail() error {
	if r.opt.Tail == 0 {
		return nil
	}
	need := max(r.opt.Tail, 0)
	for i, f := range slices.Backward(r.files) {
		n, start, err := tail(f, need)
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if n < need {
			need -= n
			continue
		}
		for range i {
			r.next()
		}
		r.offset = start
		return nil
	}
	return nil
}

// tail returns the offset of the last lines of a file: need of them, or all n if there are fewer.
func tail(f *os.File, need int) (n int, start int64, err error) {
	var (
		ends []int64 // end offsets of the last need+1 lines, a ring buffer
		end  int64
		in   = bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 64<<10)
	)
	for {
		line, err := in.ReadSlice('\n')
		end += int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		e, err := Parse(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil || e.Partial {
			continue
		}
		if len(ends) <= need {
			ends = append(ends, end)
		} else {
			ends[n%(need+1)] = end
		}
		n++
	}
	if n <= need {
		return n, 0, nil
	}
	return need, ends[n%(need+1)], nil
}
