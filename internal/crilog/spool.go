package crilog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// This file has the spool of a stream: a file on a tmpfs between a container and its log. It does not know the format of the log.
//
// The size of the file is the number of bytes that the container has written since its start. What is in the log is removed by
// punching holes, which does not change the size. Thus every position is valid for the life of the spool, and a kill between the
// write of the log and the removal does nothing.

// maxSpool bounds what a spool holds, in bytes.
const maxSpool = 1 << 20

// ErrSpoolFull means that the spool of a stream has no space until [Feed.Flush] has written the log.
var ErrSpoolFull = errors.New("spool of the log is full")

// spool is the spool of one stream. It keeps no descriptor while it is at rest.
type spool struct {
	size   int64
	unread int32 // bytes at its end that are not in the log
	unseen int32 // bytes at its end that Flush has not seen; others are of a line that is not complete
	fd     int32 // -1: not open
}

// open opens the file, and creates it if necessary.
func (s *spool) open(path string) error {
	if s.fd >= 0 {
		return nil
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	s.fd = int32(fd)
	return nil
}

func (s *spool) close() {
	if s.fd >= 0 {
		_ = unix.Close(int(s.fd))
		s.fd = -1
	}
}

// splice moves bytes from a FIFO to the end of the spool. They are consumed and stored by one system call, which SIGKILL does not cut.
func (s *spool) splice(fd, limit int) (int, error) {
	free := maxSpool - int(s.unread)
	if free <= 0 {
		return 0, ErrSpoolFull
	}
	if limit = min(limit, free); limit <= 0 {
		return 0, nil
	}
	n, err := retry(func() (int, error) {
		end := s.size
		n, err := unix.Splice(fd, nil, int(s.fd), &end, limit, unix.SPLICE_F_NONBLOCK)
		return int(n), err
	})
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.ENOMEM):
		return 0, fmt.Errorf("%w: %w", ErrSpoolFull, err)
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	s.size += int64(n)
	s.unread += int32(n)
	s.unseen += int32(n)
	return n, nil
}

// until returns the spool as it was when it ended at a position.
func (s spool) until(end int64) spool {
	more := int32(s.size - end)
	s.size, s.unread, s.unseen = end, max(s.unread-more, 0), max(s.unseen-more, 0)
	return s
}

// setRead sets what is in the log, and what Flush has seen: all bytes before these positions.
func (s *spool) setRead(read, seen int64) {
	s.unread = int32(s.size - read)
	s.unseen = min(s.unseen, int32(s.size-max(seen, read)))
}

// punch frees the memory of all bytes that are in the log. Nothing before from is left.
func (s *spool) punch(from int64) error {
	page := int64(os.Getpagesize())
	from -= from % page
	end := s.size - int64(s.unread)
	if s.unread == 0 {
		end += page - 1 // with the rest of its last page, since the file is not extended
	}
	if end -= end % page; end <= from || s.fd < 0 {
		return nil
	}
	_, err := retry(func() (int, error) {
		return 0, unix.Fallocate(int(s.fd), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, end-from)
	})
	return err
}

// readSpool fills b with the bytes at an offset, which must exist.
func readSpool(fd int, b []byte, offset int64) error {
	n, err := retry(func() (int, error) { return unix.Pread(fd, b, offset) })
	if err == nil && n < len(b) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
