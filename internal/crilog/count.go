package crilog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// Count is a part of a log. Bytes are those of its files before compression. Negative Lines are an unknown number of lines.
type Count struct{ Lines, Bytes int64 }

const (
	linesTag = "lines="
	bytesTag = "bytes="
)

// parseStart returns what the tags of an entry say about the part of the log before it, nil if they say nothing.
func parseStart(tags []byte) *Count {
	if len(tags) == 0 {
		return nil
	}
	first, rest, _ := bytes.Cut(tags, []byte{':'})
	second, _, _ := bytes.Cut(rest, []byte{':'})
	lines, ok1 := bytes.CutPrefix(first, []byte(linesTag))
	size, ok2 := bytes.CutPrefix(second, []byte(bytesTag))
	if !ok1 || !ok2 {
		return nil
	}
	var c Count
	var err1, err2 error
	c.Lines, err1 = strconv.ParseInt(string(lines), 10, 64)
	c.Bytes, err2 = strconv.ParseInt(string(size), 10, 64)
	if err1 != nil || err2 != nil || c.Lines < 0 || c.Bytes < 0 {
		return nil
	}
	return &c
}

// tagged returns entries with the tags of the first entry of a file.
func tagged(entries []byte, before Count) []byte {
	end := 0 // of the tag F or P of the first entry
	for range 2 {
		end += bytes.IndexByte(entries[end:], ' ') + 1
	}
	end++
	out := make([]byte, 0, len(entries)+64)
	out = append(out, entries[:end]...)
	out = strconv.AppendInt(append(out, ":"+linesTag...), before.Lines, 10)
	out = strconv.AppendInt(append(out, ":"+bytesTag...), before.Bytes, 10)
	return append(out, entries[end:]...)
}

// lineCounter counts the lines of one stream as [Read] yields them: a line of many parts is several of them.
type lineCounter struct{ parts int }

// entry returns the number of lines that an entry completes.
func (c *lineCounter) entry(partial bool) int64 {
	if c.parts++; partial && c.parts < maxLine/maxPart {
		return 0
	}
	c.parts = 0
	return 1
}

// countExisting counts the part of the log that an earlier writer has left, from its newest file that is not empty.
func (w *writer) countExisting(dir *directory, name string) error {
	for i := range 2 {
		f, err := dir.open(rotated(name, i), os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c, err := countFile(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if c.Bytes > 0 {
			w.total = c
			return nil
		}
	}
	return nil
}

// countFile counts the part of a log up to the end of a file.
func countFile(f *os.File) (Count, error) {
	var total Count
	counters := map[Stream]*lineCounter{Stdout: {}, Stderr: {}}
	in, err := newFile(f)
	if err != nil {
		return total, err
	}
	lines := in.lines()
	for {
		line, err := lines.ReadSlice('\n')
		if first := total.Bytes == 0; len(line) > 0 {
			e, parseErr := Parse(bytes.TrimSuffix(line, []byte{'\n'}))
			if first && parseErr == nil && e.start != nil {
				total = *e.start
			}
			total.Bytes += int64(len(line))
			if parseErr == nil {
				total.Lines += counters[e.Stream].entry(e.Partial)
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
