package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// processHandle refers to a process, which need not be a child of this one. Reuse of the process ID does not affect it.
type processHandle struct {
	file *os.File // a pidfd, nil if the process has exited
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

// kill sends SIGKILL to the process. It may have exited.
func (p processHandle) kill() {
	if p.file == nil {
		return
	}
	if conn, err := p.file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
}

// reap removes the process if it is a child of this one and has exited. It does nothing otherwise.
func (p processHandle) reap() {
	if p.file == nil {
		return
	}
	if conn, err := p.file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.Waitid(unix.P_PIDFD, int(fd), nil, unix.WEXITED|unix.WNOHANG, nil) })
	}
}

// wait returns when the process has exited. It needs no thread: the Go runtime polls the pidfd.
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
