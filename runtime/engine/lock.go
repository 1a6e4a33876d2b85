package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse is the error of [Start] if another process uses the root directory. Pid is that process, or 0 if it is unknown.
type ErrInUse struct {
	Path string
	Pid  int
}

// Error names the lock file and the process.
func (e *ErrInUse) Error() string {
	if e.Pid == 0 {
		return fmt.Sprintf("engine is in use by another process (lock %s)", e.Path)
	}
	return fmt.Sprintf("engine is in use by process %d (lock %s)", e.Pid, e.Path)
}

// lock is held by the one process that may use an engine's directories. containerd has a lock of its own, but waits for it
// without a timeout and does not name the holder.
type lock struct{ file *os.File }

// deadHolderTimeout bounds the wait for a lock whose holder is dead. A child that the holder forked just before it was killed
// keeps the lock until its exec.
const deadHolderTimeout = 10 * time.Second

// LockPath returns the path of the lock of an engine with this root directory.
func LockPath(root string) string { return filepath.Join(root, "lock") }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock engine: %w", err)
	}
	if err := flock(f); err != nil {
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

// flock locks the file. It waits only while the process recorded in the file is dead.
func flock(f *os.File) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); ; <-tick.C {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Since(start) > deadHolderTimeout {
			return err
		}
		if pid := holder(f); pid == 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return err
		}
	}
}

func writePid(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder returns the process ID recorded in the file, or 0 if the file is being written.
func holder(f *os.File) int {
	b := make([]byte, 20)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// release releases the lock. The file stays: after its removal two processes could lock two files of the same name.
func (l *lock) release() error {
	if l == nil {
		return nil
	}
	// Closing the file is not enough: a child between fork and exec has it open too.
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
