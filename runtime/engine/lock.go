package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse is the error of an engine whose folder another process has. Pid is that process, or 0 where it cannot be
// told.
type ErrInUse struct {
	Path string
	Pid  int
}

// Error names the folder's lock and who has it.
func (e *ErrInUse) Error() string {
	if e.Pid == 0 {
		return fmt.Sprintf("engine is in use by another process (lock %s)", e.Path)
	}
	return fmt.Sprintf("engine is in use by process %d (lock %s)", e.Pid, e.Path)
}

// lock is held by the one process that may use an engine's folders. containerd has a lock of its own, but waits for it
// without end and does not say for whom.
type lock struct{ file *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock engine: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &ErrInUse{Path: path, Pid: holder(f)}
		}
		return nil, fmt.Errorf("lock engine %s: %w", path, err)
	}
	if err := errors.Join(f.Truncate(0), writePid(f)); err != nil {
		return nil, errors.Join(fmt.Errorf("lock engine %s: %w", path, err), f.Close())
	}
	return &lock{file: f}, nil
}

func writePid(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder is the process whose ID stands in the file, or 0 if it was read just while being written.
func holder(f *os.File) int {
	b, err := io.ReadAll(io.LimitReader(f, 20))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// release frees the lock. The file stays: to remove it would let two processes lock two files of one name.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
