package crilog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
)

// gzipMagic are the first bytes of a compressed file.
var gzipMagic = []byte{0x1f, 0x8b, 0x08}

// file is an open file of a log, compressed or not.
type file struct {
	*os.File
	unpack *gzip.Reader // nil if the file is not compressed
	at     int64        // offset of unpack in the text
}

// newFile returns the text of a file.
func newFile(f *os.File) (*file, error) {
	var magic [3]byte
	n, err := f.ReadAt(magic[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	file := &file{File: f}
	if n == len(magic) && bytes.Equal(magic[:], gzipMagic) && file.rewind() != nil {
		file.unpack = nil // damaged: it has no lines
	}
	return file, nil
}

func (f *file) rewind() error {
	compressed := bufio.NewReader(io.NewSectionReader(f.File, 0, 1<<62))
	f.at = 0
	if f.unpack != nil {
		return f.unpack.Reset(compressed)
	}
	var err error
	f.unpack, err = gzip.NewReader(compressed)
	return err
}

// ReadAt reads the text at an offset. For a compressed file, it is fast only for increasing offsets. A damaged file ends where it is
// damaged.
func (f *file) ReadAt(p []byte, offset int64) (int, error) {
	if f.unpack == nil {
		return f.File.ReadAt(p, offset)
	}
	if offset < f.at {
		if err := f.rewind(); err != nil {
			return 0, err
		}
	}
	n, err := io.CopyN(io.Discard, f.unpack, offset-f.at)
	f.at += n
	if err != nil {
		return 0, io.EOF
	}
	m, err := io.ReadFull(f.unpack, p)
	f.at += int64(m)
	if err != nil {
		err = io.EOF
	}
	return m, err
}

// size returns the size of the text, or -1 for a compressed file, which never changes.
func (f *file) size() (int64, error) {
	if f.unpack != nil {
		return -1, nil
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// lines returns a reader of the text from its start. Its buffer holds every line of this package.
func (f *file) lines() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 64<<10)
}

// start returns the tags of the first entry, nil if it has none.
func (f *file) start() *Count {
	line, err := f.lines().ReadSlice('\n')
	if err != nil {
		return nil
	}
	e, err := Parse(bytes.TrimSuffix(line, []byte{'\n'}))
	if err != nil {
		return nil
	}
	return e.start
}
