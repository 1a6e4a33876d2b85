package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// processHandle is a process that need not be our child, and whose ID cannot come to mean another one.
type processHandle struct {
	file *os.File // a pidfd; nil for a process that has ended
}

func openProcess(pid int) (processHandle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return processHandle{}, nil
	}
	if err != nil {
		return processHandle{}, fmt.Errorf("open process %d: %w", pid, err)
	}
	return processHandle{os.NewFile(uintptr(fd), "pidfd")}, nil
}

func (p processHandle) close() {
	if p.file != nil {
		_ = p.file.Close()
	}
}

// wait returns when the process has ended. It costs no thread: the runtime's poller waits for the pidfd.
func (p processHandle) wait(ctx context.Context) error {
	if p.file == nil {
		return nil
	}
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var pollErr error
	err = conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			return false
		}
		pollErr = err
		return n > 0 || err != nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, pollErr)
}
