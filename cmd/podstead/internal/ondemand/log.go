package ondemand

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLogSize is the size at which the daemon's log is rotated, in bytes. One old file is kept.
const maxLogSize = 1 << 20

func create(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|flags, 0o600)
}

func oldLog(path string) string { return strings.TrimSuffix(path, ".log") + ".old.log" }

// Log is the log of a daemon that was started on demand: its standard output and error. It is rotated while the daemon runs, because such a
// daemon can run for months.
type Log struct {
	path string
	file *os.File
	fds  []int // that refer to the file
	// failed is set after an error was written.
	failed bool
}

// NewLog returns the log at a path, to which file and the descriptors refer. If they refer to something else, it is not rotated.
func NewLog(path string, file *os.File, fds ...int) *Log {
	return &Log{path: path, file: file, fds: fds}
}

// Write implements [io.Writer]. The error of a rotation is not returned but written, once: the log then continues in the same file. It is
// not safe for concurrent use.
func (l *Log) Write(text []byte) (int, error) {
	n, err := l.file.Write(text)
	if st, statErr := l.file.Stat(); statErr == nil && st.Size() > maxLogSize {
		if err := l.rotate(st); err != nil && !l.failed {
			l.failed = true
			_, _ = fmt.Fprintf(l.file, "cannot rotate the log: %v\n", err)
		}
	}
	return n, err
}

// rotate has the descriptors refer to a new file. It does nothing if the log is another file.
func (l *Log) rotate(st os.FileInfo) error {
	at, err := os.Stat(l.path)
	if ours := err == nil && os.SameFile(at, st); !ours {
		return nil
	}
	next := l.path + ".new"
	f, err := create(next, os.O_TRUNC)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(os.Rename(l.path, oldLog(l.path)), os.Rename(next, l.path)); err != nil {
		return err
	}
	for _, fd := range l.fds {
		if err := unix.Dup3(int(f.Fd()), fd, 0); err != nil {
			return fmt.Errorf("redirect descriptor %d: %w", fd, err)
		}
	}
	return nil
}
