package crilog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// openAll opens the files of the log from the newest to the oldest, in the direction in which rotation moves them. A file that
// moves meanwhile is found twice, never missed.
func (r *reader) openAll() error {
	dir, name, err := r.directory()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.close()
	oldest, err := dir.oldestFile(name)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	var found []fileID
	// One more for a rotation in progress.
	for i := range oldest + 2 {
		f, err := dir.open(rotated(name, i), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		id, err := identify(f)
		if err != nil {
			return fmt.Errorf("read log: %w", errors.Join(err, f.Close()))
		}
		if slices.Contains(found, id) {
			_ = f.Close()
			continue
		}
		text, err := newFile(f)
		if err != nil {
			return fmt.Errorf("read log: %w", errors.Join(err, f.Close()))
		}
		found = append(found, id)
		r.files = append(r.files, text)
	}
	slices.Reverse(r.files)
	r.offset = 0
	r.dropRead()
	return nil
}

// dropRead drops the oldest files if they were read before, in the form that they had before they were compressed.
func (r *reader) dropRead() {
	for r.place.begun && len(r.files) > 1 {
		start := r.files[1].start()
		if start == nil || start.Lines > r.place.sent {
			return
		}
		r.next()
	}
}

// directory opens the directory of the log. It also returns the name of the log in it.
func (r *reader) directory() (dir *directory, name string, err error) {
	if dir, err = openDirectory(filepath.Dir(r.path), false); err != nil {
		return nil, "", fmt.Errorf("read log: %w", err)
	}
	return dir, filepath.Base(r.path), nil
}

// successor opens the file that follows the current one, or returns nil if the current one is the newest.
func (r *reader) successor() (*os.File, error) {
	current, err := identify(r.files[0].File)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	dir, name, err := r.directory()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errRotatedAway
	}
	if err != nil {
		return nil, err
	}
	defer dir.close()
	for i := 0; ; i++ {
		id, err := dir.stat(rotated(name, i))
		if errors.Is(err, fs.ErrNotExist) {
			if i == 0 {
				continue // rotation in progress
			}
			return nil, errRotatedAway
		}
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		if id != current {
			continue
		}
		if i == 0 {
			return nil, nil
		}
		next, err := dir.open(rotated(name, i-1), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // not created yet, retried after the next notification
		}
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		// Rotation starts with the oldest file. If the current file has not moved, its successor has not moved either.
		if id, err := dir.stat(rotated(name, i)); err == nil && id == current {
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

// skipToTail skips what precedes the requested last lines.
func (r *reader) skipToTail() error {
	if r.opt.Tail == 0 {
		return nil
	}
	need := max(r.opt.Tail, 0)
	for i, f := range slices.Backward(r.files) {
		n, start, err := tail(f, need, i == len(r.files)-1)
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
		r.place.begun, r.place.unsure = true, true
		return nil
	}
	return nil
}

// tail returns the offset of the last lines of a file: need of them, or all n if there are fewer. In the newest file of a log, a line that
// is not complete is a line too.
func tail(f *file, need int, newest bool) (n int, start int64, err error) {
	var (
		ends []int64 // end offsets of the last need+1 lines
		open = map[Stream]int64{}
		end  int64
		in   = f.lines()
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
		switch {
		case err != nil:
		case e.Partial:
			open[e.Stream] = end
		default:
			delete(open, e.Stream)
			n++
			if ends = append(ends, end); len(ends) > 2*(need+1) {
				ends = slices.Delete(ends, 0, len(ends)-need-1)
			}
		}
	}
	if newest {
		n += len(open)
		ends = slices.AppendSeq(ends, maps.Values(open))
		slices.Sort(ends)
	}
	if n <= need {
		return n, 0, nil
	}
	return need, ends[len(ends)-need-1], nil
}
