package hostcondition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// minInterval is the interval between checks of a condition while the kernel reports changes, such as new files in /tmp.
const minInterval = 100 * time.Millisecond

// poller waits for files of the kernel with poll(2). The poller of package os does not support mountinfo, which reports changes as an
// exceptional condition (proc_pid_mountinfo(5)). It is not safe for concurrent use.
type poller struct {
	files []unix.PollFd // the first one is an eventfd, which the end of ctx makes readable
	close func()
	next  time.Time // earliest return of wait after an event
}

// newPoller returns a poller for files, which are not closed with it. A file with a negative descriptor is ignored.
func newPoller(ctx context.Context, files ...unix.PollFd) (*poller, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	written := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(written)
		_, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail: the counter is 0
	})
	return &poller{
		files: append([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, files...),
		close: func() {
			if !stop() {
				<-written
			}
			_ = unix.Close(fd)
		},
	}, nil
}

// wait returns when a file has an event or the timeout has passed (0: no timeout), or with the error of ctx. It returns at most once in
// minInterval.
func (p *poller) wait(ctx context.Context, timeout time.Duration) error {
	milliseconds := -1
	if timeout > 0 {
		milliseconds = int(timeout.Milliseconds())
	}
	_, err := unix.Poll(p.files, milliseconds)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.Is(err, unix.EINTR):
		return fmt.Errorf("poll: %w", err)
	}
	pause := time.NewTimer(time.Until(p.next))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.next = time.Now().Add(minInterval)
	return nil
}

// until checks a condition until it is met, and again after each event. Both report and changed are called while it is not met: with the
// reason, and after an event; changed may be nil.
func (p *poller) until(ctx context.Context, unmet func() (string, error), report func(string), changed func()) error {
	for {
		why, err := unmet()
		if err != nil || why == "" {
			return err
		}
		report(why)
		if err := p.wait(ctx, 0); err != nil {
			return err
		}
		if changed != nil {
			changed()
		}
	}
}

// drain reads what a non-blocking file has.
func drain(fd int) {
	buffer := make([]byte, 16<<10)
	for {
		if n, err := unix.Read(fd, buffer); n <= 0 && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOBUFS) {
			return
		}
	}
}
