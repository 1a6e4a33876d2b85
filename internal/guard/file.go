package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld means that another process holds the file.
//
// A container that has a file of the host mounted can delay any process that opens or uses it: by a lease (fcntl(2), F_SETLEASE), for
// /proc/sys/fs/lease-break-time each time; by a mandatory lock; by writes that keep the inode locked. Therefore [OpenFile] never waits, and
// [UseFile] has a deadline.
var ErrHeld = errors.New("the file is held by another process")

// fileTimeout bounds the use of a file. It is long enough for a slow disk, and shorter than what a container's start or exit may be delayed
// by.
const fileTimeout = 5 * time.Second

// OpenFile opens an existing regular file without waiting and without following a link. The flags are O_RDONLY or O_RDWR. Nothing but a
// regular file is opened. The error is [ErrHeld] if another process has a lease.
func OpenFile(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) // breaks no lease, and has no effect on a FIFO or device
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return OpenFound(fd, path, flags)
}

// OpenFound is [OpenFile] for a descriptor of O_PATH. The path is for errors.
func OpenFound(fd int, path string, flags int) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	opened, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fileError(&os.PathError{Op: "open", Path: path, Err: err})
	}
	return os.NewFile(uintptr(opened), path), nil
}

// fileError returns the error of an operation on a file of [OpenFile], which is [ErrHeld] if the operation would have to wait.
func fileError(err error) error {
	if errors.Is(err, unix.EAGAIN) && !errors.Is(err, ErrHeld) {
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return err
}

// FileUsers runs functions that use files. The zero value is ready for use, by several goroutines.
type FileUsers struct{ running KeyedMutex }

// UseFile runs use, which uses a file, and waits for it at most 5 seconds. Then the error is [ErrHeld], and use continues in the
// background. At most one function runs for each path.
func UseFile[T any](ctx context.Context, u *FileUsers, path string, use func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fileTimeout, fmt.Errorf("%w: %s did not respond within %v", ErrHeld, path, fileTimeout))
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	var none T
	unlock, err := u.running.Lock(ctx, path)
	if err != nil {
		return none, context.Cause(ctx)
	}
	done := make(chan outcome, 1)
	go func() {
		defer unlock()
		value, err := use()
		done <- outcome{value, fileError(err)}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
